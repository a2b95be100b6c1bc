import type { Backend } from '../../lib/contract/prediction';
import type { Forecast } from '../../workers/forecast/forecast';
import type { GpuState } from '../shared/gpu';
import { t } from '../texts';
import '../texts/en/form';
import { durationText } from './form/forecast-text';

/** What this device can do with a model, in one sentence; null where the check of the GPU has failed. */
export function deviceSentence(
  gpu: GpuState,
  backend: Backend,
  model: string,
  forecasts: { readonly standard: Forecast | null; readonly fast: Forecast | null },
): string | null {
  if (gpu.status === 'checking') return t('form.looking');
  if (gpu.status === 'failed') return null;
  const { outcome, software, adapter } = gpu.report;
  if (backend === 'wasm' || outcome !== 'ready') {
    return t('form.deviceNoGpu', { model });
  }
  if (software) {
    return t('form.deviceSoftware', { model });
  }
  const { standard, fast } = forecasts;
  if (!standard || !fast) return t('form.looking');
  const values = {
    gpu: [adapter.vendor, adapter.architecture].filter(Boolean).join(' ') || t('form.theGpu'),
    model,
    time: durationText(standard.time),
    fast: durationText(fast.time),
  };
  return standard.time.measured
    ? t('form.deviceTakes', values)
    : t('form.deviceTakesUnmeasured', values);
}
