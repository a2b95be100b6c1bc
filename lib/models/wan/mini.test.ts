/** The bundled model shows the user's own picture, which moves as the prompt says. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { demonstrationModel, parseManifest, samplePrompt } from '../../contract';
import { type Backend, WasmBackend } from '../../gpu';
import { runParity } from '../../parity';
import type { Frame } from '../../pipeline/latents';
import type { ClipToDecode } from '../../pipeline/model';
import type { ImageToVideoRequest } from '../../pipeline/request';
import { openSafetensors } from '../../weights';
import { diskFile, diskFolder, publicModels } from '../../weights/testing/files';
import { combineLoras, parseLora } from '../layers/lora';
import { loraArchitectureOf } from './lora';
import { WanModel } from './model';
import { openParts, type WanParts } from './parts';
import { brightness, displacement, magnification, psnr } from './testing/displacement';
import { withModel } from './testing/mini';
import { nodeBackend } from './testing/model';
import { makeVideo, type VideoOptions } from './testing/video';

const references = fileURLToPath(new URL('./goldens/mini-wan22-ti2v/', import.meta.url));
const folder = diskFolder(publicModels + demonstrationModel);
const backend = nodeBackend();
let model: WanParts;
/** The product's sample, and a portrait picture, at the sizes of the model. */
let pictures: Readonly<Record<'landscape' | 'portrait', Frame>>;

beforeAll(async () => {
  const text = await readFile(`${publicModels}${demonstrationModel}.json`, 'utf8');
  model = await openParts(parseManifest(JSON.parse(text)), folder);
  const bytes = new Uint8Array(await readFile(`${references}pictures.safetensors`));
  pictures = { landscape: picture(bytes, 'landscape'), portrait: picture(bytes, 'portrait') };
});
afterAll(() => backend.dispose());

/** A picture of 8-bit RGB [height, width, 3] in a safetensors file, as planes from -1 to 1. */
function picture(file: Uint8Array<ArrayBuffer>, name: string): Frame {
  const start = 8 + Number(new DataView(file.buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, start)));
  const [height, width] = header[name].shape as [number, number];
  const [from, to] = header[name].data_offsets as [number, number];
  const pixels = file.subarray(start + from, start + to);
  const plane = width * height;
  const data = Float32Array.from(
    pixels,
    (_, i) => (pixels[(i % plane) * 3 + Math.floor(i / plane)] ?? 0) / 127.5 - 1,
  );
  return { width, height, data };
}

/** A short video of the sample in few steps. */
async function video(
  prompt: string,
  request: Partial<ImageToVideoRequest> = {},
  options: VideoOptions = {},
) {
  const { frames } = await makeVideo(
    backend,
    model,
    {
      image: pictures.landscape,
      frames: 33,
      steps: 4,
      guidanceScale: 1,
      seed: 1,
      prompt,
      negativePrompt: '',
      ...request,
    },
    options,
  );
  const [first, last] = [frames[0], frames.at(-1)];
  if (!first || !last) throw new Error('the video has no frames');
  return { frames, first, last, moved: displacement(first, last) };
}

/** The means of the squares of a frame, as RGB of 0 to 255, square after square. */
function squares({ width, height, data }: Frame, size: number): number[] {
  const [columns, rows] = [width / size, height / size];
  return Array.from({ length: columns * rows * 3 }, (_, at) => {
    const [square, channel] = [Math.floor(at / 3), at % 3];
    const [left, top] = [(square % columns) * size, Math.floor(square / columns) * size];
    let sum = 0;
    for (let y = top; y < top + size; y++) {
      for (let x = left; x < left + size; x++) sum += data[(channel * height + y) * width + x] ?? 0;
    }
    return (sum / size ** 2 + 1) * 127.5;
  });
}

/** The share of pixels whose red is over their green, and their green over their blue. */
function sepiaShare({ width, height, data }: Frame): number {
  const plane = width * height;
  const of = (channel: number, i: number) => data[channel * plane + i] ?? 0;
  let count = 0;
  for (let i = 0; i < plane; i++) if (of(0, i) > of(1, i) && of(1, i) > of(2, i)) count += 1;
  return count / plane;
}

