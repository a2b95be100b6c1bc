import { expect, test } from 'vitest';
import { chunkLadder, measureChunkTokens, queryChunkTokens } from './chunk-size';
import { readModelConfig } from './model-config';
import { nodeBackend, realFolder } from './testing/model';

const { transformer: real } = await readModelConfig(realFolder);

test('a chunk’s attention takes about 0.3 s at the measured rate', () => {
  // 0.3·3e12 / (64·4·27280·3072) = 41.9 tiles of 64; the next power
  // of two is 32, so two of the 5B's frames (1,760 tokens) go through a block together.
  const tokens = queryChunkTokens(real, 27_280, 3e12);
  expect(tokens).toBe(32 * 64);
  const seconds = (4 * tokens * 27_280 * 3072) / 3e12;
  expect(Math.abs(Math.log2(seconds / 0.3))).toBeLessThan(0.5);
});

test('a slow device still gets one tile, a fast one no more than memory likes', () => {
  expect(queryChunkTokens(real, 27_280, 1e6)).toBe(64);
  expect(queryChunkTokens(real, 27_280, 1e15)).toBe(4096);
});

test('a measurement that is a few percent off gives the same size', () => {
  const sizes = [2.8e12, 3e12, 3.2e12].map((rate) => queryChunkTokens(real, 27_280, rate));
  expect(new Set(sizes).size).toBe(1);
});

test('smaller chunks are halves, down to those that still save memory', () => {
  expect(chunkLadder(2048)).toEqual([1024, 512]);
  expect(chunkLadder(512)).toEqual([]);
});

test('the CPU has no dispatch that could take too long', async () => {
  const backend = nodeBackend();
  expect(await measureChunkTokens(backend, real, 27_280)).toBe(4096);
  expect(backend.counters().allocations).toBe(0);
  await backend.dispose();
});
