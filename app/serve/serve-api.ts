import { KinoraError, toKinoraError } from '../../lib/contract';
import type { ServeApi, ServeConnect, ServeReport } from '../../lib/worker/api';
import type { ServingEvent } from '../../lib/worker/connection';
import { getLibrary } from '../library';
import { checkToken, getServing, type ServingStore } from './serving-store';
import { optionsOf } from './use-connect';

declare global {
  interface Window {
    kinoraServe?: ServeApi;
    /** Callback of the controlling program. */
    kinoraServing?: (event: ServeReport) => unknown;
  }
}

/** Sets `window.kinoraServe`. @returns a function that removes it */
export function installServeApi(): () => void {
  const serving = getServing();
  const unwatch = serving.watch((event) => report(serving, event));
  window.kinoraServe = {
    connect: (options) => asJson(connect(serving, options)),
    pause: () => serving.pause(),
    resume: () => serving.resume(),
    disconnect: () => serving.disconnect(),
    status: () => serving.getSnapshot().connection.status,
  };
  return () => {
    unwatch();
    delete window.kinoraServe;
  };
}

async function connect(serving: ServingStore, options: ServeConnect): Promise<void> {
  const { model: id, name, device } = options;
  const token = checkToken(options.token);
  const { models, hub } = await getLibrary().call((api) => api.snapshot());
  const model = models.find(({ manifest }) => manifest.id === id);
  if (!model) throw new KinoraError('MODEL_UNKNOWN', `There is no model with the id ${id}.`);
  if (!model.ready) throw new KinoraError('MODEL_NOT_INSTALLED');
  void serving.connect({ ...optionsOf(model, hub), token, name, device });
}

function report(serving: ServingStore, event: ServingEvent): void {
  if (event.type !== 'progress') {
    window.kinoraServing?.(event);
    return;
  }
  const { connection } = serving.getSnapshot();
  // Programs need only steps and phases.
  if (connection.status !== 'working' || !['step', 'phase'].includes(event.event.type)) return;
  const { phase, step, steps } = connection.progress;
  window.kinoraServing?.({ type: 'progress', id: connection.job.id, phase, step, steps });
}

async function asJson<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    throw new Error(JSON.stringify(toKinoraError(thrown).toRecord()), { cause: thrown });
  }
}
