import * as Comlink from 'comlink';
import { createBackend } from '../../../../gpu';
import { oddImageErrors } from './odd-images';

/** The errors of a thread that may wait for helpers. */
async function errors(): Promise<readonly number[]> {
  const backend = await createBackend('wasm');
  try {
    return await oddImageErrors(backend);
  } finally {
    await backend.dispose();
  }
}

Comlink.expose(errors);
