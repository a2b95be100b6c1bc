import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Backend, browserRuntime, relativeRms, WebGpuBackend } from '../../../gpu';
import { httpFolder } from '../../../weights';
import {
  createTiledVaeDecoder,
  createVaeDecoder,
  encodeFirstFrame,
  measureDecoder,
  measureEncoder,
} from './';
import { clipOf, collect, type Goldens, latentsOf, openGoldens, ownBytes } from './testing/goldens';

const root = new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/', location.href);

describe('the VAE on WebGPU', { tags: ['full'] }, () => {
  let backend: Backend;
  let goldens: Goldens;

  beforeAll(async () => {
    backend = await WebGpuBackend.create(await browserRuntime());
    goldens = await openGoldens(httpFolder(root), httpFolder(new URL('model/', root)));
  });
  afterAll(() => backend.dispose());

  // Whole images and videos are lines of the parity.
  test('first-frame latent, within its plan', async () => {
    const { config, checkpoint, size, image, tensors } = goldens;
    const before = ownBytes(backend);
    await backend.releaseSessions();
    backend.resetPeaks();
    const latent = await encodeFirstFrame(backend, config, checkpoint, image);
    const error = relativeRms(latent, await tensors.read('image_latent'));
    const plan = await measureEncoder(config, size);
    console.log(`image latent ${error}, ${backend.peakBytes} of ${plan.peak} bytes`);
    expect(error).toBeLessThan(1e-5);
    expect(backend.peakBytes).toBeLessThanOrEqual(plan.peak);
    expect(ownBytes(backend)).toBe(before);
  });

  test('the memory plan holds, and nothing is allocated after the second latent frame', async () => {
    const { config, checkpoint, size } = goldens;
    await backend.releaseSessions();
    backend.resetPeaks();
    const decoder = await createVaeDecoder(backend, config, checkpoint, size);
    onTestFinished(() => decoder.dispose());
    const frames = decoder.decodeClip(latentsOf(goldens));
    // The second latent frame ends with the fifth.
    for (let f = 0; f < 5; f++) await frames.next();
    const plan = await measureDecoder(config, size, 'full');
    const { allocations, categories } = backend.counters();
    const [runtime, sum] = [categories.runtime?.peak ?? 0, backend.peakBytes];
    console.log(`${sum} of ${plan.peak} bytes, runtime ${runtime} of ${plan.runtime}`);
    expect(sum).toBeLessThanOrEqual(plan.peak);
    // At this size most is what the runtime takes, of which the plan is an upper bound.
    expect(sum / plan.peak).toBeGreaterThan(0.6);
    for await (const frame of frames) expect(frame.length).toBe(18432);
    // The four frames of a latent frame are read together: a slow device needs all their buffers, a fast one reuses one.
    expect(backend.counters().allocations - allocations).toBeLessThan(4);
  });

  test('the golden video in two tiles takes no more than was planned', async () => {
    const { config, checkpoint, size, tensors } = goldens;
    await backend.releaseSessions();
    backend.resetPeaks();
    const tiles = { rows: 1, columns: 2, overlap: 4 };
    const decoder = await createTiledVaeDecoder(backend, config, checkpoint, { ...size, tiles });
    const frames = await collect(decoder.decodeClip(latentsOf(goldens)));
    expect(relativeRms(clipOf(frames), await tensors.read('video'))).toBeLessThan(2e-2);
    expect(ownBytes(backend)).toBe(0);
    const plan = await measureDecoder(config, size, tiles);
    expect(backend.peakBytes).toBeLessThanOrEqual(plan.peak);
  });
});
