import { useEffect, useState } from 'react';
import type { DeviceReport } from '../../../lib/contract/engine';
import { hasSafetyChecker, type ModelEntry } from '../../../lib/contract/library';
import { chosenSwitches, parameterRanges } from '../../../lib/contract/parameters';
import type { ProfileName } from '../../../lib/contract/profile';
import type { Forecast, ForecastRequest } from '../../../lib/engine/forecast';
import type { ResolvedSampling } from '../../../lib/pipeline/profiles';
import type { QueueEntry } from '../../../lib/predictions/queue/queue';
import { deviceOptions } from '../../shared/device';
import type { ModelList } from '../../shared/use-models';
import { emptyForm, type FormValues, modelDefaults, toNumber } from './form-state';
import { samplingOf } from './sampling';
import { valuesOf } from './use-edit';

/**
 * What to forecast for the form; null where it is not complete, or nothing can compute it.
 *
 * @param resolved what the model makes of the form
 */
export function forecastOfForm(
  entry: ModelEntry | undefined,
  values: FormValues,
  resolved: ResolvedSampling | null,
  gpu: DeviceReport | null,
): ForecastRequest | null {
  const { backend, size, safetyChecker } = values;
  const duration = toNumber(values.duration);
  const { min, max } = parameterRanges.duration;
  if (!entry || !resolved || !(duration >= min && duration <= max)) return null;
  if (!Number.isInteger(duration) || (backend === 'webgpu' && gpu?.outcome !== 'ready'))
    return null;
  const { manifest, stored, precision } = entry;
  const largest = stored.find(({ component }) => component === manifest.components[0]?.id);
  return {
    manifest,
    precision: largest?.precision ?? precision ?? manifest.precision,
    sampling: resolved.sampling,
    size,
    duration,
    finishing: chosenSwitches(values),
    device: { backend, ...deviceOptions(values) },
    gpu,
    checked: safetyChecker && hasSafetyChecker(entry),
  };
}

/** What to forecast for a clip of 5 s of a model with everything that can be installed of it. */
export function forecastOfModel(
  entry: ModelEntry,
  profile: ProfileName,
  backend: FormValues['backend'],
  gpu: DeviceReport | null,
): ForecastRequest | null {
  const whole: ModelEntry = { ...entry, origin: 'bundled', ready: true };
  const defaults = { ...emptyForm.values, ...modelDefaults(entry.manifest) };
  const values = { ...defaults, profile, backend, safetyChecker: false };
  return forecastOfForm(whole, values, samplingOf(whole, values), gpu);
}

/** Milliseconds without a change after which a request is counted. */
const settleMs = 300;

/**
 * What a request takes on this device; null until that is known.
 *
 * @param request null where it is not complete, or not of interest
 * @param revision changes when the device may have measured something
 * @param withMemory whether its memory is of interest, which is known later
 */
export function useForecast(
  request: ForecastRequest | null,
  revision = '',
  withMemory = false,
): Forecast | null {
  const [forecast, setForecast] = useState<Forecast | null>(null);
  // A form is typed in: only what the forecast depends on asks for a new one.
  const key = request && JSON.stringify([revision, request]);
  useEffect(() => {
    if (key === null) {
      setForecast(null);
      return;
    }
    let current = true;
    const [, asked] = JSON.parse(key) as [string, ForecastRequest];
    const ask = async () => {
      // Its worker is no part of what a page needs first.
      const { askForecast } = await import('../../forecast-client');
      const time = await askForecast(asked);
      if (current) setForecast((before) => ({ ...time, memory: before?.memory ?? null }));
      const all = current && withMemory && (await askForecast(asked, true));
      if (current && all) setForecast(all);
    };
    // The run itself will say what is wrong with the model.
    const timer = setTimeout(() => void ask().catch(() => current && setForecast(null)), settleMs);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [key, withMemory]);
  return forecast;
}

/** What all requests that wait take on this device together; null until that is known, or where one is not. */
export function useQueueTime(
  entries: readonly QueueEntry[],
  models: ModelList,
  gpu: DeviceReport | null,
): Forecast['time'] | null {
  const [time, setTime] = useState<Forecast['time'] | null>(null);
  useEffect(() => {
    let current = true;
    const show = (found: Forecast['time'] | null) => current && setTime(found);
    timeOf(entries, models, gpu).then(show, () => show(null));
    return () => {
      current = false;
    };
  }, [entries, models, gpu]);
  return time;
}

async function timeOf(
  entries: readonly QueueEntry[],
  models: ModelList,
  gpu: DeviceReport | null,
): Promise<Forecast['time'] | null> {
  if (models.status !== 'ready' || entries.length === 0) return null;
  const { parseParameters } = await import('../../../lib/contract/request');
  const { askForecast } = await import('../../forecast-client');
  // Variations take the same time.
  const known = new Map<string, Forecast['time']>();
  let seconds = 0;
  let measured = true;
  for (const { input } of entries) {
    const model = models.models.find(({ manifest }) => manifest.id === input.model);
    const values = valuesOf(input, parseParameters(input.parameters), emptyForm.values);
    const request = forecastOfForm(model, values, samplingOf(model, values), gpu);
    if (!request) return null;
    const key = JSON.stringify(request);
    const time = known.get(key) ?? (await askForecast(request)).time;
    known.set(key, time);
    seconds += time.seconds;
    measured &&= time.measured;
  }
  return { seconds, measured };
}
