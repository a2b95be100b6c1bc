import { proxy, type Remote } from 'comlink';
import type { LibraryApi } from '../lib/contract/library';
import { createWorkerClient } from '../lib/predictions/worker-client';
import type { LibraryHost } from './library-store';

/** The library worker of this page. */
export function createLibraryHost(): LibraryHost {
  const start = () =>
    new Worker(new URL('../workers/library.ts', import.meta.url), { type: 'module' });
  return createWorkerClient<LibraryApi>('library', start, overComlink);
}

/** The plain interface: the listener becomes a proxy, everything else passes as it is. */
function overComlink(remote: Remote<LibraryApi>): LibraryApi {
  return {
    snapshot: () => remote.snapshot(),
    subscribe: (listener) => remote.subscribe(proxy(listener)),
    setHub: (base) => remote.setHub(base),
    setHubToken: (token, keep) => remote.setHubToken(token, keep),
    addModel: (source) => remote.addModel(source),
    addTool: (source) => remote.addTool(source),
    forgetModel: (id) => remote.forgetModel(id),
    planDownload: (id, precision, adapters) => remote.planDownload(id, precision, adapters),
    download: (id, precision, adapters) => remote.download(id, precision, adapters),
    pause: (id, component) => remote.pause(id, component),
    resume: (id, component) => remote.resume(id, component),
    cancel: (id, component) => remote.cancel(id, component),
    importFiles: (id, precision, files) => remote.importFiles(id, precision, files),
    verify: (id) => remote.verify(id),
    deleteModel: (id) => remote.deleteModel(id),
    addLora: (source) => remote.addLora(source),
    inspectLora: (model, file) => remote.inspectLora(model, file),
    modelsOfLora: (file) => remote.modelsOfLora(file),
    deleteLora: (name) => remote.deleteLora(name),
  };
}
