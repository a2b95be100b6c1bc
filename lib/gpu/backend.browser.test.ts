import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { matrixFeature } from '../contract';
import { add, GraphBuilder } from '../onnx';
import {
  type Backend,
  browserRuntime,
  createTestedBackend,
  gpuCanHold,
  probeBudget,
  probeDevice,
  Scope,
  WasmBackend,
  WebGpuBackend,
} from '.';
import { mainMemoryBudget } from './budget';
import { compilesMatrices } from './device';
import { exhaustMemory } from './testing';

function doubling() {
  const g = new GraphBuilder('double');
  const x = g.input('x', 'float32', ['L', 3]);
  g.output('y', add(x, x));
  return g.build();
}

describe.each(['webgpu', 'wasm'] as const)('%s backend', (kind) => {
  let backend: Backend;

  beforeAll(async () => {
    const runtime = await browserRuntime();
    backend =
      kind === 'webgpu' ? await WebGpuBackend.create(runtime) : new WasmBackend(() => runtime);
  });
  afterAll(() => backend.dispose());

  test('runs a graph into pre-allocated outputs and counts the bytes', async () => {
    const before = backend.counters();
    const scope = new Scope(backend);
    const x = scope.float32([2, 3], 'activations', Float32Array.of(1, 2, 3, 4, 5, 6));
    const y = scope.float32([2, 3], 'caches');
    await backend.run(doubling(), { x }, { y });
    expect([...(await backend.read(y))]).toEqual([2, 4, 6, 8, 10, 12]);
    const during = backend.counters();
    expect(during.categories.caches?.live).toBeGreaterThanOrEqual(24);
    expect(during.readbacks - before.readbacks).toBe(1);
    scope.dispose();
    await backend.releaseSessions();
    expect(backend.counters().categories.activations?.live).toBe(0);
    expect(backend.counters().categories.caches?.live).toBe(0);
  });

  test('overlapping calls are served one after another', async () => {
    const scope = new Scope(backend);
    const graph = doubling();
    const rows = [1, 2, 3, 4].map((value) =>
      scope.float32([1, 3], 'activations', new Float32Array(3).fill(value)),
    );
    const results = rows.map(() => scope.float32([1, 3], 'activations'));
    await Promise.all(
      rows.map((x, i) => backend.run(graph, { x }, { y: results[i] as (typeof results)[0] })),
    );
    const sums = await Promise.all(results.map((result) => backend.read(result)));
    expect(sums.map((values) => values[0])).toEqual([2, 4, 6, 8]);
    scope.dispose();
  });

  test('copies rows between tensors', async () => {
    const scope = new Scope(backend);
    const x = scope.float32([2, 2], 'activations', Float32Array.of(1, 2, 3, 4));
    const y = scope.float32([3, 2], 'activations');
    backend.copy(x, 2, y, 4, 2);
    expect([...(await backend.read(y))]).toEqual([0, 0, 0, 0, 3, 4]);
    scope.dispose();
  });

  test('wrong bindings are a TypeError that names the port', () => {
    const scope = new Scope(backend);
    const x = scope.float32([2, 3], 'activations');
    const wide = scope.float32([2, 4], 'activations');
    const bytes = scope.tensor('uint8', [2, 3], 'activations');
    const graph = doubling();
    expect(() => backend.run(graph, {}, { y: x })).toThrow('double: input x is not bound');
    expect(() => backend.run(graph, { x: wide }, { y: x })).toThrow('x is [2, 4], expected [L, 3]');
    expect(() => backend.run(graph, { x: bytes }, { y: x })).toThrow('x is uint8');
    expect(() => backend.run(graph, { x, z: x }, { y: x })).toThrow('there is no input z');
    scope.dispose();
    expect(() => backend.run(graph, { x }, { y: x })).toThrow('was disposed');
  });
});

/**
 * Lets the emulated GPU pass for another one, with wide subgroups and matrix units that it does not have.
 *
 * @returns the features of each device that is requested
 */
