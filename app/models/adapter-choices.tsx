import type { AdapterChoice, AdapterOffer } from '../../lib/contract/manifest';
import { Choice } from '../shared/fields';
import { manifestText, t } from '../texts';
import '../texts/en/models';

/** Which few-step adapter to fetch, with what its licence allows; nothing where a model has none. */
export function AdapterChoices(props: {
  offers: readonly AdapterOffer[];
  chosen: AdapterChoice;
  /** One that is stored can be replaced here, not removed. */
  stored: AdapterOffer | undefined;
  onChoose: (adapter: AdapterChoice) => void;
}) {
  const { offers, chosen, stored, onChoose } = props;
  if (offers.length === 0) return null;
  return (
    <fieldset className="field">
      <legend>{t('models.adapterFor')}</legend>
      <div className="choices stacked">
        {offers.map(({ choice, adapter, licence }) => (
          <Choice
            key={choice}
            name="adapter"
            value={choice}
            checked={chosen === choice}
            onChange={() => onChoose(choice)}
          >
            <span>
              {adapter.name}
              {stored?.choice === choice && ` ${t('models.here')}`}
              <small>
                {t.rich(
                  adapter.licence.commercial
                    ? 'models.adapterFacts'
                    : 'models.adapterFactsRestricted',
                  {
                    steps: adapter.scheduler.timesteps.length,
                    description: manifestText(adapter.description ?? ''),
                    licence: licence.name,
                    strong: (inside) => <strong>{inside}</strong>,
                  },
                )}
              </small>
            </span>
          </Choice>
        ))}
        {!stored && (
          <Choice name="adapter" value="" checked={chosen === null} onChange={() => onChoose(null)}>
            <span>
              {t('shared.none')}
              <small>{t('models.noAdapter')}</small>
            </span>
          </Choice>
        )}
      </div>
    </fieldset>
  );
}
