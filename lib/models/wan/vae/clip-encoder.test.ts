import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { relativeRms } from '../../../gpu';
import { openSafetensors } from '../../../weights';
import { openCheckpoint } from '../../../weights/testing/checkpoint';
import { diskFile, diskFolder, goldens } from '../../../weights/testing/files';
import { readVideoConfig } from '../model-config';
import { nodeBackend, tinyFolder } from '../testing/model';
import { encodeClip, encodeFirstFrame } from './encoder';
import { openGoldens, videoFrames } from './testing/goldens';

const model = diskFolder(
  fileURLToPath(new URL('../../wan/goldens/tiny-wan22-a14b/model/', import.meta.url)),
);
const backend = nodeBackend();
afterAll(() => backend.dispose());

const [width, height] = [16, 16];
const picture = (phase: number) => ({
  width,
  height,
  data: Float32Array.from({ length: 3 * width * height }, (_, i) => Math.sin(i / 7 + phase)),
});
/** Grey, as another array for each frame: then nothing is taken for what it was before. */
const grey = () => ({ width, height, data: new Float32Array(3 * width * height) });

test('what repeats behind the picture is not computed again, and is the same bit for bit', {
  tags: ['full'],
  timeout: 120_000,
}, async () => {
  const { vae: config } = await readVideoConfig(model);
  const checkpoint = await openCheckpoint(model, 'vae');
  // So long that even the last level repeats itself: 36 latent frames.
  const frames = 36;
  const last = 4 * (frames - 1);
  const shown = new Map([
    [0, picture(0)],
    [last, picture(2)],
  ]);
  const all = new Map(
    Array.from({ length: last + 1 }, (_, f) => [f, shown.get(f) ?? grey()] as const),
  );
  let runs = 0;
  const { run } = backend;
  backend.run = (...rest) => {
    runs += 1;
    return run.apply(backend, rest);
  };
  // Only the runtime's runs are counted.
  backend.runtimeOnly = true;
  const short = await encodeClip(backend, config, checkpoint, shown, frames);
  const used = runs;
  runs = 0;
  const whole = await encodeClip(backend, config, checkpoint, all, frames);
  expect(short).toEqual(whole);
  expect(used).toBeLessThan(0.5 * runs);
  backend.runtimeOnly = false;
});

test('a clip of the residual VAE is the library’s latents, and its beginning those of less of it', async () => {
  const { config, checkpoint, tensors } = await openGoldens(diskFolder(goldens), tinyFolder);
  const video = await videoFrames(tensors);
  const reference = await openSafetensors(
    await diskFile(fileURLToPath(new URL('testdata/video-latents.safetensors', import.meta.url))),
  );
  const encode = (frames: number) =>
    encodeClip(
      backend,
      config,
      checkpoint,
      new Map(video.slice(0, frames).entries()),
      1 + (frames - 1) / 4,
    );
  const whole = await encode(9);
  expect(relativeRms(whole, await reference.read('latents'))).toBeLessThan(1e-5);
  // [z, F, h·w]: latent frames of a channel lie beside each other.
  const plane = whole.length / config.z_dim / 3;
  const first = (latents: Float32Array, of: number, count: number) =>
    Array.from({ length: config.z_dim }, (_, c) => [
      ...latents.subarray(c * of * plane, (c * of + count) * plane),
    ]);
  expect(first(await encode(5), 2, 2)).toEqual(first(whole, 3, 2));
  const [still] = video;
  const picture = still && (await encodeFirstFrame(backend, config, checkpoint, still));
  expect(picture).toEqual(await encode(1));
  expect(first(await encode(1), 1, 1)).toEqual(first(whole, 3, 1));
});
