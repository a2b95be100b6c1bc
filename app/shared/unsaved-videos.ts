import { useSyncExternalStore } from 'react';
import type { ErrorRecord } from '../../lib/contract/errors';

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
let unsaved: UnsavedVideos | null = null;
const listeners = new Set<() => void>();

/** Null where there are none, or hides them: they stay in this browser. */
export function setUnsaved(value: UnsavedVideos | null): void {
  unsaved = value;
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** What {@link useUnsaved} has, outside of React. */
export const getUnsaved = (): UnsavedVideos | null => unsaved;

/** Finished videos that could not be saved into the user's folder; null where there are none. */
export function useUnsaved(): UnsavedVideos | null {
  return useSyncExternalStore(subscribe, getUnsaved, () => null);
}
