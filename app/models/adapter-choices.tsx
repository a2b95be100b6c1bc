import type { ReactNode } from 'react';
import {
  type AdapterOffer,
  adapterOffers,
  type AdapterChoices as Choices,
  decoderOffers,
  guidanceOffers,
  type ModelEntry,
} from '../../lib/contract';
import { Choice } from '../shared/fields';
import { manifestText, t } from '../texts';
import '../texts/en/models';
import { storedChoice } from './model-view';
import { componentText } from './wording';

/** Which adapters to fetch, with what their licences allow; nothing where a model has none. */
export function AdapterChoices(props: {
  entry: ModelEntry;
  chosen: Choices;
  onChoose: (adapters: Choices) => void;
}) {
  const { entry, chosen, onChoose } = props;
  const offers = adapterOffers(entry.manifest);
  const [guidance] = guidanceOffers(entry.manifest);
  const [light] = decoderOffers(entry.manifest);
  const isFewStep = (choice: string) => offers.some((offer) => offer.choice === choice);
  const fewStep = chosen.filter(isFewStep);
  const others = chosen.filter((choice) => !isFewStep(choice));
  const toggle = (choice: string, on: boolean) =>
    onChoose(on ? [...chosen, choice] : chosen.filter((one) => one !== choice));
  const runsBeside = offers.some(
    ({ choice, adapter }) => adapter.guidanceAdapter && fewStep.includes(choice),
  );
  // A stored adapter can be replaced here, not removed.
  const storedFewStep = storedChoice(entry, 'adapter');
  const storedGuidance = storedChoice(entry, 'guidance_adapter');
  return (
    <>
      {offers.length > 0 && (
        <fieldset className="field">
          <legend>{t('models.adapterFor')}</legend>
          <div className="choices stack">
            {offers.map((offer) => (
              <Choice
                key={offer.choice}
                name="adapter"
                value={offer.choice}
                checked={fewStep.includes(offer.choice)}
                onChange={() => onChoose([offer.choice, ...others])}
              >
                <Offer {...offer} here={offer.choice === storedFewStep}>
                  {t('models.adapterSteps', { steps: offer.adapter.scheduler.timesteps.length })}
                </Offer>
              </Choice>
            ))}
            {!storedFewStep && (
              <Choice
                name="adapter"
                value=""
                checked={fewStep.length === 0}
                onChange={() => onChoose(others)}
              >
                <span>
                  {t('shared.none')}
                  <small>{t('models.noAdapter')}</small>
                </span>
              </Choice>
            )}
          </div>
        </fieldset>
      )}
      {guidance && (
        <fieldset className="field">
          <legend>{t('models.guidanceFor')}</legend>
          <label className="check">
            <input
              type="checkbox"
              checked={runsBeside || chosen.includes(guidance.choice)}
              disabled={runsBeside || storedGuidance !== undefined}
              onChange={({ target }) => toggle(guidance.choice, target.checked)}
            />
            <Offer {...guidance} here={guidance.choice === storedGuidance}>
              {t('models.guidanceHint')}
            </Offer>
          </label>
        </fieldset>
      )}
      {light && (
        <label className="check">
          <input
            type="checkbox"
            checked={chosen.includes(light.choice)}
            disabled={entry.stored.some(({ component }) => component === 'light_decoder')}
            onChange={({ target }) => toggle(light.choice, target.checked)}
          />
          <span>
            {componentText('light_decoder', 'name', [])}
            <small>{componentText('light_decoder', 'purpose', [])}</small>
          </span>
        </label>
      )}
    </>
  );
}

/** An adapter's name, what it is for, and what its licence allows. */
function Offer(props: AdapterOffer & { here: boolean; children: ReactNode }) {
  const { adapter, licence, here, children } = props;
  return (
    <span>
      {adapter.name}
      {here && ` ${t('models.here')}`}
      <small>
        {children} {manifestText(adapter.description)}{' '}
        {t.rich(adapter.licence.commercial ? 'models.adapterUse' : 'models.adapterUseRestricted', {
          licence: licence.name,
          strong: (inside) => <strong>{inside}</strong>,
        })}
      </small>
    </span>
  );
}
