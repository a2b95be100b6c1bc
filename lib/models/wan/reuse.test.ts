import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { relativeRms } from '../../gpu';
import type { StepCache } from '../../pipeline/step-cache';
import { openCheckpoint } from '../../weights/testing/checkpoint';
import { readModelConfig } from './model-config';
import { denoiseTokens, type TokenDenoising, tokenRequest } from './testing/denoise';
import { nodeBackend, tinyFolder } from './testing/model';
import { checkReuse } from './testing/reuse';
import { planDenoising, Transformer } from './transformer';
import { Clip } from './transformer/clip';

const backend = nodeBackend();
const config = await readModelConfig(tinyFolder);
let transformer: Transformer;
const blockRuns = vi.spyOn(Clip.prototype, 'crossFeedForward');
beforeAll(async () => {
  const checkpoint = await openCheckpoint(tinyFolder, 'transformer');
  const options = { precision: 'f32' } as const;
  transformer = await Transformer.load(backend, checkpoint, config.transformer, options);
});
afterAll(() => {
  transformer.dispose();
  return backend.dispose();
});

async function denoised(steps: number, guidance: number, more: Partial<TokenDenoising> = {}) {
  blockRuns.mockClear();
  const request = tokenRequest(config.transformer, steps, guidance, {
    maxChunkTokens: 4096,
    ...more,
  });
  const latents = await denoiseTokens(backend, transformer, request);
  return { latents, passes: blockRuns.mock.calls.length / config.transformer.num_layers };
}

const magcache = (computedShare: number): StepCache => {
  const settings = { ratios: Array(22).fill(0.99), threshold: 0.06, mostSkips: 2, computedShare };
  return { kind: 'magcache', settings };
};

test('what the blocks added is kept and reused, by branch', () =>
  checkReuse(backend, transformer, config.transformer));

test('MagCache runs the passes of its pattern; one that never skips changes no bit', async () => {
  const plain = await denoised(10, 5);
  expect(plain.passes).toBe(20);
  expect(await denoised(10, 5, { cache: magcache(1) })).toEqual(plain);
  // From step 2 on two of three steps are skipped, the last one not: 2, 3, 5, 6 and 8.
  const cached = await denoised(10, 5, { cache: magcache(0.2) });
  expect(cached.passes).toBe(10);
  const error = relativeRms(cached.latents, plain.latents);
  expect(error).toBeGreaterThan(1e-6);
  expect(error).toBeLessThan(0.2);
});

test('its residuals are in the memory plan: one tensor of all tokens for each branch', async () => {
  const size = { frames: 3, height: 4, width: 4 };
  const counted = (reusesBlocks: boolean, promptTokens: number[]) =>
    planDenoising(config.transformer, size, 4096, { precision: 'f32', promptTokens, reusesBlocks });
  const all = { residentBlocks: 99, bufferSets: 0 };
  const tensor = 12 * 64 * 4;
  for (const prompts of [[5], [5, 3]]) {
    const [without, withThem] = [await counted(false, prompts), await counted(true, prompts)];
    expect(withThem.bytes(all).activations - without.bytes(all).activations).toBe(
      prompts.length * tensor,
    );
  }
});

test('guidance can end before the last step', async () => {
  const [guided, plain] = [await denoised(4, 5), await denoised(4, 1)];
  expect(await denoised(4, 5, { guidedSteps: 4 })).toEqual(guided);
  expect(await denoised(4, 5, { guidedSteps: 0 })).toEqual(plain);
  const partly = await denoised(4, 5, { guidedSteps: 2 });
  expect(partly.passes).toBe(6);
  expect(partly.latents).not.toEqual(guided.latents);
});
