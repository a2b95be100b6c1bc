import { useSyncExternalStore } from 'react';
import { createLibraryHost } from './library-client';
import { type LibraryState, LibraryStore, loadingLibrary } from './library-store';

let store: LibraryStore | null = null;

/** The one library of this page. For handlers and effects: the server has none. */
export function getLibrary(): LibraryStore {
  store ??= new LibraryStore(createLibraryHost());
  return store;
}

const subscribe = (listener: () => void) => getLibrary().subscribe(listener);
const getSnapshot = () => getLibrary().getSnapshot();
const getServerSnapshot = () => loadingLibrary;

/** Models, LoRAs and storage as they are now; starts the library's worker. */
export function useLibrary(): LibraryState {
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot);
}
