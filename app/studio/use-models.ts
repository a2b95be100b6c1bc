import type { ErrorRecord } from '../../lib/contract/errors';
import type { LoraEntry, ModelEntry } from '../../lib/contract/library';
import { getLibrary, useLibrary } from '../library';

export type ModelList =
  | { readonly status: 'loading' }
  | {
      readonly status: 'ready';
      readonly models: readonly ModelEntry[];
      readonly loras: readonly LoraEntry[];
    }
  | { readonly status: 'failed'; readonly error: ErrorRecord };

/** The models that this browser can run or fetch, ready ones first, and its LoRAs. */
export function useModels(): ModelList {
  const library = useLibrary();
  if (library.status !== 'ready') return library;
  const { models, loras } = library.snapshot;
  return { status: 'ready', models: readyFirst(models), loras };
}

/**
 * The models as they are at this moment.
 *
 * @throws KinoraError what the library rejects with
 */
export async function loadModels(): Promise<readonly ModelEntry[]> {
  return readyFirst((await getLibrary().call((api) => api.snapshot())).models);
}

/**
 * The chosen model, ready or not; where nothing was chosen yet, a ready one, and rather one that
 * came from the hub than a bundled sample.
 *
 * A choice that is not on the list is no choice: it may come from another server's video.
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

function readyFirst(models: readonly ModelEntry[]): ModelEntry[] {
  return [...models].sort((a, b) => Number(b.ready) - Number(a.ready));
}
