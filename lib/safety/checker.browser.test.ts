/** @module-tag full */
import { afterAll, expect, test } from 'vitest';
import { type Backend, createBackend, relativeRms } from '../gpu';
import type { KernelChoice } from '../gpu/kernels';
import { decodeImage } from '../video';
import { httpFolder } from '../weights';
import { openSafetyChecker } from './checker';
import { syntheticNetwork } from './testing/synthetic';
import { vitClassifier } from './vit';

const base = new URL('/lib/safety/goldens/', location.href);
const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());

/** Small tiles: a large one takes seconds to compile on a CPU. */
const exact: KernelChoice = {
  mode: 'exact',
  linear: { rows: 32, columns: 32, threadRows: 4, threadColumns: 4, shared: 'f32' },
  attention: { queries: 32, keys: 64, shared: 'f32' },
  convolution: { pixels: 16, filters: 16, threadPixels: 1, threadFilters: 4 },
};

test.each([
  ['the runtime', null],
  ['our kernels', exact],
])(
  'an image that the browser decodes has the score of the reference by %s, and nothing stays',
  async (_, kernels) => {
    backend.kernels = kernels;
    const checker = await openSafetyChecker(httpFolder(new URL('timm/', base)), {
      model: 'tiny-vit',
      sha256: 'a'.repeat(64),
    });
    const names = ['wide', 'tall', 'small'];
    const squares = [];
    for (const name of names) {
      const response = await fetch(new URL(`images/${name}.png`, base));
      squares.push(checker.squares(await decodeImage(await response.blob())));
    }
    const scores = await checker.score(backend, squares, new AbortController().signal);
    const expected = [0.695793, 0.040687, 0.304207];
    for (const [i, score] of scores.entries()) expect(score).toBeCloseTo(expected[i] ?? 0, 5);
    await backend.releaseSessions();
    expect(backend.counters().liveBytes).toBe(0);
  },
);

test('at its real size the network gives the numbers of the CPU', { tags: ['full'] }, async () => {
  backend.kernels = null;
  const classifier = vitClassifier(syntheticNetwork());
  const pixels = Uint8ClampedArray.from(
    { length: 3 * 384 ** 2 },
    (_, i) => 128 + 90 * Math.sin(i / 7),
  );
  const logits = async (on: Backend) => {
    const run = await classifier.open(on, new AbortController().signal);
    try {
      return await run.logits(pixels);
    } finally {
      run.dispose();
    }
  };
  const cpu = await createBackend('wasm');
  expect(relativeRms(await logits(backend), await logits(cpu))).toBeLessThan(1e-4);
  await cpu.dispose();
});
