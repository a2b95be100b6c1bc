import type { ReactNode } from 'react';
import { profileNames } from '../../../lib/contract/profile-names';
import type { Forecast, MemoryForecast } from '../../../lib/engine/forecast';
import { Choice } from '../../shared/fields';
import { profileChoices } from '../../shared/use-models';
import { t } from '../../texts';
import '../../texts/en/form';
import { durationText, memoryText } from './forecast-text';
import './generate-bar.css';
import type { FormFields } from './parameter-fields';

/** What stays in sight of the form: the profile, what the request takes on this device, and the button. */
export function GenerateBar(props: {
  fields: FormFields;
  forecast: Forecast | null;
  /** The button. */
  children: ReactNode;
}) {
  const { fields, forecast, children } = props;
  const { values, model, set } = fields;
  // Most models have both: the bar keeps its height when the model is known.
  const choices = model ? profileChoices(model) : profileNames;
  return (
    <div className="generate-bar">
      {choices.length > 1 && (
        <fieldset className="profile-choices">
          <legend className="visually-hidden">{t('form.profile')}</legend>
          {choices.map((name) => (
            <span key={name} title={t(`form.profileHints.${name}`)}>
              <Choice
                name="profile"
                value={name}
                checked={values.profile === name}
                onChange={() => set({ profile: name })}
              >
                <span>{t(`names.profile.${name}`)}</span>
              </Choice>
            </span>
          ))}
        </fieldset>
      )}
      <ForecastLine forecast={forecast} />
      {children}
    </div>
  );
}

function ForecastLine({ forecast }: { forecast: Forecast | null }) {
  if (!forecast) return <dl className="forecast" />;
  const { time, memory } = forecast;
  return (
    <dl className="forecast">
      <div title={time.measured ? t('form.timeMeasured') : t('form.timeNotMeasured')}>
        <dt>{t('form.time')}</dt>
        <dd>{durationText(time)}</dd>
      </div>
      {memory && <MemoryFact memory={memory} />}
    </dl>
  );
}

function MemoryFact({ memory }: { memory: MemoryForecast }) {
  const { text, title } = memoryText(memory);
  return (
    <div title={title}>
      <dt>{t('form.memory')}</dt>
      <dd data-short={memory.planned === null || undefined}>{text}</dd>
    </div>
  );
}
