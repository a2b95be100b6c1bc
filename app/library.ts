import { useSyncExternalStore } from 'react';
import type { LibraryApi } from '../lib/contract';
import { createWorkerClient } from '../lib/predictions/worker-client';
import { type LibraryState, LibraryStore, loadingLibrary } from './library-store';
import { showLibraryJob } from './shared/library-job';

const startWorker = () =>
  new Worker(new URL('../workers/library.ts', import.meta.url), { type: 'module' });
let store: LibraryStore | null = null;

/** The one library of this page. For handlers and effects: the server has none. */
export function getLibrary(): LibraryStore {
  if (store) return store;
  const library = new LibraryStore(createWorkerClient<LibraryApi>('library', startWorker));
  library.subscribe(() => showLibraryJob(library.getSnapshot()));
  store = library;
  return store;
}

const subscribe = (listener: () => void) => getLibrary().subscribe(listener);
const getSnapshot = () => getLibrary().getSnapshot();
const getServerSnapshot = () => loadingLibrary;

/** Models, LoRAs and storage as they are now; starts the library's worker. */
export function useLibrary(): LibraryState {
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot);
}
