import { useEffect, useState } from 'react';
import type { Forecast, ForecastRequest } from '../../../lib/engine/forecast';

/** Milliseconds without a change after which a request is counted. */
const settleMs = 300;

/**
 * What a request takes on this device; null until that is known.
 *
 * @param request null where it is not complete, or not of interest
 * @param revision changes when the device may have measured something
 */
export function useForecast(request: ForecastRequest | null, revision = ''): Forecast | null {
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
    const timer = setTimeout(() => {
      // Its worker is no part of what a page needs first.
      import('../../forecast-client')
        .then(async ({ askForecast }) => {
          const time = await askForecast({ ...asked, withMemory: false });
          if (current) setForecast((before) => ({ ...time, memory: before?.memory ?? null }));
          if (!current || !asked.withMemory) return;
          const all = await askForecast(asked);
          if (current) setForecast(all);
        })
        // The run itself will say what is wrong with the model.
        .catch(() => current && setForecast(null));
    }, settleMs);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [key]);
  return forecast;
}
