/** @module-tag full */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ProgressEvent } from '../../contract';
import { CountingBackend, relativeRms } from '../../gpu';
import { memoised } from '../../graph/memoised';
import { RunControl } from '../../pipeline/control';
import { type Frame, latentFrame } from '../../pipeline/latents';
import { gaussianNoise } from '../../pipeline/noise';
import { type ImageToVideoRequest, imageToVideo } from '../../pipeline/run';
import { createScheduler } from '../../pipeline/schedulers';
import { checkpointFrom, f32, openGolden, patchedFolder } from '../../weights/testing/files';
import { combineLoras, parseLora } from '../layers/lora';
import { encodePrompts } from '../umt5/text-encoder';
import { loadTokenizer } from '../umt5/tokenizer';
import { loraArchitectureOf } from './lora';
import { WanModel } from './model';
import { usualChoice } from './model-memory';
import type { WanParts } from './parts';
import { denoiseTokens } from './testing/denoise';
import { nodeBackend, openTiny, transformerOf } from './testing/model';
import {
  makeVideo,
  smoothImage,
  type VideoOptions,
  type VideoRun,
  videoDefaults,
} from './testing/video';
import { latentsToTokens, tokensToLatents } from './tokens';
import { Transformer } from './transformer';
import { createVaeDecoder, encodeFirstFrame } from './vae';
import { collect } from './vae/testing/goldens';

const backend = nodeBackend();
let model: WanParts;
/** The same with clips of nine frames. */
let short: WanParts;
beforeAll(async () => {
  model = await openTiny();
  const continuation = { latents: 2, keepsMotion: false };
  short = { ...model, manifest: { ...model.manifest, maxClipFrames: 9, continuation } };
});
afterAll(() => backend.dispose());
// Whatever a test did: nothing may stay on the device.
afterEach(() => expect(backend.counters().liveBytes).toBe(0));

const image = smoothImage({ width: 64, height: 32 });
const base = { ...videoDefaults, image, steps: 2 };

function make(
  request: Partial<ImageToVideoRequest>,
  { model: parts = model, ...options }: VideoOptions & { model?: WanParts } = {},
) {
  return makeVideo(backend, parts, { ...base, ...request }, options);
}

/** Videos that several tests compare with, made once. */
const plain = memoised(() => make({}));
const twoClips = memoised(() => make({ frames: 17 }, { model: short }));
const withoutColours = memoised(() => make({ frames: 17, keepsColours: false }, { model: short }));

const stepsOf = (events: readonly ProgressEvent[]) =>
  events.flatMap((event) => (event.type === 'step' ? [`${event.clip}:${event.step}`] : []));

const phasesOf = (events: readonly ProgressEvent[]) =>
  events.flatMap((event) => (event.type === 'phase' ? [`${event.phase} ${event.clip}`] : []));

function planesEqual(a: Frame | undefined, b: Frame | undefined): boolean {
  return relativeRms(a?.data ?? [], b?.data ?? [1]) < 1e-6;
}

describe('a GPU whose bindings are too small for its kernels', () => {
  /** Nothing is computed, so that a CPU can show what is planned and run. */
  function smallBindings() {
    const gpu = new CountingBackend(usualChoice('exact'));
    Object.assign(gpu.compute.limits, { bindingBytes: 4096 });
    return gpu;
  }

  test('is refused before anything is computed where its kernels were chosen', async () => {
    const run: VideoRun = { frames: [], events: [] };
    const making = makeVideo(smallBindings(), model, { ...base, kernels: 'exact' }, { run });
    await expect(making).rejects.toMatchObject({ code: 'KERNELS_UNAVAILABLE' });
    expect(run.events).toEqual([]);
  });

  test('computes by the runtime and says so where nothing was chosen, by a plan that counts that', async () => {
    const gpu = smallBindings();
    const { events, frames, result } = await makeVideo(gpu, model, base);
    expect(events[0]).toMatchObject({
      type: 'kernels',
      asked: 'exact',
      computes: 'runtime',
      reason: expect.stringMatching(/^Kinora’s kernels do not compute .* a binding at most 4096/),
    });
    expect(gpu.kernels).toBeNull();
    expect(frames).toHaveLength(base.frames);
    expect(gpu.peakBytes).toBeLessThanOrEqual(result.memory.peak);
  });
});

