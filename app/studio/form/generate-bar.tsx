import type { ReactNode } from 'react';
import type { Forecast } from '../../../lib/engine/forecast';
import { Choice } from '../../shared/fields';
import { t } from '../../texts';
import '../../texts/en/form';
import '../../texts/en/studio';
import { durationText, memoryText } from './forecast';
import type { FormFields } from './parameter-fields';
import { hasValues, qualities, qualityValues } from './quality';

/** What stays in sight of the form: speed and quality, what the request takes on this device, and the button. */
export function GenerateBar(props: {
  fields: FormFields;
  forecast: Forecast | null;
  /** How many requests wait in the queue, which may be far below. */
  waiting: number;
  /** The button. */
  children: ReactNode;
}) {
  const { fields, forecast, waiting, children } = props;
  const { values, model, set } = fields;
  const levels = qualityValues(model?.manifest, values.samplingDefaults);
  return (
    <div className="generate-bar">
      <fieldset className="quality">
        <legend className="visually-hidden">{t('form.quality')}</legend>
        {qualities.map((name) => (
          <span key={name} title={t(`form.qualityHints.${name}`)}>
            <Choice
              name="quality"
              value={name}
              checked={hasValues(values, levels[name])}
              onChange={() => set(levels[name])}
            >
              <span>{t(`form.qualities.${name}`)}</span>
            </Choice>
          </span>
        ))}
      </fieldset>
      <div className="cost">
        {forecast && <Cost forecast={forecast} />}
        {waiting > 0 && <a href="#queue">{t('studio.waits', { count: waiting })}</a>}
      </div>
      {children}
    </div>
  );
}

/** The time of a run, and its memory where that is short. */
function Cost({ forecast }: { forecast: Forecast }) {
  const { measured, memory } = forecast;
  const short = memory && memoryText(memory);
  return (
    <>
      <p title={measured ? t('form.timeMeasured') : t('form.timeNotMeasured')}>
        {t('form.takes', { time: durationText(forecast) })}
      </p>
      {short && (
        <p title={short.title} data-short={memory.planned === null || undefined}>
          {short.text}
        </p>
      )}
    </>
  );
}
