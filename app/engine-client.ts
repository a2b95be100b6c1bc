import { proxy, type Remote, wrap } from 'comlink';
import type { EngineApi } from '../lib/contract/engine';
import { installErrorTransfer } from '../lib/contract/error-transfer';
import type { EngineHost, EngineSession } from '../lib/predictions/runner';
import { crashOf } from './worker-crash';

/** The engine worker of this page: started on first use, started afresh after it was closed. */
export function createEngineHost(): EngineHost {
  let current: { worker: Worker; session: EngineSession } | null = null;
  return {
    open() {
      current ??= start();
      return current.session;
    },
    close() {
      current?.worker.terminate();
      current = null;
    },
  };
}

function start(): { worker: Worker; session: EngineSession } {
  installErrorTransfer();
  const worker = new Worker(new URL('../workers/engine.ts', import.meta.url), { type: 'module' });
  const crashed = crashOf(worker, 'engine');
  return { worker, session: { api: overComlink(wrap<EngineApi>(worker)), crashed } };
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
