import { expect, test } from 'vitest';
import { KinoraError } from '../contract';
import { type Category, CountingBackend } from '../gpu';
import type { ElementType } from '../onnx';
import { openCheckpoint } from '../weights';
import { readModelConfig } from './config';
import { denoise } from './denoise';
import { createScheduler } from './scheduler';
import { tinyFolder } from './testing/model';
import { Transformer } from './transformer';

/** A device that has memory for some more tensors only. */
class ScarceBackend extends CountingBackend {
  left = Number.POSITIVE_INFINITY;

  override tensor<T extends ElementType>(dtype: T, dims: readonly number[], category: Category) {
    if (this.left <= 0) throw new KinoraError('OUT_OF_MEMORY');
    this.left -= 1;
    return super.tensor(dtype, dims, category);
  }
}

test('wherever the memory ends, what was taken for the clip is given back', async () => {
  const { transformer: config } = await readModelConfig(tinyFolder);
  const backend = new ScarceBackend();
  const checkpoint = await openCheckpoint(tinyFolder, 'transformer');
  const transformer = await Transformer.load(backend, checkpoint, config, { precision: 'f32' });
  const weights = backend.counters().categories.weights?.live ?? 0;
  const live = () => {
    const { categories, liveBytes } = backend.counters();
    return liveBytes - (categories.runtime?.live ?? 0);
  };
  const run = () =>
    denoise(backend, transformer, {
      size: { frames: 3, height: 2, width: 4 },
      held: new Float32Array(2 * 192),
      noise: new Float32Array(6 * 192),
      scheduler: createScheduler({ kind: 'unipc', steps: 1, flowShift: 5 }),
      guidanceScale: 5,
      prompt: new Float32Array(5 * config.text_dim),
      negativePrompt: new Float32Array(3 * config.text_dim),
      maxChunkTokens: 2,
    });
  const before = backend.counters().allocations;
  await run();
  const needed = backend.counters().allocations - before;
  expect(needed).toBeGreaterThan(40);
  expect(live()).toBe(weights);
  for (let left = 0; left < 40; left++) {
    backend.left = left;
    await expect(run()).rejects.toMatchObject({ state: null, cause: { code: 'OUT_OF_MEMORY' } });
    expect(live()).toBe(weights);
  }
});