describe('one clip', () => {
  test('hands out its frames in native size, and reports each stage in order', async () => {
    const { frames, events, result } = await make({ guidanceScale: 5 });
    expect(result).toMatchObject({ frames: 9, finishedEarly: false });
    expect(frames).toHaveLength(9);
    for (const { data, width, height } of frames) {
      expect([width, height, data.length]).toEqual([64, 32, 3 * 64 * 32]);
      expect(data.every((value) => value >= -1 && value <= 1)).toBe(true);
    }
    expect(phasesOf(events)).toEqual(['text 0', 'image 0', 'load 0', 'denoise 0', 'decode 0']);
    expect(stepsOf(events)).toEqual(['0:1', '0:2']);
    const counted = events.flatMap((event) => (event.type === 'frame' ? [event.frame] : []));
    expect(counted).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const bytes = events.filter((event) => event.type === 'bytes');
    // Two loads, text encoder and transformer: each counts up to its own total.
    const totals = new Set(bytes.map(({ bytesTotal }) => bytesTotal));
    expect(totals.size).toBe(2);
    for (const total of totals) {
      const done = bytes.filter(({ bytesTotal }) => bytesTotal === total).map((e) => e.bytesDone);
      expect(Math.max(...done)).toBe(total);
    }
    const preview = events.find((event) => event.type === 'preview');
    expect(preview).toMatchObject({ width: 4, height: 2, count: 3 });
  });

  test('the seed decides, and nothing else does', async () => {
    const [first, again, other] = [await plain(), await make({}), await make({ seed: 8 })];
    expect(again.frames).toEqual(first.frames);
    expect(planesEqual(other.frames[8], first.frames[8])).toBe(false);
  });

  test('each parameter has an effect', async () => {
    const reference = await make({ guidanceScale: 5 });
    for (const change of [
      { prompt: 'a red fox' },
      { negativePrompt: 'a red fox' },
      { guidanceScale: 4 },
      { flowShift: 3 },
      { steps: 3 },
      { image: { ...image, data: image.data.map((value) => -value) } },
    ]) {
      const { frames } = await make({ guidanceScale: 5, ...change });
      const same = relativeRms(frames[8]?.data ?? [], reference.frames[8]?.data ?? []) < 1e-5;
      expect(same, JSON.stringify(Object.keys(change))).toBe(false);
    }
  });

  test('the negative prompt does nothing without guidance', async () => {
    const { frames } = await make({ negativePrompt: 'another' });
    expect(frames).toEqual((await plain()).frames);
  });

  test('8-bit weights and a LoRA work together', async () => {
    const architecture = loraArchitectureOf(model.config);
    const file = await openGolden('loras/a_peft.safetensors');
    const lora = combineLoras(
      [{ lora: await parseLora(file, architecture, 'a'), scale: 2 }],
      architecture,
    );
    const styled = await make({}, { lora });
    expect(planesEqual(styled.frames[8], (await plain()).frames[8])).toBe(false);
    const quantised = await make({}, { lora, model: { ...model, precision: 'int8' } });
    const error = relativeRms(quantised.frames[8]?.data ?? [], styled.frames[8]?.data ?? []);
    expect(error).toBeGreaterThan(1e-6);
    expect(error).toBeLessThan(0.1);
  });
});

