import type { AdapterChoice, AdapterOffer } from '../../lib/contract/manifest';
import { Choice } from '../shared/fields';

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
      <legend>Few-step adapter, for ultra-fast videos</legend>
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
              {stored?.choice === choice && ' (here)'}
              <small>
                {adapter.scheduler.timesteps.length} steps. {adapter.description} Licence:{' '}
                {licence.name}
                {adapter.licence.commercial ? '.' : ': '}
                {!adapter.licence.commercial && <strong>it may not be used commercially.</strong>}
              </small>
            </span>
          </Choice>
        ))}
        {!stored && (
          <Choice name="adapter" value="" checked={chosen === null} onChange={() => onChoose(null)}>
            <span>
              None
              <small>
                Ultra-fast then takes up to 20 steps and reuses some of them: several times the
                work.
              </small>
            </span>
          </Choice>
        )}
      </div>
    </fieldset>
  );
}
