import * as Comlink from 'comlink';
import { createBackend } from '../..';
import { oddTokenErrors } from './odd-tokens';

/** The errors of a thread that may wait for helpers. */
async function errors(): Promise<readonly number[]> {
  const backend = await createBackend('wasm');
  try {
    return await oddTokenErrors(backend);
  } finally {
    await backend.dispose();
  }
}

Comlink.expose(errors);
