/** @module-tag full */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Precision } from '../../contract';
import { type Backend, createBackend, relativeRms, toBF16 } from '../../gpu';
import { familyOf, type KernelChoice, type Storage } from '../../gpu/kernels';
import { runParity } from '../../parity';
import type { Residency } from '../../pipeline/memory/memory-plan';
import { type Checkpoint, httpFolder, subfolder } from '../../weights';
import { openCheckpoint } from '../../weights/testing/checkpoint';
import type { LoraBranches } from '../layers/lora';
import type { TransformerConfig } from './config-schemas';
import { readModelConfig } from './model-config';
import { denoiseTokens, tokenRequest, tokens, values } from './testing/denoise';
import { checkReuse } from './testing/reuse';
import { planDenoising, Transformer } from './transformer';
import { transformerTensors } from './wan-tensors';

/** Small tiles: a large one takes seconds to compile on a CPU. */
const choice = {
  mode: 'exact',
  linear: { rows: 32, columns: 32, threadRows: 4, threadColumns: 4, shared: 'f32' },
  attention: { queries: 32, keys: 64, shared: 'f32' },
  convolution: null,
} as const satisfies KernelChoice;

/** The same tiles with 8-bit products. */
const fastChoice = {
  ...choice,
  mode: 'fast',
  fastLinear: choice.linear,
  fastAttention: choice.attention,
} as const satisfies KernelChoice;

