/** @module-tag full */
import { beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import type { ProgressEvent } from '../contract';
import { type Backend, createBackend, probeDevice, relativeRms } from '../gpu';
import { linearKernel } from '../gpu/kernels/linear';
import { linearShape } from '../gpu/kernels/linear-family';
import { readRecord, recordId } from '../gpu/kernels/record';
import { readModelConfig } from '../models/wan/model-config';
import { denoiseTokens, tokenRequest } from '../models/wan/testing/denoise';
import { Transformer } from '../models/wan/transformer';
import { KinoraDatabase } from '../predictions/database';
import { loadSetting, saveSetting } from '../predictions/settings';
import { httpFolder } from '../weights';
import { openCheckpoint } from '../weights/testing/checkpoint';
import { EngineKernels } from './kernels';

const { signal } = new AbortController();

const recordName = async () => recordId(await probeDevice(), navigator.userAgent);
const stored = async () => readRecord(await loadSetting(new KinoraDatabase(), await recordName()));
const store = async (record: unknown) =>
  saveSetting(new KinoraDatabase(), await recordName(), record);

/** What an engine on a device of its own makes of the setting. */
async function used(work: (kernels: EngineKernels, backend: Backend) => Promise<void>) {
  const backend = await createBackend('webgpu');
  const events: ProgressEvent[] = [];
  const kernels = new EngineKernels();
  try {
    await kernels.use(backend, 'exact', (event) => events.push(event), signal);
    const choice = backend.kernels;
    await work(kernels, backend);
    return { choice, events };
  } finally {
    await backend.dispose();
  }
}

/** The first use on this GPU, and its record. */
let first: Awaited<ReturnType<typeof used>>;
let record: Awaited<ReturnType<typeof stored>>;
beforeAll(async () => {
  await store(null);
  first = await used(async (kernels, backend) => {
    expect(kernels.recordOf(backend)).toMatchObject({ mode: 'runtime', keys: [] });
    // Nothing was set, and the GPU is emulated.
    await kernels.use(backend, undefined, () => undefined, signal);
    expect(backend.kernels).toBeNull();
  });
  record = await stored();
}, 400_000);
beforeEach(() => store(record));

test('kernels with a family that the device cannot compile are refused where they were asked for; without it the runtime computes, and the record says so', {
  timeout: 400_000,
}, async () => {
  await store(null);
  const create = GPUDevice.prototype.createShaderModule;
  vi.spyOn(GPUDevice.prototype, 'createShaderModule').mockImplementation(function (
    this: GPUDevice,
    descriptor,
  ) {
    const broken = descriptor.label?.startsWith('attention ');
    return create.call(this, broken ? { ...descriptor, code: 'no text' } : descriptor);
  });
  try {
    await expect(used(async () => undefined)).rejects.toMatchObject({
      code: 'KERNELS_UNAVAILABLE',
    });
    const { exact } = (await stored())?.modes ?? {};
    expect(exact?.winners.attention).toBeNull();
    expect([exact?.winners.linear, exact?.winners.convolution]).not.toContain(null);
    const reasons = exact?.tried.flatMap(({ family, reason }) =>
      family === 'attention' ? [reason] : [],
    );
    expect(reasons?.length).toBeGreaterThan(1);
    for (const reason of reasons ?? []) expect(reason).toMatch(/^attention /);
    vi.restoreAllMocks();

    await store(record);
    await used(async (kernels, backend) => {
      if (!backend.kernels) throw new Error('there are no kernels');
      backend.kernels = { ...backend.kernels, attention: null };
      const folder = httpFolder(
        new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/model/', location.href),
      );
      const { transformer } = await readModelConfig(folder);
      const checkpoint = await openCheckpoint(folder, 'transformer');
      const model = await Transformer.load(backend, checkpoint, transformer, { precision: 'int8' });
      try {
        const request = tokenRequest(transformer, 2, 1);
        const own = await denoiseTokens(backend, model, request);
        expect(kernels.recordOf(backend)).toEqual({ mode: 'runtime', keys: [] });
        backend.kernels = null;
        expect(relativeRms(own, await denoiseTokens(backend, model, request))).toBe(0);
      } finally {
        model.dispose();
      }
    });
  } finally {
    vi.restoreAllMocks();
  }
});

test('the first kernels with right numbers are used and remembered; one that loses the GPU is not used again', {
  timeout: 400_000,
}, async () => {
  expect(first.choice).toMatchObject({ mode: 'exact', linear: { shared: 'f32' } });
  expect(first.events.at(-1)).toMatchObject({ type: 'tuning' });
  expect(record).toMatchObject({ trying: null, losses: 0, peak: null });
  const { exact } = record?.modes ?? {};
  expect(exact?.winners.linear).toMatchObject({ variant: first.choice?.linear, rate: null });

  const second = await used(async (kernels, backend) => {
    const { compute } = backend;
    if (!compute || !first.choice?.linear) throw new Error('there are no kernels');
    const running = [linearKernel(first.choice.linear, linearShape('timed'))];
    Object.defineProperty(compute, 'unfinished', { value: running });
    await kernels.lost(backend);
  });
  expect(second).toMatchObject({ choice: first.choice, events: [] });
  const lost = await stored();
  expect(lost).toMatchObject({ losses: 1, modes: {} });
  expect(Object.keys(lost?.excluded ?? {})).toEqual([exact?.winners.linear?.key]);

  const third = await used(async (kernels, backend) => {
    await kernels.lost(backend);
  });
  expect(third.choice?.linear).not.toEqual(first.choice?.linear);
  expect(third.choice?.attention).toEqual(first.choice?.attention);
  // After the second loss they are not used.
  await expect(used(async () => undefined)).rejects.toMatchObject({
    code: 'KERNELS_UNAVAILABLE',
    message: expect.stringContaining('lost twice'),
  });
});

/** Lets the emulated GPU pass for a real one without a name. */
function withoutName() {
  const names = { vendor: '', architecture: '', device: '', description: '' };
  const sizes = { subgroupMinSize: 4, subgroupMaxSize: 4, isFallbackAdapter: false };
  vi.spyOn(GPUAdapter.prototype, 'info', 'get').mockReturnValue({
    __brand: 'GPUAdapterInfo',
    ...names,
    ...sizes,
  });
  onTestFinished(() => {
    vi.restoreAllMocks();
  });
}

test('a GPU without a name that is of another speed is measured anew', {
  timeout: 400_000,
}, async () => {
  withoutName();
  const measured: string[] = [];
  for (const peak of [null, 1e15]) {
    await store({ ...record, peak });
    const backend = await createBackend('webgpu');
    const stop = ({ type }: ProgressEvent) => {
      measured.push(type);
      throw new Error('it is being measured');
    };
    const using = new EngineKernels().use(backend, 'exact', stop, signal);
    if (peak === null) await using;
    else await expect(using).rejects.toThrow('it is being measured');
    await backend.dispose();
  }
  expect(measured).toEqual(['tuning']);
  expect(await stored()).toMatchObject({ modes: {} });
});

test('kernels that nobody asked for and that are not used are reported, and the runtime computes', async () => {
  withoutName();
  await store({ ...record, losses: 2 });
  const backend = await createBackend('webgpu');
  const events: ProgressEvent[] = [];
  await new EngineKernels().use(backend, undefined, (event) => events.push(event), signal);
  expect(events).toEqual([{ type: 'kernels', asked: 'exact', computes: 'runtime', reason: null }]);
  expect(backend.kernels).toBeNull();
  await backend.dispose();
});

test('a feature that the GPU is wrong with is remembered, and that exact kernels compute is reported', {
  timeout: 400_000,
}, async () => {
  const backend = await createBackend('webgpu');
  backend.refused = ['subgroups'];
  const events: ProgressEvent[] = [];
  await new EngineKernels().use(backend, 'matrix', (event) => events.push(event), signal);
  expect(events).toEqual([{ type: 'kernels', asked: 'matrix', computes: 'exact', reason: null }]);
  expect(await stored()).toMatchObject({ refused: ['subgroups'], modes: { exact: {} } });
  expect(backend.kernels?.mode).toBe('exact');
  await backend.dispose();
});
