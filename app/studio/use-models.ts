import { useEffect, useState } from 'react';
import { type ErrorRecord, KinoraError, toKinoraError } from '../../lib/contract/errors';
import { type ModelManifest, parseManifest } from '../../lib/contract/manifest';

export type ModelList =
  | { readonly status: 'loading' }
  | { readonly status: 'ready'; readonly models: readonly ModelManifest[] }
  | { readonly status: 'failed'; readonly error: ErrorRecord };

/** The models that this server offers, for the picker. */
export function useModels(): ModelList {
  const [list, setList] = useState<ModelList>({ status: 'loading' });
  useEffect(() => {
    let current = true;
    loadModels().then(
      (models) => current && setList({ status: 'ready', models }),
      (thrown: unknown) =>
        current && setList({ status: 'failed', error: toKinoraError(thrown).toRecord() }),
    );
    return () => {
      current = false;
    };
  }, []);
  return list;
}

let loading: Promise<readonly ModelManifest[]> | null = null;

/**
 * Reads `models/index.json` and a manifest per id; once per page, unless it failed.
 *
 * @throws KinoraError `MODEL_FILE_MISSING` or `MODEL_MANIFEST_INVALID`
 */
export function loadModels(): Promise<readonly ModelManifest[]> {
  loading ??= fetchModels().catch((thrown: unknown) => {
    loading = null;
    throw thrown;
  });
  return loading;
}

/**
 * The chosen model, or the first one where nothing was chosen yet.
 *
 * A choice that is not on the list is no choice: it may come from another server's video.
 */
export function pickModel(models: readonly ModelManifest[], id: string): ModelManifest | undefined {
  return models.find((model) => model.id === id) ?? models[0];
}

async function fetchModels(): Promise<readonly ModelManifest[]> {
  const entries = (await fetchJson('/models/index.json')) as readonly { id: string }[];
  return Promise.all(
    entries.map(async ({ id }) => parseManifest(await fetchJson(`/models/${id}.json`))),
  );
}

async function fetchJson(path: string): Promise<unknown> {
  const response = await fetch(path);
  if (!response.ok) {
    throw new KinoraError('MODEL_FILE_MISSING', `${path} is missing (HTTP ${response.status}).`);
  }
  return response.json();
}
