import { readFile } from 'node:fs/promises';
import * as ort from 'onnxruntime-web';
import { afterAll, describe, expect, test } from 'vitest';
import { parseManifest } from '../contract';
import { type Runtime, WasmBackend } from '../gpu';
import type { BlockWork, ClipDenoiser } from './model';
import { cachedVelocity, magCacheSkips, type StepCache } from './step-cache';

const backend = new WasmBackend(() => ort as unknown as Runtime);
afterAll(() => backend.dispose());

/** Runs a schedule of latents x = 8 − step over a model with v = x + 1 and v = 2; what the model was asked. */
async function run(cache: StepCache, steps: number, guidedSteps: number, from = 0) {
  const asked: (readonly BlockWork[] | number)[] = [];
  const clip: ClipDenoiser = {
    rowWidth: 1,
    pack: (latents) => latents,
    unpack: (rows) => rows,
    dispose: () => undefined,
    async velocity(timestep, sample, velocities, { blocks } = {}) {
      asked.push(blocks ?? timestep);
      const x = await backend.read(sample);
      for (const [i, target] of velocities.entries()) {
        backend.write(
          target,
          x.map((value) => (i === 0 ? value + 1 : 2)),
        );
      }
    },
  };
  const tensors = [0, 1, 2].map(() => backend.tensor('float32', [1, 1], 'latents'));
  const [sample, ...velocities] = tensors;
  if (!sample) throw new Error('there is no tensor');
  const { velocity } = cachedVelocity(clip, cache, steps);
  const outputs: number[][] = [];
  for (let step = from; step < steps; step++) {
    backend.write(sample, Float32Array.of(8 - step));
    const wanted = step < guidedSteps ? velocities : velocities.slice(0, 1);
    await velocity(step, step, sample, wanted);
    const read: number[] = [];
    for (const target of wanted) read.push(...(await backend.read(target)));
    outputs.push(read);
  }
  for (const tensor of tensors) tensor.dispose();
  return { asked, outputs };
}

test('without a cache the model is asked at every step', async () => {
  const { asked, outputs } = await run({ kind: 'none' }, 3, 2);
  expect(asked).toEqual([0, 1, 2]);
  expect(outputs).toEqual([[9, 2], [8, 2], [7]]);
});

test('MagCache keeps before it reuses, also where a run goes on in the middle', async () => {
  const settings = { ratios: [0.99, 0.99], threshold: 0.06, mostSkips: 2, computedShare: 0.4 };
  const { asked } = await run({ kind: 'magcache', settings }, 6, 4);
  // Steps 2 and 3 are skipped; step 4 has no guidance any more; the last one is computed.
  expect(asked).toEqual([
    ['compute', 'compute'],
    ['keep', 'keep'],
    ['reuse', 'reuse'],
    ['reuse', 'reuse'],
    ['compute'],
    ['compute'],
  ]);
  const resumed = await run({ kind: 'magcache', settings }, 6, 6, 2);
  expect(resumed.asked.slice(0, 2)).toEqual([
    ['keep', 'keep'],
    ['reuse', 'reuse'],
  ]);
});

const file = new URL('../../public/models/wan2.2-ti2v-5b.json', import.meta.url);
const { magcache } = parseManifest(JSON.parse(await readFile(file, 'utf8')));

describe('the steps that MagCache skips with the ratios of the 5B', () => {
  // By hand from the published rule; upstream also skips the last step, which is always computed here.
  test.each([
    [
      50,
      [10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35, 37, 39, 41, 43, 45],
    ],
    [30, [6, 7, 9, 10, 12, 13, 15, 16, 18, 19, 21, 23, 25]],
    [20, [4, 5, 7, 8, 10, 11, 13, 14, 16]],
    [1, []],
  ])('of %i steps', (steps, expected) => {
    if (!magcache) throw new Error('the manifest has no ratios');
    for (const branch of magCacheSkips(steps, magcache)) {
      expect(branch).toHaveLength(steps);
      expect(branch.flatMap((skips, step) => (skips ? [step] : []))).toEqual(expected);
    }
  });

  test('each branch has ratios of its own', () => {
    const settings = { ratios: [0.99, 0.5, 0.99, 0.99], computedShare: 0, mostSkips: 9 };
    const [conditional, other] = magCacheSkips(3, { ...settings, threshold: 0.06 });
    expect(conditional).toEqual([true, true, false]);
    expect(other).toEqual([true, false, false]);
  });
});
