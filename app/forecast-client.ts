import type { Forecast, ForecastApi, ForecastRequest } from '../lib/engine/forecast';
import { createWorkerClient } from '../lib/predictions/worker-client';

const client = createWorkerClient<ForecastApi>(
  'forecast',
  () => new Worker(new URL('../workers/forecast.ts', import.meta.url), { type: 'module' }),
  (remote) => ({ forecast: (request, withMemory) => remote.forecast(request, withMemory) }),
);

/** What a request takes; starts the worker on first use. @throws KinoraError */
export async function askForecast(request: ForecastRequest, withMemory = false): Promise<Forecast> {
  const { api, crashed } = client.open();
  return Promise.race([api.forecast(request, withMemory), crashed]);
}
