import { formatMemory } from '../../../lib/contract';
import type { Forecast } from '../../../lib/engine/estimate';
import type { MemoryForecast } from '../../../lib/pipeline/memory/forecast';
import { Choice } from '../../shared/fields';
import { t } from '../../texts';
import '../../texts/en/form';
import '../../texts/en/studio';
import { useHydrated } from '../../shared/browser';
import { durationText } from './forecast';
import { useFields } from './form-context';
import { hasValues, qualities, qualityValues } from './quality';

/** What stays in sight of the form: speed and quality, what the request takes on this device, and the button. */
export function GenerateBar({
  forecast,
  videos,
}: {
  forecast: Forecast | null;
  /** How many videos the button makes. */
  videos: number;
}) {
  const { values, model, set, waiting, edit, improve } = useFields();
  const hydrated = useHydrated();
  const levels = qualityValues(model?.manifest, values.samplingDefaults);
  return (
    <div className="generate-bar stack gap-8-16 ruled on-surface">
      <fieldset className="quality flex">
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
      <div className="cost field-hint min-0 numbers">
        {forecast && <Cost forecast={forecast} />}
        {waiting > 0 && <a href="#queue">{t('studio.waits', { count: waiting })}</a>}
      </div>
      <button
        type="submit"
        className="primary"
        disabled={!hydrated || improve.state.status === 'running'}
      >
        {edit.id === null ? generateText(videos, waiting) : t('form.saveChanges')}
      </button>
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
        <p title={short.title} data-short={memory.plan === null || undefined}>
          {short.text}
        </p>
      )}
    </>
  );
}

/** The memory of a request in a few words, where it is short; null where all of the model stays in it. */
export function memoryText({ full, least, plan }: MemoryForecast): {
  readonly text: string;
  readonly title: string;
} | null {
  if (plan === null) {
    return {
      text: t('form.needsMemory', { amount: formatMemory(least) }),
      title: t('form.needsMemoryHint'),
    };
  }
  if (plan.peak >= full) return null;
  const [amount, total] = [formatMemory(plan.peak), formatMemory(full)];
  return {
    text: t('form.memoryOf', { amount, total }),
    title: t('form.memoryLimited', { amount: total }),
  };
}

/** What the button says. @param videos how many it makes */
function generateText(videos: number, waiting: number): string {
  if (videos > 1) return t('form.generateVideos', { count: videos });
  return waiting > 0 ? t('form.generateWaits', { count: waiting }) : t('form.generate');
}
