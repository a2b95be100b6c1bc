import type { DeviceReport } from '../../../lib/contract/engine';
import { hasSafetyChecker, type ModelEntry } from '../../../lib/contract/library';
import { parameterRanges, type unusedParameters } from '../../../lib/contract/parameters';
import type { ProfileName } from '../../../lib/contract/profile';
import type { ForecastRequest } from '../../../lib/engine/forecast';
import { type ResolvedSampling, resolveSampling } from '../../../lib/pipeline/profiles';
import { deviceOptions } from '../../shared/device';
import { type FormValues, finishingOf, toNumber } from './form-state';

/**
 * What to forecast for the form; null where it is not complete.
 *
 * @param resolved what the model makes of the form
 */
export function forecastOfForm(
  entry: ModelEntry | undefined,
  values: FormValues,
  resolved: ResolvedSampling | null,
  gpu: DeviceReport | null,
): ForecastRequest | null {
  const duration = toNumber(values.duration);
  const { min, max } = parameterRanges.duration;
  if (!entry || !resolved || !(duration >= min && duration <= max)) return null;
  if (!Number.isInteger(duration) || !canCompute(values.backend, gpu)) return null;
  const { manifest, stored } = entry;
  const [first] = manifest.components;
  const largest = stored.find(({ component }) => component === first?.id);
  return {
    manifest,
    precision: largest?.precision ?? manifest.precision,
    sampling: resolved.sampling,
    size: values.size,
    duration,
    finishing: finishingOf(values),
    device: { backend: values.backend, ...deviceOptions(values) },
    gpu,
    withMemory: true,
    checked: values.safetyChecker && hasSafetyChecker(entry),
  };
}

/** What to forecast for a clip of 5 s of a model with everything that can be installed of it. */
export function forecastOfModel(
  { manifest, precision }: ModelEntry,
  profile: ProfileName,
  backend: FormValues['backend'],
  gpu: DeviceReport | null,
): ForecastRequest | null {
  if (!canCompute(backend, gpu)) return null;
  const of = (name: (typeof unusedParameters)[number]) =>
    manifest.defaults[name] ?? parameterRanges[name].default;
  const asked = {
    num_inference_steps: of('num_inference_steps'),
    guidance_scale: of('guidance_scale'),
    flow_shift: of('flow_shift'),
  };
  const complete = {
    manifest,
    decoders: ['full', 'tiny'] as const,
    adapters: { adapter: { source: null, misfit: null } },
  };
  return {
    manifest,
    precision: precision ?? manifest.precision,
    sampling: resolveSampling(complete, profile, asked).sampling,
    size: '1280*720',
    duration: 5,
    finishing: {},
    device: { backend, ...deviceOptions() },
    gpu,
    withMemory: false,
    checked: false,
  };
}

function canCompute(backend: FormValues['backend'], gpu: DeviceReport | null): boolean {
  return backend === 'wasm' || gpu?.outcome === 'ready';
}