const goldens = httpFolder(new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/', location.href));
const loraFiles = ['a_kohya_alpha.safetensors', 'b_lightx2v_diff_b.safetensors'];

/** Factors in bf16 beside every linear of the blocks. */
function narrowLora(config: TransformerConfig): LoraBranches {
  const shapes = transformerTensors(config);
  const rank = 12;
  const branches = [...shapes].flatMap(([name, shape], i) => {
    const [out = 0, inner = 0] = shape;
    if (!/^blocks.*weight$/.test(name) || shape.length !== 2) return [];
    const [down, up] = [values(i, rank * inner), values(i + 1, out * rank)].map((factor) =>
      toBF16(factor.map((value) => value / 8)),
    );
    return down && up ? [[name.slice(0, -'.weight'.length), { rank, down, up }] as const] : [];
  });
  return { branches: new Map(branches), deltas: new Map() };
}

describe('the transformer in kernels of our own', () => {
  let backend: Backend;
  let checkpoint: Checkpoint;
  let config: TransformerConfig;
  beforeAll(async () => {
    backend = await createBackend('webgpu');
    const model = subfolder(goldens, 'model');
    config = (await readModelConfig(model)).transformer;
    checkpoint = await openCheckpoint(model, 'transformer');
  });
  afterAll(() => backend.dispose());

  const storeIn = (storage: Storage, of: KernelChoice = choice) => {
    backend.kernels = { ...of, storage };
  };

  test.each([
    [
      'f32',
      1e-4,
      [
        'prompt_embeds',
        'negative_prompt_embeds',
        'transformer block 0',
        'transformer block 1',
        'transformer velocity',
        'velocity, a_kohya_alpha 0.8 + b_lightx2v_diff_b 1.7',
        'latents, a_kohya_alpha 0.8 + b_lightx2v_diff_b 1.7',
      ],
    ],
    [
      'f16',
      3e-3,
      [
        'latents, guidance 5',
        'latents, guidance 1',
        'video, from prompt and image',
        'latents, 8-bit weights',
      ],
    ],
  ] as const)(
    'agrees with the goldens, stored in %s',
    {
      timeout: 250_000,
    },
    async (storage, tolerance, expected) => {
      storeIn(storage);
      const only =
        storage === 'f32'
          ? ['text', 'transformer', 'LoRA, one pass', 'LoRA']
          : ['latents', 'latents, 8-bit weights'];
      backend.compute?.used.clear();
      const lines = await runParity(goldens, backend, { loraFiles, tolerance, only });
      expect(lines.filter(({ ok }) => !ok)).toEqual([]);
      expect(lines.map(({ stage }) => stage)).toEqual(expected);
      // The biases of the text encoder, and its prompts in the latents' runs.
      const used = [...(backend.compute?.used ?? [])].map((key) => familyOf({ name: key }));
      expect(used).toContain('gather');
    },
  );

  test('fast agrees with the goldens as it may: both guidance branches, LoRA, weights of 8 and of 4 bits', {
    timeout: 400_000,
  }, async () => {
    storeIn('f16', fastChoice);
    const bound = 5e-2;
    backend.compute?.used.clear();
    const only = ['transformer', 'latents', 'latents, 8-bit weights', 'LoRA, one pass', 'LoRA'];
    const lines = await runParity(goldens, backend, { loraFiles, only });
    expect(Math.max(...lines.map(({ tolerance }) => tolerance))).toBe(bound);
    expect(lines.filter(({ ok }) => !ok)).toEqual([]);
    expect(lines.map(({ stage }) => stage)).toEqual(
      expect.arrayContaining([
        'latents, guidance 5',
        'latents, guidance 1',
        'video, from prompt and image',
      ]),
    );
    const used = [...(backend.compute?.used ?? [])].map((key) => familyOf({ name: key }));
    expect(used).toEqual(expect.arrayContaining(['fastLinear', 'fastAttention']));
    // The 4-bit weights alone are further from the goldens: the runtime computes with the same ones.
    const fast = await denoised(checkpoint, config, tokens, undefined, 'int4');
    backend.kernels = null;
    const expected = await denoised(checkpoint, config, tokens, undefined, 'int4');
    const error = relativeRms(fast, expected);
    expect(error).toBeLessThan(bound);
    // Integers err, so that an exact result would mean that they were not used.
    expect(error).toBeGreaterThan(1e-3);
  });

  async function denoised(
    weights: Checkpoint,
    of: TransformerConfig,
    maxChunkTokens: number,
    residency?: Residency,
    precision: Precision = 'int8',
    lora?: LoraBranches,
  ): Promise<Float32Array> {
    const options = { precision, ...(lora && { lora }) };
    const model = await Transformer.load(backend, weights, of, options, residency);
    try {
      return await denoiseTokens(backend, model, tokenRequest(of, 2, 5, { maxChunkTokens }));
    } finally {
      model.dispose();
    }
  }

  test.each([
    ['exact', choice],
    ['fast', fastChoice],
  ] as const)(
    '%s: chunks and streamed blocks change no bit; the peak lies under the plan',
    {
      timeout: 250_000,
    },
    async (_, kernels) => {
      storeIn('f16', kernels);
      const expected = await denoised(checkpoint, config, tokens);
      expect(await denoised(checkpoint, config, 1)).toEqual(expected);
      const streamed = { residentBlocks: 0, bufferSets: 2 };
      await backend.releaseSessions();
      expect(backend.counters().liveBytes).toBe(0);
      backend.resetPeaks();
      expect(await denoised(checkpoint, config, tokens, streamed)).toEqual(expected);
      // Both blocks are in the two sets, so that the plan is that of all blocks.
      const size = { frames: 3, height: 2, width: 4 };
      const promptTokens = [5, 3];
      const counted = { precision: 'int8', promptTokens, kernels } as const;
      const plan = await planDenoising(config, size, tokens, counted);
      expect(backend.peakBytes).toBeLessThanOrEqual(plan.bytes(streamed).peak);
    },
  );

  test.each([
    ['exact', choice, 3e-3],
    ['fast', fastChoice, 5e-2],
  ] as const)(
    '%s: a LoRA in bf16 agrees with the runtime, and streamed with its blocks it gives the same bits',
    { timeout: 250_000 },
    async (_, kernels, bound) => {
      const lora = narrowLora(config);
      const run = (residency?: Residency, adapters?: LoraBranches) =>
        denoised(checkpoint, config, tokens, residency, 'int8', adapters);
      storeIn('f16', kernels);
      const [plain, adapted] = [await run(), await run(undefined, lora)];
      expect(await run({ residentBlocks: 0, bufferSets: 2 }, lora)).toEqual(adapted);
      backend.kernels = null;
      const expected = await run(undefined, lora);
      expect(relativeRms(adapted, expected)).toBeLessThan(bound);
      expect(relativeRms(plain, expected)).toBeGreaterThan(2 * bound);
    },
  );

  test('what the blocks added is kept and reused, by branch', { timeout: 250_000 }, async () => {
    storeIn('f32');
    const model = await Transformer.load(backend, checkpoint, config, { precision: 'f32' });
    try {
      await checkReuse(backend, model, config);
    } finally {
      model.dispose();
    }
  });
});
