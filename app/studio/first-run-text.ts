import type { Backend } from '../../lib/contract/prediction';
import type { Forecast } from '../../workers/forecast/forecast';
import type { GpuState } from '../shared/gpu';
import { durationText } from './forecast-text';

/** What this device can do with a model, in one sentence; null where the check of the GPU has failed. */
export function deviceSentence(
  gpu: GpuState,
  backend: Backend,
  model: string,
  forecasts: { readonly standard: Forecast | null; readonly fast: Forecast | null },
): string | null {
  if (gpu.status === 'checking') return 'Looking at what this device can do …';
  if (gpu.status === 'failed') return null;
  const { outcome, software, adapter } = gpu.report;
  if (backend === 'wasm' || outcome !== 'ready') {
    return `Without a GPU that the browser can use, a clip of 5 s with ${model} takes more than a day. The sample model works here.`;
  }
  if (software) {
    return `The browser emulates a GPU on the CPU here: a clip of 5 s with ${model} takes more than a day. The sample model works here.`;
  }
  const { standard, fast } = forecasts;
  if (!standard || !fast) return 'Looking at what this device can do …';
  const name = [adapter.vendor, adapter.architecture].filter(Boolean).join(' ') || 'the GPU';
  const measured = standard.time.measured ? '' : '; its first video measures that';
  return `On this device (${name}), a clip of 5 s with ${model} takes ${durationText(standard.time)}, or ${durationText(fast.time)} at Ultra-fast${measured}.`;
}
