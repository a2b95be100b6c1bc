/** @module-tag full */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, createBackend } from '../../gpu';
import { type Compute, type KernelChoice, OwnKernels, type Storage } from '../../gpu/kernels';
import type { Residency } from '../../pipeline/memory/plan';
import type { ParityLine } from '../../pipeline/parity';
import { type Checkpoint, httpFolder, openCheckpoint } from '../../weights';
import { syntheticCheckpoint } from './benchmark/synthetic';
import { readModelConfig, type TransformerConfig } from './config';
import { openGolden } from './parity/golden';
import { stages } from './parity/stages';
import { countDenoising } from './plan';
import { transformerTensors } from './tensors';
import { denoiseTokens, tokenRequest, tokens } from './testing/denoise';
import { parityContext } from './testing/parity';
import { checkReuse } from './testing/reuse';
import { Transformer } from './transformer';

/** Small tiles: a large one takes seconds to compile on a CPU. */
const choice = {
  mode: 'exact',
  linear: { rows: 32, columns: 32, threadRows: 4, threadColumns: 4, shared: 'f32' },
  attention: { queries: 32, keys: 64, shared: 'f32' },
  convolution: null,
} as const satisfies KernelChoice;

const goldens = httpFolder(new URL('/lib/models/wan22/goldens/', location.href));
const loraFiles = ['a_kohya_alpha.safetensors', 'b_lightx2v_diff_b.safetensors'];

describe('the transformer in kernels of our own', () => {
  let backend: Backend;
  let checkpoint: Checkpoint;
  let config: TransformerConfig;
  beforeAll(async () => {
    backend = await createBackend('webgpu');
    const golden = await openGolden(goldens);
    config = (await readModelConfig(golden.model)).transformer;
    checkpoint = await openCheckpoint(golden.model, 'transformer');
  });
  afterAll(() => backend.dispose());

  const storeIn = (storage: Storage) => {
    backend.kernels = new OwnKernels(backend, { ...choice, storage });
  };

  test.each([
    [
      'f32',
      { stageTolerance: 1e-4, loopTolerance: 1e-4 },
      [
        'transformer block 0',
        'transformer block 1',
        'transformer velocity',
        'velocity, a_kohya_alpha 0.8 + b_lightx2v_diff_b 1.7',
        'latents, a_kohya_alpha 0.8 + b_lightx2v_diff_b 1.7',
      ],
    ],
    [
      'f16',
      { stageTolerance: 1e-3, loopTolerance: 3e-3 },
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
    async (storage, tolerances, expected) => {
      storeIn(storage);
      const golden = await openGolden(goldens);
      const context = { ...parityContext(golden, backend), ...tolerances, loraFiles };
      const lines: ParityLine[] = [];
      for (const { name, run } of stages) {
        const wanted = storage === 'f32' ? ['transformer', 'LoRA'] : ['latents'];
        if (!wanted.includes(name)) continue;
        for await (const line of run(context)) lines.push(line);
      }
      expect(lines.filter(({ ok }) => !ok)).toEqual([]);
      expect(lines.map(({ stage }) => stage)).toEqual(expected);
    },
  );

  async function denoised(
    weights: Checkpoint,
    of: TransformerConfig,
    maxChunkTokens: number,
    residency?: Residency,
  ): Promise<Float32Array> {
    const model = await Transformer.load(backend, weights, of, { precision: 'int8' }, residency);
    try {
      return await denoiseTokens(backend, model, tokenRequest(of, 2, 5, { maxChunkTokens }));
    } finally {
      model.dispose();
    }
  }

  test('chunks and streamed blocks change no bit; the peak lies under the plan', {
    timeout: 250_000,
  }, async () => {
    storeIn('f16');
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
    const counted = { precision: 'int8', promptTokens, kernels: { ...choice } } as const;
    const plan = await countDenoising({ transformer: config }, size, tokens, counted);
    expect(backend.peakBytes).toBeLessThanOrEqual(plan.bytes(streamed).peak);
  });

  test('bindings that see a part of the heads only change no bit', {
    timeout: 250_000,
  }, async () => {
    storeIn('f16');
    const wide = { ...config, attention_head_dim: 128, ffn_dim: 256, num_layers: 1 };
    const random = syntheticCheckpoint(transformerTensors(wide), 'int8');
    const expected = await denoised(random, wide, tokens);
    const { compute } = backend;
    if (!compute) throw new Error('the GPU runs no kernels');
    const keyBytes: unknown[] = [];
    const narrow: Compute = {
      features: compute.features,
      // The keys of one head: 16 rows of 128.
      limits: { ...compute.limits, bindingBytes: 4096 },
      rates: compute.rates,
      used: compute.used,
      clamped: compute.clamped,
      unfinished: compute.unfinished,
      compile: (kernels) => compute.compile(kernels),
      dispatch: (jobs) => {
        for (const { kernel, operands } of jobs) {
          const { k } = operands;
          if (kernel.name.startsWith('attention') && k && 'tensor' in k) keyBytes.push(k.byteSize);
        }
        return compute.dispatch(jobs);
      },
    };
    Object.defineProperty(backend, 'compute', { value: narrow, configurable: true });
    try {
      expect(await denoised(random, wide, tokens)).toEqual(expected);
    } finally {
      Object.defineProperty(backend, 'compute', { value: compute, configurable: true });
    }
    // 2 steps, 2 branches of which one is shared, 3 chunks, 2 heads; the text's keys are smaller.
    expect(keyBytes.filter((bytes) => bytes === 4096)).toHaveLength(2 * 2 * 2);
  });

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
