import { proxy, type Remote } from 'comlink';
import { createWorkerClient, type WorkerSession } from '../../lib/predictions/worker-client';
import type { ServingApi } from '../../lib/worker/api';

/** Where the page's connection gets its worker from. */
export interface ServingHost {
  open(): WorkerSession<ServingApi>;
  close(): void;
}

/** The serving worker of this page. */
export function createServingHost(): ServingHost {
  const start = () =>
    new Worker(new URL('../../workers/serving.ts', import.meta.url), { type: 'module' });
  return createWorkerClient<ServingApi>('serving worker', start, overComlink);
}

/** The plain interface: the listeners become proxies, everything else passes as it is. */
function overComlink(remote: Remote<ServingApi>): ServingApi {
  return {
    serve: (options, onEvent, onLease) => remote.serve(options, proxy(onEvent), proxy(onLease)),
    pause: () => remote.pause(),
    resume: () => remote.resume(),
    disconnect: () => remote.disconnect(),
    retryNow: () => remote.retryNow(),
  };
}
