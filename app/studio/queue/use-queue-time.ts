import { useEffect, useState } from 'react';
import type { DeviceReport } from '../../../lib/contract/engine';
import type { Forecast } from '../../../lib/engine/forecast';
import type { QueueEntry } from '../../../lib/predictions/queue/queue';
import type { ModelList } from '../../shared/use-models';
import { forecastOfForm } from '../form/forecast-request';
import { emptyForm } from '../form/form-state';
import { samplingOf } from '../form/sampling';
import { valuesOf } from '../form/use-edit';

/** What all requests that wait take on this device together; null until that is known, or where one is not. */
export function useQueueTime(
  entries: readonly QueueEntry[],
  models: ModelList,
  gpu: DeviceReport | null,
): Forecast['time'] | null {
  const [time, setTime] = useState<Forecast['time'] | null>(null);
  useEffect(() => {
    let current = true;
    timeOf(entries, models, gpu).then(
      (found) => current && setTime(found),
      // The run itself will say what is wrong with a model.
      () => current && setTime(null),
    );
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
  const asked = new Map<string, Promise<Forecast>>();
  let seconds = 0;
  let measured = true;
  for (const { input } of entries) {
    const model = models.models.find(({ manifest }) => manifest.id === input.model);
    const values = valuesOf(input, parseParameters(input.parameters), emptyForm.values);
    const request = forecastOfForm(model, values, samplingOf(model, values), gpu);
    if (!request) return null;
    const key = JSON.stringify(request);
    const forecast = asked.get(key) ?? askForecast({ ...request, withMemory: false });
    asked.set(key, forecast);
    const { time } = await forecast;
    seconds += time.seconds;
    measured &&= time.measured;
  }
  return { seconds, measured };
}
