import type { Forecast, ForecastRequest } from '../lib/engine/estimate';
import { createWorkerClient } from '../lib/predictions/worker-client';

type Ask = (requests: readonly ForecastRequest[], withMemory?: boolean) => Promise<Forecast>;
const start = () =>
  new Worker(new URL('../workers/forecast.ts', import.meta.url), { type: 'module' });
const client = createWorkerClient<{ forecast: Ask }>('forecast', start);

/** What requests take together; starts the worker on first use. @throws KinoraError */
export const askForecast: Ask = (requests, withMemory) => {
  const { api, crashed } = client.open();
  return Promise.race([api.forecast(requests, withMemory), crashed]);
};