/** The mean differences of neighbouring frames, as shares of their median. */
function steps(frames: readonly Frame[]): number[] {
  const differences = frames.slice(1).map((frame, i) => difference(frame, frames[i] ?? frame));
  return differences.map((value) => value / medianOf(differences));
}

function difference(a: Frame, b: Frame): number {
  return a.data.reduce((sum, value, i) => sum + Math.abs(value - (b.data[i] ?? 0)), 0);
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** As the manifest has it. */
const longer = { frames: 121, steps: 4, guidanceScale: 1 };
/** Half as long, for what shows by then. */
const shorter = { ...longer, frames: 61 };

test('a video on the CPU does not load ONNX Runtime', { timeout: 60_000 }, async () => {
  const vectors = new WasmBackend(() => {
    throw new Error('The runtime was loaded.');
  });
  const image = pictures.landscape;
  const { frames } = await makeVideo(vectors, model, { image, frames: 5, steps: 1 });
  expect(frames).toHaveLength(5);
  await vectors.dispose();
});

test('a pan to the left shows the picture, and moves it to the right', {
  tags: ['full'],
  timeout: 120_000,
}, async () => {
  const { first, moved } = await video('The camera pans to the left');
  expect(psnr(first, pictures.landscape)).toBeGreaterThan(22);
  expect(moved.x).toBeGreaterThan(0);
});

test('a preview shows the picture in its colours', {
  tags: ['full'],
  timeout: 120_000,
}, async () => {
  const { events } = await makeVideo(backend, model, {
    image: pictures.landscape,
    frames: 5,
    steps: 1,
    prompt: 'Static camera',
  });
  const preview = events.find((event) => event.type === 'preview');
  if (preview?.type !== 'preview') throw new Error('there is no preview');
  const { width, height, pixels } = preview;
  expect([width, height]).toEqual([28, 16]);
  // The first frame is the picture that was given: the means of its 16×16 squares.
  const means = squares(pictures.landscape, 16);
  const wrong = means.map((mean, i) => Math.abs((pixels[i + Math.floor(i / 3)] ?? 0) - mean));
  expect(wrong.reduce((sum, value) => sum + value, 0) / wrong.length).toBeLessThan(8);
});

describe('with the defaults of the model', { tags: ['full'], timeout: 240_000 }, () => {
  test('the prompt of the sample has its direction', async () => {
    const { frames, first, moved } = await video(samplePrompt, longer);
    expect(psnr(first, pictures.landscape)).toBeGreaterThan(22);
    // It moves in each frame, within the four of a latent frame as much as across them.
    const moves = steps(frames);
    const across = medianOf(moves.filter((_, i) => i % 4 === 0));
    const within = medianOf(moves.filter((_, i) => i % 4 !== 0));
    expect(within / across).toBeGreaterThan(0.8);
    // The first picture has more detail than what moves.
    expect(Math.max(...moves)).toBeLessThan(2.8);
    // To the left, and far less up or down.
    expect(moved.x).toBeLessThan(-16);
    expect(Math.abs(moved.y)).toBeLessThan(-moved.x);
  });

  test('a loop closes: from its last frame to its first is no larger step than others', async () => {
    const { frames, first } = await video(samplePrompt, { ...shorter, loop: true });
    expect(frames).toHaveLength(60);
    const middle = frames[30];
    if (!middle) throw new Error('frames are missing');
    const away = displacement(first, middle);
    expect(away.x).toBeLessThan(-2);
    expect(steps([...frames, first]).at(-1)).toBeLessThan(1.2);
  });

  test('at a chosen second it shows another picture, and goes there and on', async () => {
    const { data } = pictures.landscape;
    // The picture at night.
    const dusk = { ...pictures.landscape, data: data.map((value) => 0.5 * value - 0.3) };
    const frame = 16;
    const held: Float32Array[] = [];
    /** Notes what the decoder makes of the held latent frame. */
    class Watched extends WanModel {
      override async *decode(on: Backend, clip: ClipToDecode) {
        for await (const decoded of super.decode(on, clip)) {
          held.push(decoded.slice());
          yield decoded;
        }
      }
    }
    const open = (parts: WanParts) => new Watched(parts);
    const asked = { ...longer, frames: 33, lastImage: dusk, lastImageFrame: frame };
    const { frames, first, last } = await video('Static camera', asked, { open });
    expect(frames[frame]).toEqual(dusk);
    // The decoder makes the picture of what is held for it; the exchanged frame only hides the rest.
    expect(psnr({ ...dusk, data: held[frame] ?? data }, dusk)).toBeGreaterThan(28);
    // Not by a cut: no frame is further from the one before than a few of the usual steps.
    expect(Math.max(...steps(frames))).toBeLessThan(5);
    expect(brightness(last)).toBeLessThan(brightness(first));
  });

  test('zooming in has its direction', async () => {
    const { first, last } = await video('The camera zooms in', longer);
    expect(Math.log(magnification(first, last))).toBeGreaterThan(0.1);
  });

  test('a static camera moves nothing', async () => {
    const { first, last, moved } = await video('Static camera', shorter);
    expect(Math.hypot(moved.x, moved.y)).toBeLessThanOrEqual(2);
    expect(psnr(last, first)).toBeGreaterThan(20);
  });

  test('when night falls, it gets dark', async () => {
    const { first, last } = await video('Night falls slowly', shorter);
    expect(brightness(last)).toBeLessThan(brightness(first) * 0.85);
  });

  test('the LoRA that comes with it turns the video to sepia, and leaves the motion', async () => {
    const architecture = loraArchitectureOf(model.config);
    const name = 'mini-sepia.safetensors';
    const file = await openSafetensors(await diskFile(`${publicModels}../samples/${name}`));
    const lora = combineLoras(
      [{ lora: await parseLora(file, architecture, name), scale: 1 }],
      architecture,
    );
    const { first, last, moved } = await video('The camera pans to the left', shorter, { lora });
    expect(psnr(first, pictures.landscape)).toBeGreaterThan(22);
    expect(moved.x).toBeGreaterThan(8);
    // Sepia: red over green over blue everywhere, which the sample is not.
    const [shareThen, shareNow] = [sepiaShare(first), sepiaShare(last)];
    expect(shareThen).toBeLessThan(0.6);
    expect(shareNow).toBeGreaterThan(0.8);
  });

  test('a portrait picture moves as well', async () => {
    const { first, moved } = await video('The camera tilts up', {
      ...shorter,
      image: pictures.portrait,
    });
    expect([first.width, first.height]).toEqual([256, 448]);
    expect(psnr(first, pictures.portrait)).toBeGreaterThan(22);
    // Down, as the content moves, and far less to the sides.
    expect(moved.y).toBeGreaterThan(8);
    expect(Math.abs(moved.x)).toBeLessThan(moved.y);
  });

  test('a second clip goes on where the first one ended, without a jump', async () => {
    const parts = { ...model, manifest: { ...model.manifest, maxClipFrames: 33 } };
    const { frames } = await makeVideo(backend, parts, {
      image: pictures.landscape,
      frames: 65,
      steps: 4,
      guidanceScale: 1,
      seed: 1,
      prompt: 'The camera pans to the left',
      negativePrompt: '',
    });
    expect(
      psnr(frames[33] ?? pictures.landscape, frames[32] ?? pictures.landscape),
    ).toBeGreaterThan(22);
    expect(steps(frames)[32]).toBeLessThan(1.4);
    const [start, middle, end] = [frames[0], frames[32], frames[64]];
    if (!start || !middle || !end) throw new Error('frames are missing');
    expect(displacement(start, middle).x).toBeGreaterThan(0);
    expect(displacement(middle, end).x).toBeGreaterThan(0);
  });
});

test('every stage agrees with the reference tensors', { tags: ['full'] }, async () => {
  const goldens = withModel(diskFolder(references), folder);
  const lines = await runParity(goldens, backend);
  // The LoRAs of the export are not kept. Trained weights have larger numbers, which round more than random ones.
  const wrong = lines.filter(
    ({ relativeRms, tolerance, stage }) =>
      !(relativeRms <= 2 * tolerance) && !stage.includes('lora'),
  );
  expect(wrong).toEqual([]);
  expect(lines.length).toBeGreaterThan(20);
});
