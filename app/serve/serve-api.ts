import { KinoraError, toKinoraError } from '../../lib/contract/errors';
import type { Backend } from '../../lib/contract/prediction';
import type { Phase } from '../../lib/contract/progress';
import type { Connection, ServingEvent } from '../../lib/worker/connection';
import { getLibrary } from '../library';
import { checkToken, getServing, type ServingStore } from './serving-store';
import { optionsOf } from './use-connect';

/** What a driving program connects with. */
export interface ServeConnect {
  readonly token: string;
  readonly model: string;
  readonly backend: Backend;
  readonly name: string;
  /** Most device bytes to use; absent means what a probe of the device finds. */
  readonly memoryBudget?: number;
}

/** How far the current job is. */
export interface ServeProgress {
  readonly type: 'progress';
  readonly id: string;
  readonly phase: Phase | null;
  readonly step: number;
  readonly steps: number;
}

/** An event as it leaves the page: progress in numbers only. */
export type ServeReport = Exclude<ServingEvent, { type: 'progress' }> | ServeProgress;

/** What a driving program can do with the Serve page. */
export interface ServeApi {
  /**
   * Connects, and resolves at once; what happens goes to `window.kinoraServing`. A refused input is an
   * Error whose message is the JSON of an `ErrorRecord`, the one form that survives the way out of a
   * browser.
   */
  connect(options: ServeConnect): Promise<void>;
  pause(): void;
  resume(): void;
  /** Ends the current job and hands its lease back. */
  disconnect(): void;
  status(): Connection['status'];
}

declare global {
  interface Window {
    kinoraServe?: ServeApi;
    /** Where the driver listens, if it does. */
    kinoraServing?: (event: ServeReport) => unknown;
  }
}

/** Makes `window.kinoraServe`. @returns what takes it away */
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
  const { model: id, backend, name, memoryBudget } = options;
  const token = checkToken(options.token);
  const { models, hub } = await getLibrary().call((api) => api.snapshot());
  const model = models.find(({ manifest }) => manifest.id === id);
  if (!model) throw new KinoraError('MODEL_UNKNOWN', `There is no model with the id ${id}.`);
  if (!model.ready) throw new KinoraError('MODEL_NOT_INSTALLED');
  const budget = memoryBudget === undefined ? {} : { memoryBudget };
  void serving.connect({ ...optionsOf(model, backend, hub), token, name, ...budget });
}

function report(serving: ServingStore, event: ServingEvent): void {
  if (event.type !== 'progress') {
    window.kinoraServing?.(event);
    return;
  }
  const { connection } = serving.getSnapshot();
  // Only steps and phases are news to a program.
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
