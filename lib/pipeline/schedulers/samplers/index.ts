import { KinoraError, type ModelManifest } from '../../../contract';
import type { Sampler, ScheduleOptions, Scheduler } from '../scheduler';
import { euler } from './euler';
import { fewStep } from './few-step';
import { unipc } from './unipc';

/** Every sampler, by the name that manifests use. */
export const samplers: Record<string, Sampler> = {
  unipc,
  euler,
  'few-step': fewStep,
};

/**
 * Makes a schedule.
 *
 * @throws KinoraError `MODEL_MANIFEST_INVALID` where there is no sampler of that name, or it needs a list of
 * timesteps
 * @throws RangeError when steps, flow shift or timesteps are out of range
 */
export function createScheduler({
  kind,
  ...options
}: ScheduleOptions & { readonly kind: string }): Scheduler {
  const { steps, flowShift, timesteps } = options;
  const sampler = samplerOf(kind, timesteps !== undefined);
  if (!Number.isInteger(steps) || steps < 1) throw new RangeError('steps must be 1 or more.');
  if (!(flowShift > 0 && flowShift < Number.POSITIVE_INFINITY)) {
    throw new RangeError('flowShift must be above 0.');
  }
  for (const [i, t] of (timesteps ?? []).entries()) {
    const before = timesteps?.[i - 1] ?? Number.POSITIVE_INFINITY;
    if (!(t > 0 && t <= 1000 && t < before)) {
      throw new RangeError('timesteps must fall, above 0 and at most 1000.');
    }
  }
  return sampler.schedule(options);
}

/**
 * Checks the samplers that the profiles of a model name.
 *
 * @throws KinoraError `MODEL_MANIFEST_INVALID`
 */
export function checkSamplers({ profiles }: Pick<ModelManifest, 'profiles'>): void {
  for (const { scheduler, adapters } of Object.values(profiles)) {
    for (const each of [scheduler, ...adapters.map((adapter) => adapter.scheduler)]) {
      createScheduler({ ...each, steps: each.timesteps?.length ?? 1, flowShift: 1 });
    }
  }
}

function samplerOf(kind: string, listed: boolean): Sampler {
  const sampler = Object.hasOwn(samplers, kind) ? samplers[kind] : undefined;
  if (!sampler) {
    throw new KinoraError(
      'MODEL_MANIFEST_INVALID',
      `The model manifest names the sampler "${kind}", which this version does not have.`,
      { remedy: 'Use a newer version of Kinora, or another model.' },
    );
  }
  if (listed || sampler.timesteps === 'optional') return sampler;
  const sentence = `The model manifest is not valid: the sampler "${kind}" needs a list of timesteps.`;
  throw new KinoraError('MODEL_MANIFEST_INVALID', sentence);
}
