import { expect, test } from 'vitest';
import { KinoraError } from '../../contract';
import { type Backend, type Category, CountingBackend } from '../../gpu';
import type { ElementType } from '../../onnx';
import { DenoiseInterrupted, type DenoiseState } from '../../pipeline/denoise';
import { allResident } from '../../pipeline/memory/plan';
import { createScheduler } from '../../pipeline/schedulers';
import { openCheckpoint } from '../../weights';
import { readModelConfig, type TransformerConfig, transformerDim } from './config';
import { countDenoising, usualChoice } from './plan';
import { deepened } from './testing/deep';
import { denoiseTokens, perFrame, type TokenDenoising, tokenRequest } from './testing/denoise';
import { tinyFolder } from './testing/model';
import { Transformer } from './transformer';

/** A device that has memory for some more tensors only. */
class ScarceBackend extends CountingBackend {
  left = Number.POSITIVE_INFINITY;
  recovered = false;
  /** Tensors that were made or overwritten after the recovery. */
  late = 0;
  /** Bytes of our own tensors when it recovered. */
  liveInRecovery = 0;

  override async recover() {
    await super.recover();
    this.liveInRecovery = this.counters().liveBytes;
    this.recovered = true;
    this.left = Number.POSITIVE_INFINITY;
  }

  override write() {
    if (this.recovered) this.late += 1;
  }

  override tensor<T extends ElementType>(dtype: T, dims: readonly number[], category: Category) {
    if (this.recovered) this.late += 1;
    if (this.left <= 0) throw new KinoraError('OUT_OF_MEMORY');
    this.left -= 1;
    return super.tensor(dtype, dims, category);
  }
}

const request = (config: TransformerConfig, more: Partial<TokenDenoising> = {}) =>
  tokenRequest(config, 1, 5, more);

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
  const run = () => denoiseTokens(backend, transformer, request(config));
  const before = backend.counters().allocations;
  await run();
  const needed = backend.counters().allocations - before;
  expect(needed).toBeGreaterThan(40);
  expect(live()).toBe(weights);
  for (let left = 0; left < 40; left++) {
    backend.left = left;
    backend.recovered = false;
    await expect(run()).rejects.toMatchObject({ state: null, cause: { code: 'OUT_OF_MEMORY' } });
    expect(live()).toBe(weights);
  }
});

test('kernels of our own compute a LoRA whose ranks grow from layer to layer', async () => {
  const { transformer: config } = await readModelConfig(tinyFolder);
  const checkpoint = await openCheckpoint(tinyFolder, 'transformer');
  // It checks that no operand of a dispatch is disposed.
  const backend = new CountingBackend(usualChoice('exact'));
  const d = transformerDim(config);
  const branch = (rank: number, inputs = d) => ({
    rank,
    down: new Float32Array(rank * inputs),
    up: new Float32Array(d * rank),
  });
  const branches = new Map([
    ['blocks.1.attn1.to_q', branch(1)],
    ['blocks.1.attn1.to_out.0', branch(2)],
    ['blocks.1.attn2.to_k', branch(3)],
    ['blocks.1.attn2.to_v', branch(8)],
    ['blocks.1.attn2.to_q', branch(9)],
    ['blocks.1.ffn.net.2', branch(32, config.ffn_dim)],
  ]);
  const lora = { branches, deltas: new Map() };
  const options = { precision: 'int8', lora } as const;
  const transformer = await Transformer.load(backend, checkpoint, config, options);
  await denoiseTokens(backend, transformer, request(config));
  const size = { frames: 3, height: 2, width: 4 };
  const plan = await countDenoising({ transformer: config }, size, perFrame, {
    ...{ precision: 'int8', promptTokens: [5, 3], kernels: usualChoice('exact'), lora },
  });
  expect(backend.peakBytes).toBeLessThanOrEqual(plan.bytes(allResident).peak);
});

const layers = 5;

/** A transformer of streamed blocks, whose reads take a while. */
async function streamed(backend: Backend) {
  const { transformer } = await readModelConfig(tinyFolder);
  const config = { ...transformer, num_layers: layers };
  const checkpoint = deepened(await openCheckpoint(tinyFolder, 'transformer'), layers);
  const slow = {
    ...checkpoint,
    readStored: async (names: readonly string[]) => {
      await macrotasks();
      return checkpoint.readStored(names);
    },
  };
  const options = { precision: 'f32' } as const;
  const residency = { residentBlocks: 0, bufferSets: 2 };
  return { config, model: await Transformer.load(backend, slow, config, options, residency) };
}

async function macrotasks(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setTimeout(resolve, 1));
}

test('while a block is being read: it ends first, and all but the latents is freed, then the device recovers', async () => {
  // What the loop takes before the first block, and while blocks are read ahead.
  for (const left of [0, 20, 36, 60, 80, 100]) {
    const backend = new ScarceBackend();
    const { config, model } = await streamed(backend);
    const weights = backend.counters().liveBytes;
    backend.left = left;
    const failure = await denoiseTokens(backend, model, request(config)).catch((error) => error);
    expect(failure).toMatchObject({ name: 'DenoiseInterrupted', state: null });
    await macrotasks();
    await macrotasks();
    expect(backend.late).toBe(0);
    const { categories } = backend.counters();
    const blocks = (categories.weights?.live ?? 0) - weights;
    // 4 samples, 3 predictions, 2 velocities, and coefficients of 16 bytes each.
    expect(backend.liveInRecovery - weights - blocks).toBeLessThanOrEqual(
      9 * 4 * 192 * 4 + 16 * 10,
    );
    model.dispose();
    expect(backend.counters().liveBytes).toBe(0);
  }
});

test('while it goes on, before a further step: the state that it had is the state, and is not read again', async () => {
  const { transformer: config } = await readModelConfig(tinyFolder);
  const backend = new ScarceBackend();
  const checkpoint = await openCheckpoint(tinyFolder, 'transformer');
  const model = await Transformer.load(backend, checkpoint, config, { precision: 'f32' });
  const latents = () => new Float32Array(4 * 192);
  const state: DenoiseState = {
    step: 1,
    sample: latents(),
    last: latents(),
    before: latents(),
    prediction: new Float32Array(6 * 192),
    cache: { kind: 'none' },
  };
  const scheduler = createScheduler({ kind: 'unipc', steps: 2, flowShift: 5 });
  backend.left = 40;
  const failure = await denoiseTokens(
    backend,
    model,
    request(config, { resume: state, scheduler }),
  ).catch((error) => error);
  expect(failure).toBeInstanceOf(DenoiseInterrupted);
  expect(failure.state).toBe(state);
  expect(backend.counters().readbacks).toBe(0);
});
