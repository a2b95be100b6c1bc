/** No frame twice and none missing where clips go on from one another: pictures of numbers through the real decoder. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { demonstrationModel, parseManifest } from '../../contract';
import type { Frame } from '../../pipeline/latents';
import type { ClipConditions, ClipDenoiser, Denoiser } from '../../pipeline/model';
import type { ImageToVideoRequest } from '../../pipeline/request';
import { diskFolder, publicModels } from '../../weights/testing/files';
import { givenName } from './condition';
import { WanModel } from './model';
import { openParts, type WanParts } from './parts';
import { nodeBackend } from './testing/model';
import { makeVideo } from './testing/video';
import { encodeFirstFrame } from './vae';

const [width, height, bits] = [32, 32, 3];
const backend = nodeBackend();
let parts: WanParts;
/** What the encoder makes of each number's picture. */
const latents: Float32Array[] = [];

beforeAll(async () => {
  const text = await readFile(`${publicModels}${demonstrationModel}.json`, 'utf8');
  const manifest = parseManifest({ ...JSON.parse(text), maxClipFrames: 9 });
  parts = await openParts(manifest, diskFolder(publicModels + demonstrationModel));
  for (let number = 0; number < 2 ** bits; number++) {
    latents.push(await encodeFirstFrame(backend, parts.config.vae, parts.vae, drawn(number)));
  }
});
afterAll(() => backend.dispose());

/** A number in binary: a square for each digit, bright for 1. */
function drawn(number: number): Frame {
  const data = Float32Array.from({ length: 3 * width * height }, (_, i) => {
    const [x, y] = [i % width, Math.floor(i / width) % height];
    const bit = Math.floor((2 * x) / width) + 2 * Math.floor((2 * y) / height);
    return (number >> bit) & 1 ? 0.7 : -0.7;
  });
  return { data, width, height };
}

/** The number whose picture a frame is nearest to. */
function numberIn(frame: Frame): number {
  return nearest(frame.data, (number) => drawn(number).data);
}

function nearest(values: Float32Array, of: (number: number) => ArrayLike<number>): number {
  const distances = Array.from({ length: 2 ** bits }, (_, number) => {
    const other = of(number);
    return values.reduce((sum, value, i) => sum + (value - (other[i] ?? 0)) ** 2, 0);
  });
  return distances.indexOf(Math.min(...distances));
}

/** A model that counts: each latent frame shows the next number after those that it was given. */
class Counting extends WanModel {
  override async loadDenoiser(): Promise<Denoiser> {
    const prepare = async (clip: ClipConditions) => counting(clip);
    return { prepare, stop: async () => undefined, dispose: () => undefined };
  }
}

function counting({ size, image }: ClipConditions): ClipDenoiser {
  const given = Object.keys(image).length;
  const numbers = Array.from({ length: given }, (_, f) =>
    nearest(image[givenName(f)] ?? new Float32Array(), (number) => latents[number] ?? []),
  );
  // The held ones follow one another.
  expect(numbers).toEqual(numbers.map((_, f) => (numbers[0] ?? 0) + f));
  const plane = size.height * size.width;
  const clean = new Float32Array((latents[0]?.length ?? 0) * size.frames);
  for (let f = 0; f < size.frames; f++) {
    const latent = latents[(numbers[0] ?? 0) + f] ?? [];
    for (let i = 0; i < latent.length; i++) {
      const at = (Math.floor(i / plane) * size.frames + f) * plane + (i % plane);
      clean[at] = latent[i] ?? 0;
    }
  }
  return {
    rowWidth: size.width,
    pack: (values) => values,
    unpack: (rows) => rows,
    // From a sample on the way from noise to the clean latents, the rest of the way.
    async velocity(timestep, sample, velocities) {
      const values = await backend.read(sample);
      const rest = values.map((value, i) => ((value - (clean[i] ?? 0)) * 1000) / timestep);
      for (const velocity of velocities) backend.write(velocity, rest);
    },
    dispose: () => undefined,
  };
}

function count(request: Partial<ImageToVideoRequest>, keepsMotion = false, held = 2) {
  const { continuation } = parts.manifest;
  const manifest = {
    ...parts.manifest,
    continuation: { ...continuation, latents: held, keepsMotion },
  };
  return makeVideo(
    backend,
    { ...parts, manifest },
    { image: drawn(0), steps: 1, ...request },
    { open: (own: WanParts) => new Counting(own) },
  );
}

/** Of the frames that end a latent frame, and how many there are. */
const read = (frames: readonly Frame[]) => ({
  frames: frames.length,
  numbers: frames.filter((_, i) => i % 4 === 0).map(numberIn),
});
const upTo = (last: number) => Array.from({ length: last + 1 }, (_, number) => number);

test.each<[string, boolean, number]>([
  ['from the last picture', false, 1],
  ['by one latent frame', true, 1],
  ['by three', true, 3],
])('clips that go on %s count without a gap', async (_, keeps, held) => {
  const { frames } = await count({ frames: 25 }, keeps, held);
  expect(read(frames)).toEqual({ frames: 25, numbers: upTo(6) });
});

test('a video that goes on from a finished one begins with its last frame', async () => {
  const first = await count({ frames: 13 });
  expect(read(first.frames)).toEqual({ frames: 13, numbers: upTo(3) });
  const { frames } = await count({ frames: 13, before: first.result.end ?? undefined });
  expect(read(frames)).toEqual({ frames: 13, numbers: upTo(6).slice(3) });
  // The same by its last frames alone.
  const { signal } = new AbortController();
  const shown = first.frames.slice(-9);
  const before = {
    latents: await new WanModel(parts).encodeFrames(backend, shown, signal),
    colours: null,
  };
  expect(before.latents).toHaveLength(3);
  const again = await count({ frames: 13, before }, false, 3);
  expect(read(again.frames)).toEqual({ frames: 13, numbers: upTo(6).slice(3) });
});
