/** @module-tag full */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browserRuntime, relativeRms, WebGpuBackend } from '../../gpu';
import { exhaustMemory } from '../../gpu/testing';
import { DenoiseInterrupted } from '../../pipeline/denoise';
import { type Checkpoint, httpFolder } from '../../weights';
import { openCheckpoint } from '../../weights/testing/checkpoint';
import type { TransformerConfig } from './config-schemas';
import { readModelConfig } from './model-config';
import {
  denoiseTokens,
  perFrame,
  type TokenDenoising,
  tokenRequest,
  tokens,
  values,
  width,
} from './testing/denoise';
import { Transformer } from './transformer';

const folder = httpFolder(new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/model/', location.href));
/** Bytes of the latents without the conditioning frame. */
const latentBytes = 4 * (tokens - perFrame) * width;

/**
 * Lets the device have no memory for one of the next storage buffers. It does what a full device does:
 * it reports the lack by an event, gives an invalid buffer, and refuses every command that uses it.
 *
 * @param matches whether it is that one
 */
function failAllocation(device: GPUDevice, matches: (size: number) => boolean): () => boolean {
  const create = device.createBuffer;
  let failed = false;
  device.createBuffer = (descriptor) => {
    const storage = (descriptor.usage & GPUBufferUsage.STORAGE) !== 0;
    if (failed || !storage || descriptor.mappedAtCreation || !matches(descriptor.size)) {
      return create.call(device, descriptor);
    }
    failed = true;
    exhaustMemory(device);
    device.pushErrorScope('validation');
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE;
    const buffer = create.call(device, { ...descriptor, usage });
    void device.popErrorScope();
    return buffer;
  };
  return () => failed;
}

/** The nth of the buffers that are made. */
function nth(count: number): () => boolean {
  let left = count;
  return () => {
    left -= 1;
    return left === 0;
  };
}

let backend: WebGpuBackend;
let checkpoint: Checkpoint;
let config: TransformerConfig;
/** Of a run that nothing disturbs, in chunks of one frame: conditioning and noisy ones of several kinds. */
let expected: Float32Array;
const counts: { allocations: number; readbacks: number; waits: number }[] = [];

beforeAll(async () => {
  backend = await WebGpuBackend.create(await browserRuntime());
  config = (await readModelConfig(folder)).transformer;
  checkpoint = await openCheckpoint(folder, 'transformer');
  const before = backend.counters();
  expected = await run({
    afterStep: () => {
      const { allocations, readbacks, waits } = backend.counters();
      counts.push({
        allocations: allocations - before.allocations,
        readbacks: readbacks - before.readbacks,
        waits: waits - before.waits,
      });
      return false;
    },
  });
}, 120_000);
afterAll(() => backend.dispose());

async function run(more: Partial<TokenDenoising> = {}): Promise<Float32Array> {
  const options = { precision: 'int8' } as const;
  const transformer = await Transformer.load(backend, checkpoint, config, options);
  try {
    return await denoiseTokens(backend, transformer, tokenRequest(config, 4, 5, more));
  } finally {
    transformer.dispose();
  }
}

test('no GPU allocation after the first step, no readback but the latents, and no other wait', () => {
  const [first] = counts;
  expect(first?.allocations).toBeGreaterThan(0);
  expect(counts.map(({ allocations }) => allocations)).toEqual(Array(4).fill(first?.allocations));
  expect(counts.map(({ readbacks }) => readbacks)).toEqual([1, 2, 3, 4]);
  expect(counts.map(({ waits }) => waits)).toEqual([1, 2, 3, 4]);
});

test('one large chunk gives the same latents, and the conditioning frame stays', async () => {
  const large = await run({ maxChunkTokens: 4096 });
  expect(relativeRms(expected, large)).toBeLessThan(1e-5);
  expect(large.slice(0, perFrame * width)).toEqual(values(0, perFrame * width));
  expect(large.every(Number.isFinite)).toBe(true);
  // Something happened to the others.
  expect(relativeRms(large, values(1, tokens * width))).toBeGreaterThan(0.1);
});

describe('memory that the device runs out of', () => {
  async function interruptionOf(denoising: Promise<unknown>): Promise<DenoiseInterrupted> {
    const error = await denoising.then(
      () => new Error('it was not interrupted'),
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof DenoiseInterrupted)) throw error;
    expect(error.cause.code).toBe('OUT_OF_MEMORY');
    expect(backend.lost).toBe(false);
    return error;
  }

  /** Step 2 and later make all buffers of the runtime again, and one of them is not given. */
  async function interruptedBy(buffer: number): Promise<DenoiseInterrupted> {
    let failed = () => false;
    const interrupted = await interruptionOf(
      run({
        afterStep: async (step) => {
          if (step !== 1) return false;
          await backend.releaseSessions();
          failed = failAllocation(backend.device, nth(buffer));
          return false;
        },
      }),
    );
    expect(failed()).toBe(true);
    expect(interrupted.state?.step).toBe(2);
    return interrupted;
  }

  test.each([1, 13])(
    "in the runtime's buffer %i of a later step: the state is saved, and goes on to the same bits",
    async (buffer) => {
      const { state } = await interruptedBy(buffer);
      expect(await run({ resume: state })).toEqual(expected);
    },
  );

  test('again while going on, for the very latents: nothing is lost', async () => {
    const { state } = await interruptedBy(1);
    const failed = failAllocation(backend.device, (size) => size === latentBytes);
    const second = await interruptionOf(run({ resume: state }));
    expect(failed()).toBe(true);
    expect(second.state).toEqual(state);
    expect(await run({ resume: second.state })).toEqual(expected);
  });
});