describe('what a video ends in', () => {
  const last = { ...image, data: image.data.map((value) => 0.5 * value - 0.3) };
  const away = (frames: readonly Frame[], from: Frame) =>
    frames.map(({ data }) => relativeRms(data, from.data));

  test('a given picture is the last frame, and those before it fade into it', async () => {
    const { frames, events, result } = await make({ lastImage: last });
    expect(result).toMatchObject({ frames: 9, finishedEarly: false });
    expect(frames[8]).toEqual(last);
    const [before = 0, ...fading] = away(frames, last).slice(4);
    for (const [i, distance] of fading.entries()) {
      expect(distance).toBeLessThan([before, ...fading][i] ?? 0);
    }
    // The model knows where the video goes from its first step on.
    expect(planesEqual(frames[2], (await plain()).frames[2])).toBe(false);
    expect(phasesOf(events)).toEqual(['text 0', 'image 0', 'load 0', 'denoise 0', 'decode 0']);
  });

  test('a loop is one frame shorter, and its last frame leads to the first', async () => {
    const { frames, events, result } = await make({ loop: true });
    expect(result).toMatchObject({ frames: 8, finishedEarly: false });
    const [first] = frames;
    if (!first) throw new Error('there is no frame');
    const [...distances] = away(frames, first).slice(4);
    expect(distances.at(-1)).toBeLessThan(Math.min(...distances.slice(0, -1)));
    const counted = events.flatMap((event) => (event.type === 'frame' ? [event.frames] : []));
    expect(new Set(counted)).toEqual(new Set([8]));
  });

  test('in several clips, the last one ends in it', async () => {
    const { frames } = await make({ frames: 17, lastImage: last }, { model: short });
    expect(frames).toHaveLength(17);
    expect(frames[16]).toEqual(last);
    expect(planesEqual(frames[8], (await twoClips()).frames[8])).toBe(true);
    const loop = await make({ frames: 17, loop: true }, { model: short });
    expect(loop.frames).toHaveLength(16);
  });

  test('a picture at a frame is that frame, and the video goes on from it', async () => {
    const { frames, result } = await make({ lastImage: last, lastImageFrame: 3 });
    expect(frames).toHaveLength(9);
    expect(frames[3]).toEqual(last);
    const distances = away(frames, last);
    expect(distances[2]).toBeLessThan(distances[1] ?? 0);
    expect(distances[4]).toBeGreaterThan(0);
    // The model knows where the video goes from its first step on; a resumed run knows the frame.
    const end = await make({ lastImage: last });
    expect(planesEqual(frames[1], end.frames[1])).toBe(false);
    expect(result.end).toBeNull();
  });

  test.each([false, true])(
    'of several clips, the one that makes the frame holds it; motion kept: %s',
    async (keepsMotion) => {
      const continuation = { latents: 2, keepsMotion };
      const parts = { ...short, manifest: { ...short.manifest, continuation } };
      const held: string[][] = [];
      class Watched extends WanModel {
        override async encodeImages(...asked: Parameters<WanModel['encodeImages']>) {
          const made = await super.encodeImages(...asked);
          held.push(Object.keys(made).toSorted());
          return made;
        }
      }
      const open = (of: WanParts) => new Watched(of);
      const asked = { frames: 25, lastImage: last, lastImageFrame: 11, loop: true };
      const { frames } = await make(asked, { model: parts, open });
      expect(frames).toHaveLength(24);
      expect(frames[11]).toEqual(last);
      // Frame 11 is the third of the second clip: in its first latent frame after those that it begins with.
      const start = keepsMotion ? ['latent.0', 'latent.1'] : ['latent.0'];
      const [next, end] = keepsMotion ? ['latent.2', 'latent.3'] : ['latent.1', 'latent.2'];
      expect(held).toEqual([['latent.0'], [...start, next], [...start, end]]);
      const free = await make({ frames: 25 }, { model: parts });
      expect(planesEqual(frames[8], free.frames[8])).toBe(true);
      const [first] = frames;
      if (!first) throw new Error('there is no frame');
      const [before, closing] = [frames[20], frames[23]].map((frame) =>
        relativeRms(frame?.data ?? [], first.data),
      );
      expect(closing).toBeLessThan(before ?? 0);
    },
  );
});

