import { expect, test } from 'vitest';
import { nodeBackend } from '../testing/model';
import { oddImageErrors } from './testing/odd-images';

test('vectors of WebAssembly compute images as the runtime does, without fused products', async () => {
  const backend = nodeBackend();
  const errors = await oddImageErrors(backend);
  expect(errors).toHaveLength(6);
  expect(Math.max(...errors)).toBeLessThan(1e-6);
  expect(backend.counters().liveBytes).toBe(0);
});
