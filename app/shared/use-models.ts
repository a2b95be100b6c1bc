import { useMemo } from 'react';
import type { ErrorRecord, LoraEntry, ModelEntry } from '../../lib/contract';
import { getLibrary, useLibrary } from '../library';

export type ModelList =
  | { readonly status: 'loading' }
  | {
      readonly status: 'ready';
      readonly models: readonly ModelEntry[];
      readonly loras: readonly LoraEntry[];
    }
  | { readonly status: 'failed'; readonly error: ErrorRecord };

/** The models that this browser can run or download, ready ones first, and its LoRAs. */
export function useModels(): ModelList {
  const library = useLibrary();
  return useMemo(() => {
    if (library.status !== 'ready') return library;
    const { models, loras } = library.snapshot;
    return { status: 'ready', models: readyFirst(models), loras };
  }, [library]);
}

/**
 * Reads the current list of models.
 *
 * @throws KinoraError of the library
 */
export async function loadModels(): Promise<readonly ModelEntry[]> {
  return readyFirst((await getLibrary().call((api) => api.snapshot())).models);
}

/**
 * The selected model, ready or not. Without a selection, a ready model, preferably a downloaded one.
 *
 * @param id may be missing in the list, for example if it comes from a video of another server; then it
 *   counts as no selection
 */
export function pickModel(models: readonly ModelEntry[], id: string): ModelEntry | undefined {
  const ready = models.filter((model) => model.ready);
  return (
    models.find(({ manifest }) => manifest.id === id) ??
    ready.find(({ origin }) => origin !== 'bundled') ??
    ready[0] ??
    models[0]
  );
}

/** The models of a list that are shown, ready ones first. */
export function readyFirst(models: readonly ModelEntry[]): ModelEntry[] {
  return models.filter(({ hidden }) => !hidden).sort((a, b) => Number(b.ready) - Number(a.ready));
}
