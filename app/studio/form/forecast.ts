import { useEffect, useState } from 'react';
import type { Backend, DeviceReport, ModelEntry, ProfileName } from '../../../lib/contract';
import type { Forecast, ForecastRequest } from '../../../lib/engine/estimate';
import type { RunInput } from '../../../lib/predictions/run-input';
import { deviceOptions } from '../../shared/device';
import { t } from '../../texts';
import '../../texts/en/form';
import { formatTime } from '../../texts/format';
import { emptyForm, modelDefaults, toParameters } from './form-state';

/**
 * What to forecast for runs; nothing where one of them cannot be computed.
 *
 * @param models in which each run has its model
 * @param gpu the engine's report; null until it is known
 */
export function forecastOf(
  runs: readonly Pick<RunInput, 'model' | 'profile' | 'parameters' | 'options' | 'device'>[],
  models: readonly ModelEntry[],
  gpu: DeviceReport | null,
): ForecastRequest[] {
  const requests = runs.flatMap(({ profile, parameters, options, device, ...run }) => {
    const model = models.find(({ manifest }) => manifest.id === run.model);
    if (!model?.ready || (device.backend === 'webgpu' && gpu?.outcome !== 'ready')) return [];
    // What is typed most often is no part of the work, and may be missing yet.
    const typed = { prompt: '-', negative_prompt: '', seed: 0, loras: [] };
    return [{ model, profile, parameters: { ...parameters, ...typed }, options, device, gpu }];
  });
  return requests.length === runs.length ? requests : [];
}

/** What to forecast for a clip of 5 s of a model with everything that can be installed of it. */
export function forecastOfModel(
  entry: ModelEntry,
  profile: ProfileName,
  backend: Backend,
  gpu: DeviceReport | null,
): ForecastRequest[] {
  const whole: ModelEntry = { ...entry, origin: 'bundled', ready: true };
  const model = entry.manifest.id;
  const values = { ...emptyForm.values, ...modelDefaults(entry.manifest) };
  const parameters = toParameters({ ...emptyForm, values });
  const device = { backend, ...deviceOptions() };
  return forecastOf([{ model, profile, parameters, options: {}, device }], [whole], gpu);
}

/** Whether a GPU computes that is worth its name. */
export function hasRealGpu({ outcome, software }: DeviceReport, backend: Backend): boolean {
  return backend === 'webgpu' && outcome === 'ready' && !software;
}

/** Seconds that a draft may take; nobody is led to a model that takes longer. */
const longestDraft = 3600;

/**
 * Whether a device is too slow for a large model; not said of one that is not known yet.
 *
 * @param draft the time of a draft with it; null where that is not known
 */
export function isTooSlow(
  report: DeviceReport | null,
  backend: Backend,
  draft: Forecast | null,
): boolean {
  if (report === null) return false;
  return !hasRealGpu(report, backend) || (draft !== null && draft.seconds > longestDraft);
}

/**
 * The time of a draft with a model, null until it is known, and whether this device is too slow for the model.
 *
 * @param entry undefined where there is no such model
 */
export function useDraft(
  entry: ModelEntry | undefined,
  report: DeviceReport | null,
  backend: Backend,
): { draft: Forecast | null; tooSlow: boolean } {
  const onGpu = report !== null && hasRealGpu(report, backend);
  const requests = entry && onGpu ? forecastOfModel(entry, 'ultra-fast', backend, report) : [];
  const draft = useForecast(requests);
  return { draft, tooSlow: isTooSlow(report, backend, draft) };
}

/** Milliseconds without a change after which requests are counted: a form is typed in. */
const settleMs = 300;

/**
 * What requests take together on this device; null until that is known, and without any.
 *
 * @param revision changes when the device may have measured something
 * @param withMemory whether the memory of the last one is of interest, which is known later
 */
export function useForecast(
  requests: readonly ForecastRequest[],
  revision = '',
  withMemory = false,
): Forecast | null {
  const [forecast, setForecast] = useState<Forecast | null>(null);
  const key = JSON.stringify([revision, requests]);
  useEffect(() => {
    let current = true;
    const show: typeof setForecast = (update) => current && setForecast(update);
    const [, parsedRequests] = JSON.parse(key) as [string, ForecastRequest[]];
    const ask = async () => {
      if (parsedRequests.length === 0) return show(null);
      // Its worker is no part of what a page needs first.
      const { askForecast } = await import('../../forecast-client');
      const time = await askForecast(parsedRequests);
      show((before) => ({ ...time, memory: before?.memory ?? null }));
      if (withMemory && current) show(await askForecast(parsedRequests, true));
    };
    // The run itself will say what is wrong with the model.
    const timer = setTimeout(() => void ask().catch(() => show(null)), settleMs);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [key, withMemory]);
  return forecast;
}

/** `about 3 min 20 s`; `more than a day` where the exact number helps nobody. */
export function durationText({ seconds, measured }: Omit<Forecast, 'memory'>): string {
  if (seconds > 24 * 3600) return t('form.moreThanDay');
  // To a precision that a forecast has: seconds, then tens of seconds, then minutes, then quarters of an hour.
  const unit = seconds < 60 ? 1 : seconds < 600 ? 10 : seconds < 7200 ? 60 : 900;
  const rounded = Math.max(1, Math.round(seconds / unit)) * unit;
  // `3 min`, not `3 min 00 s`.
  const time = formatTime(rounded).replace(/(?<=\D) ?00 \D+$/, '');
  return t(measured ? 'form.about' : 'form.roughly', { time });
}
