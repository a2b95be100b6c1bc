/** @module-tag full */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, createBackend, relativeRms } from '../../../gpu';
import { familyOf, type KernelChoice } from '../../../gpu/kernels';
import { runParity } from '../../../parity';
import { httpFolder, openSafetensors } from '../../../weights';
import {
  createTiledVaeDecoder,
  createVaeDecoder,
  encodeClip,
  encodeFirstFrame,
  measureDecoder,
  measureEncoder,
} from './';
import {
  clipOf,
  collect,
  decodeAll,
  type Goldens,
  latentsOf,
  openGoldens,
  ownBytes,
  videoFrames,
} from './testing/goldens';

const root = new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/', location.href);

/** A small tile compiles fast; geometry is no part of the results. */
const convolution = { pixels: 16, filters: 16, threadPixels: 1, threadFilters: 4 };
const choice: KernelChoice = { mode: 'exact', linear: null, attention: null, convolution };

describe('the decoder as kernels of our own', { timeout: 240_000 }, () => {
  let backend: Backend;
  let goldens: Goldens;

  beforeAll(async () => {
    backend = await createBackend('webgpu');
    backend.kernels = choice;
    goldens = await openGoldens(httpFolder(root), httpFolder(new URL('model/', root)));
  });
  afterAll(() => backend.dispose());

  test('the golden video, stored in f16, within the memory plan', async () => {
    const { config, checkpoint, size, tensors } = goldens;
    backend.resetPeaks();
    const decoder = await createVaeDecoder(backend, config, checkpoint, size);
    // A frame that is half decoded leaves nothing in the history of the next clip.
    await decoder.decodeClip(latentsOf(goldens)).next();
    const frames = await decodeAll(decoder, goldens);
    const error = relativeRms(clipOf(frames), await tensors.read('video'));
    const plan = await measureDecoder(config, size, 'full', { kernels: choice });
    console.log(`f16: ${error}, ${backend.peakBytes} of ${plan.peak} bytes`);
    expect(error).toBeLessThan(3e-3);
    expect(backend.peakBytes).toBeLessThanOrEqual(plan.peak);
    decoder.dispose();
    expect(ownBytes(backend)).toBe(0);
  });

  test('in two tiles, within the memory plan', async () => {
    const { config, checkpoint, size, tensors } = goldens;
    await backend.releaseSessions();
    backend.resetPeaks();
    const tiles = { rows: 1, columns: 2, overlap: 4 };
    const decoder = await createTiledVaeDecoder(backend, config, checkpoint, { ...size, tiles });
    const frames = await collect(decoder.decodeClip(latentsOf(goldens).slice(0, 2)));
    const video = await tensors.read('video');
    const plane = (frames[0]?.length ?? 0) / 3;
    const start = [0, 1, 2].flatMap((c) => [
      ...video.subarray(c * 9 * plane, (c * 9 + frames.length) * plane),
    ]);
    const error = relativeRms(clipOf(frames), start);
    const plan = await measureDecoder(config, size, tiles, { kernels: choice });
    console.log(`tiles: ${error}, ${backend.peakBytes} of ${plan.peak} bytes`);
    expect(error).toBeLessThan(2e-2);
    expect(backend.peakBytes).toBeLessThanOrEqual(plan.peak);
    expect(ownBytes(backend)).toBe(0);
  });

  test('a first frame, in f32, within the memory plan', async () => {
    const { config, checkpoint, size, image, tensors } = goldens;
    // The buffer in which the decoded frames before this came back.
    await backend.releaseSessions();
    backend.resetPeaks();
    const latent = await encodeFirstFrame(backend, config, checkpoint, image);
    const error = relativeRms(latent, await tensors.read('image_latent'));
    const plan = await measureEncoder(config, size, { kernels: choice });
    console.log(`image latent: ${error}, ${backend.peakBytes} of ${plan.peak} bytes`);
    expect(error).toBeLessThan(1e-5);
    expect(backend.peakBytes).toBeLessThanOrEqual(plan.peak);
    expect(ownBytes(backend)).toBe(0);
  });

  test('a clip, in f32', async () => {
    const { config, checkpoint, tensors } = goldens;
    const folder = httpFolder(new URL('/lib/models/wan/vae/testdata/', location.href));
    const file = await folder.open('video-latents.safetensors');
    const clip = new Map((await videoFrames(tensors)).entries());
    const latents = await encodeClip(backend, config, checkpoint, clip, 3);
    const reference = await (await openSafetensors(file)).read('latents');
    expect(relativeRms(latents, reference)).toBeLessThan(1e-5);
    expect(ownBytes(backend)).toBe(0);
  });

  test('stored in f32, a frame of 3×5 positions, which are no multiple of 4, is that of the CPU', async () => {
    const { config, checkpoint } = goldens;
    const noise = Float32Array.from({ length: config.z_dim * 15 }, (_, i) => Math.sin(i * 1.7));
    const size = { latentHeight: 3, latentWidth: 5 };
    const videos: Float32Array[] = [];
    const cpu = await createBackend('wasm');
    backend.kernels = { ...choice, storage: 'f32' };
    for (const on of [backend, cpu]) {
      const decoder = await createVaeDecoder(on, config, checkpoint, size);
      videos.push(clipOf(await collect(decoder.decodeClip([noise, noise]))));
      decoder.dispose();
    }
    backend.kernels = choice;
    await cpu.dispose();
    const error = relativeRms(videos[0] ?? [], videos[1] ?? []);
    console.log(`3×5: ${error}`);
    expect(error).toBeLessThan(1e-4);
  });

  test.each([
    ['f16', 3e-3],
    ['f32', 1e-5],
  ] as const)('the tiny decoders, stored in %s', async (storage, tolerance) => {
    backend.kernels = { ...choice, storage };
    backend.compute?.used.clear();
    const lines = await runParity(httpFolder(root), backend, {
      tolerance,
      only: ['tiny decoders'],
    });
    backend.kernels = choice;
    console.log(lines);
    expect(lines).toHaveLength(2);
    expect(lines.filter(({ ok }) => !ok)).toEqual([]);
    const used = [...(backend.compute?.used ?? [])].map((key) => familyOf({ name: key }));
    expect(new Set(used)).toEqual(new Set(['convolution', 'depthwise']));
    expect(ownBytes(backend)).toBe(0);
  });
});
