import { type HeadlessLibraryApi, KinoraError } from '../../lib/contract';
import { acceptTerms, readAcceptance } from '../../lib/library';
import { sweepRuns } from '../../lib/predictions/saved-runs';
import { PredictionStore } from '../../lib/predictions/store';
import { sweep } from '../../lib/predictions/sweep';
import { getLibrary } from '../library';
import type { LibraryStore } from '../library-store';

/** @param picked the files of an input of the page */
export function createLibraryApi(picked: (id: string) => readonly File[]): HeadlessLibraryApi {
  // Its worker starts with the first call: a run of the bundled model makes none.
  const call: LibraryStore['call'] = (work) => getLibrary().call(work);
  const files = (paths: readonly string[]) =>
    picked('files').map((file, i) => ({ path: paths[i] ?? file.name, file }));
  return {
    snapshot: () => call((api) => api.snapshot()),
    setHub: (base) => call((api) => api.setHub(base)),
    forgetModel: (id) => call((api) => api.forgetModel(id)),
    planDownload: (...args) => call((api) => api.planDownload(...args)),
    downloadModel: (...args) => call((api) => api.download(...args)),
    pause: (id, component) => call((api) => api.pause(id, component)),
    verify: (id) => call((api) => api.verify(id)),
    deleteModel: (id) => call((api) => api.deleteModel(id)),
    deleteLora: (name) => call((api) => api.deleteLora(name)),
    addModel: (address, revision) => call((api) => api.addModel({ address, revision })),
    addTool: (address, revision) => call((api) => api.addTool({ address, revision })),
    addPickedTool: (paths) => call((api) => api.addTool({ files: files(paths) })),
    addPickedModel: (paths) => call((api) => api.addModel({ files: files(paths) })),
    importPicked: (id, precision, paths) =>
      call((api) => api.importFiles(id, precision, files(paths))),
    addLora: (address) => call((api) => api.addLora(loraSource(address, picked('loras')))),
    setHubToken: (token) => call((api) => api.setHubToken(token, false)),
    termsAccepted: async () => (await readAcceptance()) !== null,
    acceptTerms: async () => void (await acceptTerms()),
    watchLibrary: async () => {
      const library = getLibrary();
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