describe('several clips', () => {
  test.each([
    [13, 2],
    [25, 3],
  ])('%i frames in clips of nine are %i clips', async (frames, clips) => {
    const run = await make({ frames, steps: 1 }, { model: short });
    expect(run.result.frames).toBe(frames);
    expect(run.frames).toHaveLength(frames);
    expect(stepsOf(run.events)).toHaveLength(clips);
    const of = run.events.find((event) => event.type === 'phase');
    expect(of).toMatchObject({ clips });
    // The text is encoded once.
    expect(phasesOf(run.events).filter((phase) => phase.startsWith('text'))).toEqual(['text 0']);
    // No frame comes twice: a repeated one would equal its neighbour.
    for (let i = 1; i < frames; i++) {
      expect(planesEqual(run.frames[i], run.frames[i - 1]), `frame ${i}`).toBe(false);
    }
  });

  test('the second clip is made from the last decoded frame, with noise of its own', async () => {
    const { frames } = await withoutColours();
    const start = frames[8];
    if (!start) throw new Error('the first clip is too short');
    const expected = await secondClip(start);
    // Its first frame repeats the start and is dropped; what it has changed in it fades out over twelve frames.
    expect(expected).toHaveLength(9);
    const [first = new Float32Array()] = expected;
    for (let i = 1; i < 9; i++) {
      const shown = expected[i]?.map(
        (value, at) => value + (1 - i / 12) * ((start.data[at] ?? 0) - (first[at] ?? 0)),
      );
      expect(relativeRms(frames[8 + i]?.data ?? [], shown ?? [])).toBeLessThan(1e-5);
    }
  });

  /** The same clip put together by hand from the parts. */
  async function secondClip(start: Frame): Promise<Float32Array[]> {
    const { config } = model;
    const size = { frames: 3, height: 2, width: 4 };
    const channels = config.transformer.in_channels;
    const { encodePrompt } = await loadTokenizer(model.folder);
    const ids = [encodePrompt(base.prompt)];
    const precision = { precision: 'f32' } as const;
    const [prompt = new Float32Array()] = await encodePrompts(
      backend,
      model.textEncoder,
      config.text_encoder,
      ids,
      precision,
    );
    const firstFrame = await encodeFirstFrame(backend, config.vae, model.vae, start);
    const noise = gaussianNoise({ seed: base.seed, stream: 1, count: channels * 3 * 2 * 4 });
    const transformer = await Transformer.load(
      backend,
      transformerOf(model),
      config.transformer,
      precision,
    );
    const tokens = await denoiseTokens(backend, transformer, {
      size,
      conditioning: latentsToTokens(
        firstFrame,
        channels,
        { ...size, frames: 1 },
        config.transformer,
      ),
      noise: latentsToTokens(noise, channels, size, config.transformer),
      scheduler: createScheduler({ kind: 'unipc', steps: base.steps, flowShift: base.flowShift }),
      guidanceScale: 1,
      prompt,
      negativePrompt: new Float32Array(),
      maxChunkTokens: 4096,
    });
    transformer.dispose();
    const latents = tokensToLatents(tokens, channels, size, config.transformer);
    const decoder = await createVaeDecoder(backend, config.vae, model.vae, {
      latentHeight: 2,
      latentWidth: 4,
    });
    const clip = [0, 1, 2].map((f) => latentFrame(latents, size, f));
    const frames = await collect(decoder.decodeClip(clip));
    decoder.dispose();
    return frames;
  }

  test('that keep the motion hold latent frames of the one before, and are decoded as one sequence', async () => {
    const continuation = { latents: 2, keepsMotion: true };
    const parts = { ...short, manifest: { ...short.manifest, continuation } };
    const { frames, events } = await make({ frames: 17 }, { model: parts });
    expect(frames).toHaveLength(17);
    const phases = ['image', 'load', 'denoise'];
    expect(phasesOf(events)).toEqual([
      'text 0',
      ...phases.map((phase) => `${phase} 0`),
      ...phases.map((phase) => `${phase} 1`),
      'decode 1',
    ]);
    // The first clip is that of a single one.
    const one = await make({}, { model: parts });
    for (const i of [0, 8]) expect(planesEqual(frames[i], one.frames[i])).toBe(true);

    // A video that goes on from a finished one begins with its last frame, and shows none of the others again.
    const before = one.result.end ?? undefined;
    expect(before).toMatchObject({ latents: { length: 3 }, colours: null });
    const next = await make({ frames: 9, before, seed: 3 }, { model: short });
    expect(next.frames).toHaveLength(9);
    expect(planesEqual(next.frames[0], one.frames[8])).toBe(true);
    expect(phasesOf(next.events)).toEqual(phasesOf(one.events));
    // What ends in a picture cannot be continued by its latents.
    const loop = await make({ loop: true }, { model: short });
    expect(loop.result.end).toBeNull();
  });

  test('that go on from a picture are led over in their colours, or not where that is off', async () => {
    const { frames, result } = await twoClips();
    expect(result.colours).toMatchObject([{ clip: 1 }]);
    const off = await withoutColours();
    expect(off.result.colours).toEqual([]);
    expect(planesEqual(frames[8], off.frames[8])).toBe(true);
    expect(planesEqual(frames[12], off.frames[12])).toBe(false);
    // A video that begins with the last frame of another one shows it as it is.
    const next = await make({ continues: true }, { model: short });
    expect(relativeRms(next.frames[0]?.data ?? [], image.data)).toBeLessThan(1e-6);
    expect(next.result.colours).toHaveLength(1);
    // What goes on from its end is changed alike.
    expect(next.result.end?.colours).toEqual(next.result.colours[0]?.encoding);
  });

  test('a number of frames that no clips make is refused', async () => {
    await expect(make({ frames: 10 })).rejects.toThrow(RangeError);
  });
});

