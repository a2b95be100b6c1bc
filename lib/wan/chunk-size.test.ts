import { expect, test } from 'vitest';
import { measureChunkTokens, queryChunkTokens } from './chunk-size';
import { readModelConfig } from './config';
import { nodeBackend, realFolder, tinyFolder } from './testing/model';

const { transformer: real } = await readModelConfig(realFolder);

test('a chunk’s attention takes about 0.3 s at the measured rate', () => {
  // Reference onnxruntime-web.md §3.2: 0.3·3e12 / (64·4·27280·3072) = 41.9 tiles of 64, so 42: with
  // them three of the 5B's frames (2,640 tokens) go through a block together.
  const tokens = queryChunkTokens(real, 27_280, 3e12);
  expect(tokens).toBe(42 * 64);
  const seconds = (4 * tokens * 27_280 * 3072) / 3e12;
  expect(Math.abs(seconds - 0.3)).toBeLessThan(0.005);
});

test('a slow device still gets one tile, a fast one no more than memory likes', () => {
  expect(queryChunkTokens(real, 27_280, 1e6)).toBe(64);
  expect(queryChunkTokens(real, 27_280, 1e15)).toBe(4096);
});

test('the measurement runs on the device and leaves nothing there', async () => {
  const { transformer } = await readModelConfig(tinyFolder);
  const backend = nodeBackend();
  const tokens = await measureChunkTokens(backend, transformer, 300);
  expect(tokens % 64).toBe(0);
  expect(tokens).toBeGreaterThanOrEqual(64);
  expect(tokens).toBeLessThanOrEqual(4096);
  expect(backend.counters().liveBytes).toBe(0);
  await backend.dispose();
});