function asOtherGpu(): string[][] {
  const requested: string[][] = [];
  const { requestDevice } = GPUAdapter.prototype;
  const features = Object.getOwnPropertyDescriptor(GPUAdapter.prototype, 'features');
  vi.spyOn(GPUAdapter.prototype, 'features', 'get').mockImplementation(function (this: GPUAdapter) {
    const own: Iterable<string> = features?.get?.call(this) ?? [];
    return new Set([...own, matrixFeature]);
  });
  const names = { vendor: 'acme', architecture: 'one', device: '', description: '' };
  const sizes = { subgroupMinSize: 8, subgroupMaxSize: 8, isFallbackAdapter: false };
  vi.spyOn(GPUAdapter.prototype, 'info', 'get').mockReturnValue({
    __brand: 'GPUAdapterInfo',
    ...names,
    ...sizes,
  });
  vi.spyOn(GPUAdapter.prototype, 'requestDevice').mockImplementation(function (
    this: GPUAdapter,
    descriptor,
  ) {
    const wanted = [...(descriptor?.requiredFeatures ?? [])];
    requested.push(wanted);
    const requiredFeatures = wanted.filter((name: string) => name !== matrixFeature);
    return requestDevice.call(this, { ...descriptor, requiredFeatures });
  });
  onTestFinished(() => {
    vi.restoreAllMocks();
  });
  return requested;
}

test('a device has subgroups for the mode matrix only', async () => {
  const requested = asOtherGpu();
  const runtime = await browserRuntime();
  for (const matrices of [undefined, true]) {
    const backend = await WebGpuBackend.create(runtime, { ...(matrices && { matrices }) });
    expect(backend.device.features.has('subgroups')).toBe(matrices ?? false);
    await backend.dispose();
  }
  expect(requested.map((names) => names.includes(matrixFeature))).toEqual([false, true]);
});

test('matrices that a compiler does not take are none', async () => {
  const adapter = await navigator.gpu.requestAdapter();
  const device = await adapter?.requestDevice();
  if (!device) throw new Error('no device');
  const errors: string[] = [];
  device.onuncapturederror = ({ error }) => errors.push(error.message);
  // SwiftShader has no matrix units.
  expect(await compilesMatrices(device)).toBe(false);
  device.destroy();
  expect(errors).toEqual([]);
});

test('a GPU that is wrong with subgroups is opened once more without them', {
  tags: ['full'],
}, async () => {
  const requested = asOtherGpu();
  const { backend, checks } = await createTestedBackend({ matrices: true });
  expect(requested.map((names) => names.includes('subgroups'))).toEqual([true, false]);
  expect(backend.refused).toEqual(['subgroups']);
  expect(backend.compute?.features.has('subgroups')).toBe(false);
  expect(checks.length).toBeGreaterThan(10);
  expect(checks.filter(({ usable }) => !usable)).toEqual([]);
  await backend.dispose();
});

test('WebGPU that is switched off is missing', async () => {
  vi.spyOn(navigator, 'gpu', 'get').mockReturnValue(null as unknown as GPU);
  onTestFinished(() => {
    vi.restoreAllMocks();
  });
  expect(await probeDevice()).toMatchObject({ outcome: 'no-webgpu' });
  const creating = WebGpuBackend.create(await browserRuntime());
  await expect(creating).rejects.toMatchObject({ code: 'WEBGPU_MISSING' });
});

const mebibyte = 2 ** 20;

test('memory is asked for in buffers that are given back, and never beyond the ceiling', async () => {
  const backend = await WebGpuBackend.create(await browserRuntime());
  // As if it were none that is emulated; so little memory harms neither.
  const gpu = { device: backend.device, software: false };
  expect(await gpuCanHold(gpu, 64 * mebibyte)).toBe(true);
  const { allocations, liveBytes } = backend.counters();
  expect(allocations).toBeGreaterThan(0);
  expect(liveBytes).toBe(0);
  backend.ceiling = 1024 * mebibyte;
  expect(await backend.canHold(2 ** 50)).toBe(false);
  expect(backend.counters().allocations).toBe(allocations);
  await backend.dispose();
});

