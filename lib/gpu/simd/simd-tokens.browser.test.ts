import * as Comlink from 'comlink';
import { expect, test } from 'vitest';
import { createBackend } from '..';
import { oddTokenErrors } from './testing/odd-tokens';

test('vectors compute tokens and texts as the runtime does, with the products of this browser', async () => {
  const backend = await createBackend('wasm');
  const errors = await oddTokenErrors(backend);
  expect(errors).toHaveLength(4);
  expect(Math.max(...errors)).toBeLessThan(1e-5);
  await backend.dispose();

  const worker = new Worker(new URL('./testing/odd-tokens-worker.ts', import.meta.url), {
    type: 'module',
  });
  // Several threads give the same bits as one.
  expect(crossOriginIsolated).toBe(true);
  expect(await Comlink.wrap<() => Promise<readonly number[]>>(worker)()).toEqual(errors);
  worker.terminate();
});
