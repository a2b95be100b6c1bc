import * as Comlink from 'comlink';
import { expect, test } from 'vitest';
import { createBackend } from '../../../gpu';
import { oddImageErrors } from './testing/odd-images';

test('vectors of WebAssembly compute images as the runtime does, with the products of this browser', async () => {
  const backend = await createBackend('wasm');
  const errors = await oddImageErrors(backend);
  expect(errors).toHaveLength(6);
  expect(Math.max(...errors)).toBeLessThan(1e-6);
  await backend.dispose();

  const worker = new Worker(new URL('./testing/odd-images-worker.ts', import.meta.url), {
    type: 'module',
  });
  // Several threads give the same bits as one.
  expect(crossOriginIsolated).toBe(true);
  expect(await Comlink.wrap<() => Promise<readonly number[]>>(worker)()).toEqual(errors);
  worker.terminate();
});
