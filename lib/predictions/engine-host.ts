import { proxy, type Remote } from 'comlink';
import type { EngineApi } from '../contract/engine';
import type { EngineHost } from './run-engine';
import { createWorkerHost } from './worker-host';

/**
 * An engine worker, started on first use.
 *
 * @param start makes the worker; the bundler wants to see its address there
 */
export function createEngineHost(start: () => Worker): EngineHost {
  return createWorkerHost<EngineApi>('engine', start, overComlink);
}

/** The plain interface: callbacks become proxies, everything else passes as it is. */
function overComlink(remote: Remote<EngineApi>): EngineApi {
  return {
    probe: () => remote.probe(),
    selfTest: (backend) => remote.selfTest(backend),
    load: (model, backend, onProgress) =>
      onProgress ? remote.load(model, backend, proxy(onProgress)) : remote.load(model, backend),
    generate: (request, onProgress) => remote.generate(request, proxy(onProgress)),
    cancel: () => remote.cancel(),
    pause: () => remote.pause(),
    resume: () => remote.resume(),
    finishEarly: () => remote.finishEarly(),
    counters: () => remote.counters(),
    unload: () => remote.unload(),
  };
}
