/** @module-tag full */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, createBackend, relativeRms } from '../../gpu';
import { httpFolder, openCheckpoint } from '../../weights';
import { Transformer } from '../wan/transformer';
import { type ModelConfig, readModelConfig } from './config';
import {
  denoiseTokens,
  perFrame,
  type TokenDenoising,
  tokenRequest,
  tokens,
  values,
  width,
} from './testing/denoise';
import { checkReuse } from './testing/reuse';

const folder = httpFolder(new URL('/lib/models/wan22/goldens/model/', location.href));

describe('denoising on WebGPU', () => {
  let backend: Backend;
  let config: ModelConfig;
  let transformer: Transformer;

  beforeAll(async () => {
    backend = await createBackend('webgpu');
    config = await readModelConfig(folder);
    const checkpoint = await openCheckpoint(folder, 'transformer');
    transformer = await Transformer.load(backend, checkpoint, config.transformer, {
      precision: 'f32',
    });
  });
  afterAll(() => backend.dispose());

  const request = (steps: number, guidance: number, more: Partial<TokenDenoising> = {}) =>
    tokenRequest(config.transformer, steps, guidance, { maxChunkTokens: 4096, ...more });

  /** Live bytes of all that is not the runtime's own. */
  function ownBytes(): number {
    const { categories, liveBytes } = backend.counters();
    return liveBytes - (categories.runtime?.live ?? 0);
  }

  test.each([1, 5])(
    'In the denoising loop no GPU allocation after the first step and no readback but the latents (guidance %i)',
    async (guidance) => {
      const counts: { allocations: number; readbacks: number }[] = [];
      const before = backend.counters();
      // One frame per chunk: conditioning and noisy chunks of several kinds take part.
      await denoiseTokens(
        backend,
        transformer,
        request(4, guidance, {
          maxChunkTokens: perFrame,
          afterStep: () => {
            counts.push(backend.counters());
            return false;
          },
        }),
      );
      expect(counts).toHaveLength(4);
      expect(counts.map(({ allocations }) => allocations)).toEqual(
        Array(4).fill(counts[0]?.allocations),
      );
      expect(counts[0]?.allocations).toBeGreaterThan(before.allocations);
      expect(counts.map(({ readbacks }) => readbacks - before.readbacks)).toEqual([1, 2, 3, 4]);
      expect(backend.counters().readbacks - before.readbacks).toBe(4);
    },
  );

  test('small chunks and one large one give the same latents, and the conditioning frame stays', {
    tags: ['full'],
  }, async () => {
    const small = await denoiseTokens(
      backend,
      transformer,
      request(3, 5, { maxChunkTokens: perFrame }),
    );
    const large = await denoiseTokens(backend, transformer, request(3, 5));
    expect(relativeRms(small, large)).toBeLessThan(1e-5);
    expect(large.slice(0, perFrame * width)).toEqual(values(0, perFrame * width));
    expect(large.every(Number.isFinite)).toBe(true);
    // Something happened to the others.
    expect(relativeRms(large, values(1, tokens * width))).toBeGreaterThan(0.1);
  });

  test('what the blocks added is kept and reused, by branch', () =>
    checkReuse(backend, transformer, config.transformer));

  test('true from afterStep ends the loop with that prediction', async () => {
    const before = ownBytes();
    const predictions: Float32Array[] = [];
    const result = await denoiseTokens(
      backend,
      transformer,
      request(10, 1, {
        afterStep: (step, prediction) => {
          predictions.push(prediction.slice());
          return step === 1;
        },
      }),
    );
    expect(predictions).toHaveLength(2);
    expect(result).toEqual(predictions[1]);
    expect(result).not.toEqual(predictions[0]);
    expect(ownBytes()).toBe(before);
  });
});
