import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, browserRuntime, relativeRms, WebGpuBackend } from '../../../gpu';
import { httpFolder } from '../../../weights';
import { createVaeDecoder, encodeFirstFrame, measureDecoder, measureEncoder } from '.';
import { clipOf, collect, decodeAll, type Goldens, openGoldens, ownBytes } from './testing';

const root = new URL('/lib/models/wan22/goldens/', location.href);

describe('the VAE on WebGPU', { tags: ['full'] }, () => {
  let backend: Backend;
  let goldens: Goldens;

  beforeAll(async () => {
    backend = await WebGpuBackend.create(await browserRuntime());
    goldens = await openGoldens(httpFolder(root), httpFolder(new URL('model/', root)));
  });
  afterAll(() => backend.dispose());

  // In one piece both are lines of the parity; the CPU backend is tested in Node.
  test('first-frame latent, bands of 4096 bytes', async () => {
    const { config, checkpoint, size, image, tensors } = goldens;
    const before = ownBytes(backend);
    await backend.releaseSessions();
    backend.resetPeaks();
    const latent = await encodeFirstFrame(backend, config, checkpoint, image, { bandBytes: 4096 });
    const error = relativeRms(latent, await tensors.read('image_latent'));
    const plan = await measureEncoder(config, size, { bandBytes: 4096 });
    console.log(`image latent ${error}, ${backend.peakBytes} of ${plan.peak} bytes`);
    expect(error).toBeLessThan(1e-5);
    expect(backend.peakBytes).toBeLessThanOrEqual(plan.peak);
    expect(ownBytes(backend)).toBe(before);
  });

  test('video, bands of 4096 bytes', async () => {
    const { config, checkpoint, size, tensors } = goldens;
    const before = ownBytes(backend);
    const decoder = await createVaeDecoder(backend, config, checkpoint, {
      ...size,
      bandBytes: 4096,
    });
    const frames = await decodeAll(decoder, goldens);
    const error = relativeRms(clipOf(frames), await tensors.read('video'));
    console.log(`video ${error}`);
    expect(error).toBeLessThan(1e-5);

    decoder.reset();
    const again: Float32Array[] = [];
    for (const f of [0, 1]) again.push(...(await collect(decoder.decode(goldens.latentFrame(f)))));
    expect(again).toEqual(frames.slice(0, again.length));
    decoder.dispose();
    expect(ownBytes(backend)).toBe(before);
  });

  test('a half-decoded frame is given up', async () => {
    const { config, checkpoint, size, latentFrame } = goldens;
    const before = ownBytes(backend);
    const decoder = await createVaeDecoder(backend, config, checkpoint, size);
    const first = await collect(decoder.decode(latentFrame(0)));
    await decoder.decode(latentFrame(1)).next();
    await expect(decoder.decode(latentFrame(2)).next()).rejects.toThrow('not decoded to its end');
    decoder.reset();
    expect(await collect(decoder.decode(latentFrame(0)))).toEqual(first);
    await decoder.decode(latentFrame(1)).next();
    decoder.dispose();
    expect(ownBytes(backend)).toBe(before);
  });

  test('the memory plan holds, and nothing is allocated after the second latent frame', async () => {
    const { config, checkpoint, size, latentFrame } = goldens;
    await backend.releaseSessions();
    backend.resetPeaks();
    const decoder = await createVaeDecoder(backend, config, checkpoint, size);
    for (const f of [0, 1]) await collect(decoder.decode(latentFrame(f)));
    const plan = await measureDecoder(config, size, 'full');
    const { allocations, categories } = backend.counters();
    const [runtime, sum] = [categories.runtime?.peak ?? 0, backend.peakBytes];
    console.log(`${sum} of ${plan.peak} bytes, runtime ${runtime} of ${plan.runtime}`);
    expect(sum).toBeLessThanOrEqual(plan.peak);
    // At this size most is what the runtime takes, of which the plan is an upper bound.
    expect(sum / plan.peak).toBeGreaterThan(0.6);
    for await (const frame of decoder.decode(latentFrame(2))) expect(frame.length).toBe(18432);
    expect(backend.counters().allocations).toBe(allocations);
    decoder.dispose();
  });
});
