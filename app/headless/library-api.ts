import { KinoraError } from '../../lib/contract/errors';
import type {
  LibraryApi,
  LibrarySnapshot,
  LoraEntry,
  ModelEntry,
} from '../../lib/contract/library';
import type { Precision } from '../../lib/contract/manifest';
import { PredictionStore } from '../../lib/predictions/store';
import { sweep } from '../../lib/predictions/sweep';
import { getLibrary } from '../library';
import { readPicked } from '../models/local-files';

declare global {
  interface Window {
    /** Where the driver listens for changes of the library, if it does. */
    kinoraLibrary?: (snapshot: LibrarySnapshot) => unknown;
  }
}

type Passed =
  | 'snapshot'
  | 'setHub'
  | 'forgetModel'
  | 'planDownload'
  | 'pause'
  | 'verify'
  | 'deleteModel'
  | 'deleteLora';

/** What a driving program can do with the library of this browser. */
export interface HeadlessLibraryApi extends Pick<LibraryApi, Passed> {
  /** `download` of the library; on this page that word is a video's. */
  downloadModel(id: string, precision: Precision): Promise<void>;
  addModel(address: string, revision?: string): Promise<ModelEntry>;
  /** Lists the model whose files are in `#folder` or `#files`. */
  addPickedModel(): Promise<ModelEntry>;
  /** Converts what {@link addPickedModel} has listed. */
  importPicked(id: string, precision: Precision): Promise<void>;
  /** Adds the LoRA of an address, or the first file of `#loras` where there is none. */
  addLora(address: string | null): Promise<LoraEntry>;
  /** Tells `window.kinoraLibrary` each change from now on. */
  watchLibrary(): Promise<void>;
  /** Forgets every prediction and deletes its video: nobody looks at them in this browser. */
  clearHistory(): Promise<void>;
}

/** @param picked the files of an input of the page */
export function createLibraryApi(picked: (id: string) => readonly File[]): HeadlessLibraryApi {
  const library = getLibrary();
  const files = () => readPicked([...picked('folder'), ...picked('files')]);
  return {
    snapshot: () => library.call((api) => api.snapshot()),
    setHub: (base) => library.call((api) => api.setHub(base)),
    forgetModel: (id) => library.call((api) => api.forgetModel(id)),
    planDownload: (id, precision) => library.call((api) => api.planDownload(id, precision)),
    downloadModel: (id, precision) => library.call((api) => api.download(id, precision)),
    pause: (id, component) => library.call((api) => api.pause(id, component)),
    verify: (id) => library.call((api) => api.verify(id)),
    deleteModel: (id) => library.call((api) => api.deleteModel(id)),
    deleteLora: (name) => library.call((api) => api.deleteLora(name)),
    addModel: (address, revision) =>
      library.call((api) => api.addModel({ address, ...(revision && { revision }) })),
    addPickedModel: () => library.call((api) => api.addModel({ files: files() })),
    importPicked: (id, precision) => library.call((api) => api.importFiles(id, precision, files())),
    addLora: (address) => library.call((api) => api.addLora(loraSource(address, picked('loras')))),
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
}
