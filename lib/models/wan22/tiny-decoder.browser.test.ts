import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, browserRuntime, relativeRms, WasmBackend, WebGpuBackend } from '../../gpu';
import { httpFolder, openSafetensors } from '../../weights';
import { createTinyDecoder } from './tiny-decoder';
import { collect, decodeAll, type Goldens, openGoldens, ownBytes } from './vae/testing';

const root = new URL('/lib/models/wan22/goldens/', location.href);

describe.each(['webgpu', 'wasm'] as const)('tiny decoders on %s', (kind) => {
  let backend: Backend;
  let goldens: Goldens;

  beforeAll(async () => {
    const runtime = await browserRuntime();
    backend = kind === 'webgpu' ? await WebGpuBackend.create(runtime) : new WasmBackend(runtime);
    goldens = await openGoldens(httpFolder(root), httpFolder(new URL('model/', root)));
  });
  afterAll(() => backend.dispose());

  const open = async (name: string) =>
    openSafetensors(await goldens.folder.open(`formats/tiny-decoder-${name}.safetensors`));

  test.each(['base', 'super'])('the %s decoder gives the golden frames', async (variant) => {
    const before = ownBytes(backend);
    const decoder = await createTinyDecoder(backend, await open(variant), goldens.size);
    const frames = await decodeAll(decoder, goldens);
    const golden = await (await open(`${variant}-golden`)).read('frames'); // [1, T, 3, H, W]
    const actual = new Float32Array(frames.reduce((sum, frame) => sum + frame.length, 0));
    frames.forEach((frame, t) => {
      actual.set(frame, t * frame.length);
    });
    const error = relativeRms(actual, golden);
    console.log(`${kind}: ${variant} ${error}`);
    expect(error).toBeLessThan(1e-5);

    decoder.reset();
    const again: Float32Array[] = [];
    for (const f of [0, 1]) again.push(...(await collect(decoder.decode(goldens.latentFrame(f)))));
    expect(again).toEqual(frames.slice(0, again.length));
    expect(again[0]).toHaveLength(18432);

    const { allocations } = backend.counters();
    await collect(decoder.decode(goldens.latentFrame(2)));
    expect(backend.counters().allocations).toBe(allocations);
    decoder.dispose();
    expect(ownBytes(backend)).toBe(before);
  });
});
