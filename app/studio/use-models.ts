import { useEffect, useState } from 'react';
import { type ErrorRecord, KinoraError, toKinoraError } from '../../lib/contract/errors';
import { type ModelManifest, parseManifest } from '../../lib/contract/manifest';

export type ModelList =
  | { readonly status: 'loading' }
  | { readonly status: 'ready'; readonly models: readonly ModelManifest[] }
  | { readonly status: 'failed'; readonly error: ErrorRecord };

/** The models that this server offers: `models/index.json` and a manifest per id. */
export function useModels(): ModelList {
  const [list, setList] = useState<ModelList>({ status: 'loading' });
  useEffect(() => {
    const abort = new AbortController();
    fetchModels(abort.signal).then(
      (models) => setList({ status: 'ready', models }),
      (thrown: unknown) => {
        if (abort.signal.aborted) return;
        setList({ status: 'failed', error: toKinoraError(thrown).toRecord() });
      },
    );
    return () => abort.abort();
  }, []);
  return list;
}

async function fetchModels(signal: AbortSignal): Promise<ModelManifest[]> {
  const entries = (await fetchJson('/models/index.json', signal)) as readonly { id: string }[];
  return Promise.all(
    entries.map(async ({ id }) => parseManifest(await fetchJson(`/models/${id}.json`, signal))),
  );
}

async function fetchJson(path: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(path, { signal });
  if (!response.ok) {
    throw new KinoraError('MODEL_FILE_MISSING', `${path} is missing (HTTP ${response.status}).`);
  }
  return response.json();
}
