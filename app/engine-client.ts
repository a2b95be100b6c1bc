import { proxy, type Remote } from 'comlink';
import type { EngineApi } from '../lib/contract/engine';
import type { EngineHost } from '../lib/predictions/runner';
import { createWorkerHost } from './worker-host';

/** The engine worker of this page. */
export function createEngineHost(): EngineHost {
  const start = () =>
    new Worker(new URL('../workers/engine.ts', import.meta.url), { type: 'module' });
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
