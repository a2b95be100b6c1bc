import { KinoraError } from '../../lib/contract/errors';
import type { HeadlessLibraryApi } from '../../lib/contract/headless';
import { acceptTerms, readAcceptance } from '../../lib/library';
import { sweepRuns } from '../../lib/predictions/saved-runs';
import { PredictionStore } from '../../lib/predictions/store';
import { sweep } from '../../lib/predictions/sweep';
import { getLibrary } from '../library';

/** @param picked the files of an input of the page */
export function createLibraryApi(picked: (id: string) => readonly File[]): HeadlessLibraryApi {
  const library = getLibrary();
  const files = (paths: readonly string[]) =>
    picked('files').map((file, i) => ({ path: paths[i] ?? file.name, file }));
  return {
    snapshot: () => library.call((api) => api.snapshot()),
    setHub: (base) => library.call((api) => api.setHub(base)),
    forgetModel: (id) => library.call((api) => api.forgetModel(id)),
    planDownload: (...args) => library.call((api) => api.planDownload(...args)),
    downloadModel: (...args) => library.call((api) => api.download(...args)),
    pause: (id, component) => library.call((api) => api.pause(id, component)),
    verify: (id) => library.call((api) => api.verify(id)),
    deleteModel: (id) => library.call((api) => api.deleteModel(id)),
    deleteLora: (name) => library.call((api) => api.deleteLora(name)),
    addModel: (address, revision) => library.call((api) => api.addModel({ address, revision })),
    addTool: (address, revision) => library.call((api) => api.addTool({ address, revision })),
    addPickedTool: (paths) => library.call((api) => api.addTool({ files: files(paths) })),
    addPickedModel: (paths) => library.call((api) => api.addModel({ files: files(paths) })),
    importPicked: (id, precision, paths) =>
      library.call((api) => api.importFiles(id, precision, files(paths))),
    addLora: (address) => library.call((api) => api.addLora(loraSource(address, picked('loras')))),
    setHubToken: (token) => library.call((api) => api.setHubToken(token, false)),
    termsAccepted: async () => (await readAcceptance()) !== null,
    acceptTerms: async () => void (await acceptTerms()),
    watchLibrary: async () => {
      library.subscribe(() => {
        const state = library.getSnapshot();
        if (state.status === 'ready') window.kinoraLibrary?.(state.snapshot);
      });
    },
    clearHistory,
  };
}

function loraSource(address: string | null, [file]: readonly File[]) {
  if (address !== null) return { address };
  if (!file) throw new KinoraError('LORA_MISSING');
  return { file };
}

async function clearHistory(): Promise<void> {
  const store = new PredictionStore();
  for (const { id } of await store.list()) await store.deleteRow(id);
  await sweep(store);
  await sweepRuns(store);
}
