import { proxy, type Remote, wrap } from 'comlink';
import { installErrorTransfer } from '../lib/contract/error-transfer';
import type { LibraryApi } from '../lib/contract/library';
import type { LibraryHost, LibrarySession } from './library-store';
import { crashOf } from './worker-crash';

/** The library worker of this page: started on first use, started afresh after it was closed. */
export function createLibraryHost(): LibraryHost {
  let current: { worker: Worker; session: LibrarySession } | null = null;
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

function start(): { worker: Worker; session: LibrarySession } {
  installErrorTransfer();
  const worker = new Worker(new URL('../workers/library.ts', import.meta.url), { type: 'module' });
  const crashed = crashOf(worker, 'library');
  return { worker, session: { api: overComlink(wrap<LibraryApi>(worker)), crashed } };
}

/** The plain interface: the listener becomes a proxy, everything else passes as it is. */
function overComlink(remote: Remote<LibraryApi>): LibraryApi {
  return {
    snapshot: () => remote.snapshot(),
    subscribe: (listener) => remote.subscribe(proxy(listener)),
    setHub: (base) => remote.setHub(base),
    addModel: (source) => remote.addModel(source),
    forgetModel: (id) => remote.forgetModel(id),
    planDownload: (id, precision) => remote.planDownload(id, precision),
    download: (id, precision) => remote.download(id, precision),
    pause: (id, component) => remote.pause(id, component),
    resume: (id, component) => remote.resume(id, component),
    cancel: (id, component) => remote.cancel(id, component),
    importFiles: (id, precision, files) => remote.importFiles(id, precision, files),
    verify: (id) => remote.verify(id),
    deleteModel: (id) => remote.deleteModel(id),
    addLora: (source) => remote.addLora(source),
    deleteLora: (name) => remote.deleteLora(name),
  };
}
