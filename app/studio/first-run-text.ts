import type { Backend } from '../../lib/contract';
import type { Forecast } from '../../lib/engine/estimate';
import { adapterName, type GpuState } from '../shared/gpu';
import { t } from '../texts';
import '../texts/en/form';
import { durationText, hasRealGpu } from './form/forecast';

/**
 * What this device can do, in one or two sentences: first what it does well. Null where the check of the GPU has
 * failed.
 *
 * @param model name of the large model
 * @param forecasts of the bundled model, and of the two profiles of the large one
 */
export function deviceSentence(
  gpu: GpuState,
  backend: Backend,
  model: string,
  forecasts: Readonly<Record<'small' | 'standard' | 'fast', Forecast | null>>,
): string | null {
  if (gpu.status === 'checking') return t('form.looking');
  if (gpu.status === 'failed') return null;
  const { small, standard, fast } = forecasts;
  if (!hasRealGpu(gpu.report, backend)) {
    return small ? t('form.sampleTakes', { time: durationText(small), model }) : t('form.looking');
  }
  if (!standard || !fast) return t('form.looking');
  const values = {
    gpu: adapterName(gpu.report) || t('form.theGpu'),
    model,
    time: durationText(standard),
    fast: durationText(fast),
  };
  return standard.measured
    ? t('form.deviceTakes', values)
    : t('form.deviceTakesUnmeasured', values);
}