test('the memory that was asked for is back when the answer comes', async () => {
  const { device } = await WebGpuBackend.create(await browserRuntime());
  const order: string[] = [];
  const create = device.createBuffer.bind(device);
  device.createBuffer = (descriptor) => {
    const buffer = create(descriptor);
    const destroy = buffer.destroy.bind(buffer);
    buffer.destroy = () => {
      order.push('destroy');
      return destroy();
    };
    return buffer;
  };
  const { queue } = device;
  const done = queue.onSubmittedWorkDone.bind(queue);
  queue.onSubmittedWorkDone = async () => {
    await done();
    order.push('done');
    return undefined;
  };
  await gpuCanHold({ device, software: false }, 2 * mebibyte);
  expect(order).toEqual(['destroy', 'done']);
  device.destroy();
});

test('a software device is not asked for memory', async () => {
  const backend = await WebGpuBackend.create(await browserRuntime());
  if (!backend.gpu.software) return backend.dispose();
  const most = mainMemoryBudget();
  expect(await probeBudget(backend, most / 2)).toBe(most / 2);
  // Main memory bounds it.
  expect(await probeBudget(backend, 2 * most)).toBeLessThan(most);
  expect(backend.counters().allocations).toBe(0);
  await backend.dispose();
});

test('the device has no memory left: calls reject until the backend recovers', async () => {
  const backend = await WebGpuBackend.create(await browserRuntime());
  const scope = new Scope(backend);
  const x = scope.float32([1, 3], 'activations', Float32Array.of(1, 2, 3));
  const y = scope.float32([1, 3], 'activations');
  await backend.run(doubling(), { x }, { y });
  exhaustMemory(backend.device);
  await expect(backend.settle()).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
  await expect(backend.read(y)).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
  await expect(backend.run(doubling(), { x }, { y })).rejects.toMatchObject({
    code: 'OUT_OF_MEMORY',
  });
  // A load that is under way ends here, not after its last weight.
  expect(() => backend.tensor('float32', [4], 'weights')).toThrow('not enough free memory');
  expect(backend.lost).toBe(false);
  await backend.recover();
  backend.write(x, Float32Array.of(4, 5, 6));
  await backend.run(doubling(), { x }, { y });
  expect([...(await backend.read(y))]).toEqual([8, 10, 12]);
  scope.dispose();
  await backend.dispose();
});

/** A command that the device refuses, as it refuses those that use a buffer that it could not make. */
function misuse({ device }: WebGpuBackend): void {
  device.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
}

test('what is refused after a recovery is part of the lack of memory, until something was read', async () => {
  const backend = await WebGpuBackend.create(await browserRuntime());
  const x = backend.tensor('float32', [2], 'activations', Float32Array.of(1, 2));
  exhaustMemory(backend.device);
  await expect(backend.settle()).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
  await backend.recover();
  misuse(backend);
  await expect(backend.read(x)).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
  expect(backend.lost).toBe(false);
  await backend.recover();
  expect([...(await backend.read(x))]).toEqual([1, 2]);
  misuse(backend);
  await expect(backend.read(x)).rejects.toMatchObject({ code: 'INTERNAL' });
  expect(backend.lost).toBe(true);
  await backend.dispose();
});

test('the device is lost: runs reject instead of hanging', async () => {
  const backend = await WebGpuBackend.create(await browserRuntime());
  const tensor = backend.tensor('float32', [4], 'activations');
  backend.device.destroy();
  await backend.device.lost;
  await expect(backend.read(tensor)).rejects.toMatchObject({ code: 'DEVICE_LOST' });
  await expect(backend.settle()).rejects.toMatchObject({ code: 'DEVICE_LOST' });
});
