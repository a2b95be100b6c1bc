import { useSyncExternalStore } from 'react';
import { type ErrorRecord, Observable } from '../../lib/contract';

/** Finished videos that could not be saved into the user's folder. */
export interface UnsavedVideos {
  /** Ids of their predictions. */
  readonly ids: readonly string[];
  readonly error: ErrorRecord;
  /** Whether the browser only wants to be asked again. */
  readonly denied: boolean;
  /** Asks for the permission where it is denied, and saves them. To be called in a click handler. */
  readonly retry: () => Promise<void>;
}

/* The runner writes into this; every page shows it, and loads no more than this for it. */
const unsaved = new Observable<UnsavedVideos | null>(null);

/** Null where there are none, or hides them: they stay in this browser. */
export const setUnsaved = (value: UnsavedVideos | null): void => unsaved.set(value);

/** What {@link useUnsaved} has, outside of React. */
export const getUnsaved = unsaved.getSnapshot;

/** Finished videos that could not be saved into the user's folder; null where there are none. */
export function useUnsaved(): UnsavedVideos | null {
  return useSyncExternalStore(unsaved.subscribe, getUnsaved, unsaved.getServerSnapshot);
}
