import { expect, test } from 'vitest';
import { type KernelSetting, KinoraError } from '../../contract';
import { type Backend, type Category, type Compute, CountingBackend, toBF16 } from '../../gpu';
import type { ElementType } from '../../onnx';
import { DenoiseInterrupted, type DenoiseState } from '../../pipeline/denoise';
import { allResident } from '../../pipeline/memory/memory-plan';
import { createScheduler } from '../../pipeline/schedulers';
import { heun } from '../../pipeline/schedulers/testing/heun';
import type { StepCache } from '../../pipeline/step-cache';
import { openCheckpoint } from '../../weights/testing/checkpoint';
import type { LoraBranch, LoraBranches } from '../layers/lora';
import { type TransformerConfig, transformerDim } from './config-schemas';
import { readModelConfig } from './model-config';
import { usualChoice } from './model-memory';
import { deepened } from './testing/deep';
import { denoiseTokens, perFrame, type TokenDenoising, tokenRequest } from './testing/denoise';
import { tinyFolder } from './testing/model';
import { planDenoising, Transformer } from './transformer';

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

/** A LoRA whose ranks grow from layer to layer, some of them in bf16. */
function growing(config: TransformerConfig): LoraBranches {
  const d = transformerDim(config);
  const branch = (fours: number, inputs = d) => ({
    rank: 4 * fours,
    down: new Float32Array(4 * fours * inputs),
    up: new Float32Array(d * 4 * fours),
  });
  const narrow = ({ rank, down, up }: ReturnType<typeof branch>) => {
    return { rank, down: toBF16(down), up: toBF16(up) };
  };
  const branches = new Map<string, LoraBranch>([
    ['blocks.1.attn1.to_q', branch(1)],
    ['blocks.1.attn1.to_out.0', branch(2)],
    ['blocks.1.attn2.to_k', branch(3)],
    ['blocks.1.attn2.to_v', narrow(branch(8))],
    ['blocks.1.attn2.to_q', branch(9)],
    ['blocks.0.ffn.net.2', narrow(branch(32, config.ffn_dim))],
    ['blocks.1.ffn.net.2', narrow(branch(32, config.ffn_dim))],
    ['condition_embedder.text_embedder.linear_1', branch(5, config.text_dim)],
  ]);
  return { branches, deltas: new Map() };
}

const fewSteps = createScheduler({
  kind: 'few-step',
  steps: 2,
  flowShift: 5,
  timesteps: [1000, 500],
});
const reuses: StepCache = {
  kind: 'magcache',
  settings: { ratios: Array(22).fill(0.99), threshold: 0.06, mostSkips: 2, computedShare: 0.2 },
};

interface PlanCase {
  readonly adapted?: boolean;
  readonly guided?: boolean;
  readonly reusesBlocks?: boolean;
  readonly stochastic?: boolean;
  readonly heun?: boolean;
}

test.each<[KernelSetting, PlanCase]>([
  ['exact', {}],
  ['exact', { adapted: true }],
  ['exact', { reusesBlocks: true, adapted: true }],
  ['exact', { guided: false, stochastic: true }],
  ['exact', { heun: true }],
  ['fast', { adapted: true }],
  ['runtime', {}],
  ['runtime', { reusesBlocks: true, adapted: true }],
  ['runtime', { guided: false, stochastic: true }],
])(
  '%s, %o: a run takes what was planned',
  async (setting, { adapted = false, guided = true, reusesBlocks = false, ...sampler }) => {
    const { stochastic = false } = sampler;
    const { transformer: config } = await readModelConfig(tinyFolder);
    const checkpoint = await openCheckpoint(tinyFolder, 'transformer');
    const kernels = usualChoice(setting);
    // It checks that no operand of a dispatch is disposed.
    const backend = new CountingBackend(kernels);
    const lora = adapted ? growing(config) : undefined;
    const options = { precision: 'int8', ...(lora && { lora }) } as const;
    const transformer = await Transformer.load(backend, checkpoint, config, options);
    const more = {
      saves: true,
      ...(stochastic && { scheduler: fewSteps }),
      ...(sampler.heun && { scheduler: heun.schedule({ steps: 2, flowShift: 5 }) }),
      ...(reusesBlocks && { cache: reuses }),
    };
    await denoiseTokens(backend, transformer, tokenRequest(config, 6, guided ? 5 : 1, more));
    const size = { frames: 3, height: 2, width: 4 };
    const plan = await planDenoising(config, size, perFrame, {
      ...options,
      promptTokens: guided ? [5, 3] : [5],
      kernels,
      reusesBlocks,
      stochastic,
      evaluations: sampler.heun ? 2 : 1,
    });
    const { categories } = backend.counters();
    const taken = (...names: Category[]) =>
      names.reduce((sum, name) => sum + (categories[name]?.peak ?? 0), 0);
    expect(plan.bytes(allResident)).toEqual({
      weights: taken('weights'),
      activations: taken('activations', 'latents', 'lora'),
      caches: 0,
      runtime: taken('runtime'),
      peak: backend.peakBytes,
      largest: backend.largestBuffer,
    });
  },
);

test('a device whose bindings are too small for a clip is refused with the plan and at its start, and nothing else computes', async () => {
  const { transformer: config } = await readModelConfig(tinyFolder);
  const checkpoint = await openCheckpoint(tinyFolder, 'transformer');
  const kernels = usualChoice('exact');
  const backend = new CountingBackend(kernels);
  Object.assign(backend.compute.limits, { bindingBytes: 4096 });
  const size = { frames: 3, height: 2, width: 4 };
  const refusal = {
    code: 'KERNELS_UNAVAILABLE',
    message: expect.stringMatching(/on this GPU: .*: linear .* a binding at most 4096/),
  };
  const options = { precision: 'int8', promptTokens: [5], kernels } as const;
  const { compute } = backend;
  const planned = planDenoising(config, size, perFrame, { ...options, compute });
  await expect(planned).rejects.toMatchObject(refusal);
  const transformer = await Transformer.load(backend, checkpoint, config, { precision: 'int8' });
  const weights = backend.counters().liveBytes;
  await expect(denoiseTokens(backend, transformer, request(config))).rejects.toMatchObject(refusal);
  expect(backend.counters().liveBytes).toBe(weights);
});

test('a kernel that the device does not compile is refused with the plan', async () => {
  const { transformer: config } = await readModelConfig(tinyFolder);
  const { compute } = new CountingBackend();
  const compile: Compute['compile'] = async (kernels) =>
    kernels
      .filter(({ name }) => name.startsWith('attention'))
      .map((kernel) => ({ kernel, reason: 'no' }));
  const options = { precision: 'int8', promptTokens: [5], kernels: usualChoice('exact') } as const;
  const size = { frames: 3, height: 2, width: 4 };
  const planned = planDenoising(config, size, perFrame, {
    ...options,
    compute: { ...compute, compile },
  });
  await expect(planned).rejects.toMatchObject({
    code: 'KERNELS_UNAVAILABLE',
    message: expect.stringMatching(/: self-attention: attention .* fails: no\.$/),
  });
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
