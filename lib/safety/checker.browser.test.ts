/** @module-tag full */
import { afterAll, expect, test } from 'vitest';
import { type Backend, createBackend, relativeRms } from '../gpu';
import { decodeImage } from '../video';
import { httpFolder } from '../weights';
import { openSafetyChecker } from './checker';
import { syntheticNetwork } from './testing/synthetic';
import { vitClassifier } from './vit';

const base = new URL('/lib/safety/goldens/', location.href);
const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());

test('an image that the browser decodes has the score of the reference, and nothing stays', async () => {
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
});

test('at its real size the network gives the numbers of the CPU', { tags: ['full'] }, async () => {
  const classifier = vitClassifier(syntheticNetwork());
  const pixels = Float32Array.from({ length: 3 * 384 ** 2 }, (_, i) => Math.sin(i / 7));
  const logits = async (on: Backend) => {
    const run = await classifier.start(on, 1, new AbortController().signal);
    try {
      await run.compute(pixels);
      return await run.read('logits');
    } finally {
      run.dispose();
    }
  };
  const cpu = await createBackend('wasm');
  expect(relativeRms(await logits(backend), await logits(cpu))).toBeLessThan(1e-4);
  await cpu.dispose();
});