describe('the control of a run', () => {
  test('finishing early decodes what is there', async () => {
    const { frames, events, result } = await make(
      { steps: 30 },
      {
        onEvent: (event, control) =>
          event.type === 'step' && event.step === 2 && control.finishEarly(),
      },
    );
    expect(stepsOf(events)).toEqual(['0:1', '0:2']);
    expect(result).toMatchObject({ frames: 9, finishedEarly: true });
    expect(frames).toHaveLength(9);
    for (const { data } of frames) expect(data.every(Number.isFinite)).toBe(true);
  });

  test('finishing early leaves further clips away', async () => {
    const { frames, result } = await make(
      { frames: 25, steps: 3 },
      {
        model: short,
        onEvent: (event, control) =>
          event.type === 'step' && event.clip === 1 && control.finishEarly(),
      },
    );
    expect(result).toMatchObject({ frames: 17, finishedEarly: true });
    expect(frames).toHaveLength(17);
  });

  test.each(['step', 'frame'] as const)(
    'finishing early after the last step (at a %s) changes nothing',
    async (type) => {
      const { frames, result } = await make(
        {},
        {
          onEvent: (event, control) => {
            if (event.type === type && (event.type === 'frame' || event.step === 2)) {
              control.finishEarly();
            }
          },
        },
      );
      expect(result).toMatchObject({ frames: 9, finishedEarly: false });
      expect(frames).toEqual((await plain()).frames);
    },
  );

  test.each([
    ['text', 0],
    ['load', 0],
    ['image', 1],
    ['denoise', 1],
    ['decode', 1],
  ] as const)('cancelling in %s of clip %i ends with CANCELLED', async (phase, clip) => {
    const run: VideoRun = { frames: [], events: [] };
    const cancelled = make(
      { frames: 17 },
      {
        model: short,
        run,
        onEvent: (event, control) => {
          if (event.type === 'phase' && event.phase === phase && event.clip === clip) {
            control.cancel();
          }
        },
      },
    );
    await expect(cancelled).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(phasesOf(run.events).at(-1)).toBe(`${phase} ${clip}`);
    expect(backend.counters().liveBytes).toBe(0);
  });

  test.each(['step', 'bytes', 'frame', 'memory'] as const)(
    'cancelling at the first %s event ends with CANCELLED',
    async (type) => {
      const cancelled = make(
        { steps: 3 },
        { onEvent: (event, control) => event.type === type && control.cancel() },
      );
      await expect(cancelled).rejects.toMatchObject({ code: 'CANCELLED' });
      expect(backend.counters().liveBytes).toBe(0);
    },
  );

  test('an encoder that fails at a frame ends the run with its error', async () => {
    const failing = imageToVideo(backend, new WanModel(model), base, {
      control: new RunControl(),
      onProgress: () => undefined,
      onFrame: async () => {
        throw new Error('no more frames');
      },
    });
    await expect(failing).rejects.toThrow('no more frames');
  });
});

describe('invalid numbers', () => {
  test('a LoRA that makes the latents infinite stops the run and names the step', async () => {
    const architecture = loraArchitectureOf(model.config);
    const huge = await checkpointFrom({
      'diffusion_model.head.head.diff_b': f32([192], Array(192).fill(3e38)),
    });
    const lora = combineLoras(
      [{ lora: await parseLora(huge, architecture, 'huge'), scale: 4 }],
      architecture,
    );
    const run: VideoRun = { frames: [], events: [] };
    await expect(make({ steps: 3 }, { lora, run })).rejects.toMatchObject({
      code: 'LATENTS_NOT_FINITE',
      message: 'The latents became invalid (NaN or infinity) in step 1 of 3.',
    });
    expect(run.frames).toEqual([]);
    expect(stepsOf(run.events)).toEqual([]);
  });

  test.each([
    ['transformer', 'proj_out.bias', 'in step 1 of 2'],
    ['vae', 'quant_conv.bias', 'What the model made of an image'],
  ])('NaN in %s weights is found before anything is decoded', async (part, tensor, message) => {
    const path = `${part}/diffusion_pytorch_model.safetensors`;
    const file = await model.folder.open(path);
    const bytes = new Uint8Array(await file.read(0, file.size));
    const view = new DataView(bytes.buffer);
    const length = Number(view.getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
    view.setFloat32(8 + length + header[tensor].data_offsets[0], Number.NaN, true);
    const broken = await openTiny({}, patchedFolder(model.folder, { [path]: bytes }));
    const run: VideoRun = { frames: [], events: [] };
    await expect(make({}, { model: broken, run })).rejects.toMatchObject({
      code: 'LATENTS_NOT_FINITE',
      message: expect.stringContaining(message),
    });
    expect(run.frames).toEqual([]);
  });
});
