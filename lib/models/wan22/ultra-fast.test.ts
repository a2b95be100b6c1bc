import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type LoraFile, parseManifest } from '../../contract';
import type { RunOptions } from '../../contract/run';
import { relativeRms } from '../../gpu';
import { RunControl } from '../../pipeline/control';
import { type Frame, latentSizeOf } from '../../pipeline/latents';
import type { VideoModel } from '../../pipeline/model';
import { gaussianNoise } from '../../pipeline/noise';
import { decodedPreview, Previews } from '../../pipeline/preview';
import { resolveSampling } from '../../pipeline/profiles';
import { imageToVideo } from '../../pipeline/run';
import { goldens, patchedFolder, publicModels } from '../../weights/testing/files';
import { nodeBackend, tinyFolder } from './testing/model';
import { smoothImage, videoDefaults } from './testing/video';
import { wan22Family } from './wan22';

/* The tiny model as it is bundled: with its manifest, an adapter and a tiny decoder. */

const backend = nodeBackend();
const golden = async (path: string) => new Uint8Array(await readFile(goldens + path));
const parts = {
  'tiny_decoder/diffusion_pytorch_model.safetensors': await golden(
    'formats/tiny-decoder-base.safetensors',
  ),
  'adapter/adapter.safetensors': await golden('loras/b_lightx2v_diff_b.safetensors'),
};
const manifest = parseManifest(JSON.parse(await readFile(`${publicModels}tiny.json`, 'utf8')));
const open = (files: Parameters<typeof patchedFolder>[1] = parts, fields = {}) =>
  wan22Family.open({ ...manifest, ...fields }, patchedFolder(tinyFolder, files));
const lora = async (name: string, scale: number): Promise<LoraFile> => {
  const file = await openAsBlob(`${goldens}loras/${name}.safetensors`);
  return { name, file, scale };
};

let bundled: VideoModel;
beforeAll(async () => {
  bundled = await open();
});
afterAll(() => backend.dispose());
afterEach(() => expect(backend.counters().liveBytes).toBe(0));

const asked = { num_inference_steps: 6, guidance_scale: 5, flow_shift: 5 };

/** A video under `ultra-fast`, as the engine makes it. */
async function make(
  model: VideoModel,
  {
    loras = [],
    frames = 9,
    choices = {},
    ...limits
  }: {
    loras?: LoraFile[];
    frames?: number;
    choices?: RunOptions;
    memoryBudget?: number;
    previewShare?: number;
  } = {},
) {
  const { sampling, adapterScale, applied, sentence } = resolveSampling(
    model,
    'ultra-fast',
    asked,
    choices,
  );
  const made: Frame[] = [];
  let steps = 0;
  const previews: (readonly [width: number, count: number])[] = [];
  const { width, height } = manifest.nativeSizes['1280*720'];
  const { memory } = await imageToVideo(
    backend,
    await model.withLoras(loras, adapterScale),
    {
      ...videoDefaults,
      ...sampling,
      frames,
      image: smoothImage({ width, height }),
      // How far a preview comes in a share of the time differs from run to run.
      previewShare: 0,
      ...limits,
    },
    {
      control: new RunControl(),
      onProgress: (event) => {
        if (event.type === 'step') steps += 1;
        if (event.type === 'preview') previews.push([event.width, event.count]);
      },
      onFrame: async (frame) => void made.push({ ...frame, data: frame.data.slice() }),
    },
  );
  return { frames: made, steps, applied, sentence, memory, previews };
}

const last = ({ frames }: { frames: readonly Frame[] }) => frames.at(-1)?.data ?? [];

describe('ultra-fast of the bundled model', () => {
  test('takes three steps with its adapter and decodes with the tiny decoder', async () => {
    const fast = await make(bundled);
    expect([fast.steps, fast.frames.length]).toEqual([3, 9]);
    expect(fast.applied).toMatchObject({ decoder: 'tiny', adapter: { name: 'Tiny few-step' } });
    expect(await make(bundled)).toEqual(fast);
    const full = await make(bundled, { choices: { decoder: 'full' } });
    expect(full.applied.decoder).toBe('full');
    expect(relativeRms(last(full), last(fast))).toBeGreaterThan(0.01);
  });

  test('previews are true pictures where there is room and time for them', async () => {
    const { width, height } = manifest.nativeSizes['1280*720'];
    const size = latentSizeOf(bundled.latents, { width, height, frames: 9 });
    const latents = gaussianNoise({
      seed: 1,
      stream: 0,
      draw: 0,
      count: bundled.latents.channels * size.frames * size.height * size.width,
    });
    const { signal } = new AbortController();
    const preview = (seconds: number) =>
      decodedPreview(backend, bundled, { size, latents, signal }, seconds);
    const strip = await preview(60);
    expect(strip).toMatchObject({ width, height, count: 3 });
    const decoder = 'tiny';
    const clip = { size, latents, signal, decoder, tiles: 'full', onTile: () => {} } as const;
    const frames: Float32Array[] = [];
    for await (const frame of bundled.decode(backend, clip)) frames.push(frame.slice());
    const green = strip?.pixels[(2 * height * width + 70) * 4 + 1];
    const value = frames[8]?.[height * width + 70] ?? Number.NaN;
    expect(green).toBe(Math.round(Math.min(1, Math.max(-1, value)) * 127.5 + 127.5));
    expect(await preview(0)).toBeNull();

    // Where memory runs out although the plan had room, the run goes on with strips of colours.
    const previews = new Previews(backend, bundled, 1e9);
    previews.decodes = true;
    const { ceiling } = backend;
    backend.ceiling = backend.counters().liveBytes;
    expect(await previews.make(latents, size, signal)).toMatchObject({ width: size.width });
    backend.ceiling = ceiling;
    expect(previews.decodes).toBe(false);

    const previewShare = 1000;
    const whole = await make(bundled, { previewShare });
    // What the last step predicts is not previewed: it is decoded.
    expect(whole.previews).toEqual([
      [width, 3],
      [width, 3],
    ]);
    const less = await make(bundled, { memoryBudget: whole.memory.peak - 1, previewShare });
    expect(less.memory).toMatchObject({ residentBlocks: whole.memory.blocks });
    expect(less.previews).toEqual(Array.from({ length: 3 }, () => [size.width, 3]));
    expect(less.frames).toEqual(whole.frames);
  });

  test('has up to four adapters at once, and the plan counts them', async () => {
    const three = [
      await lora('a_peft', 1.5),
      await lora('a_kohya_alpha', 0.5),
      await lora('a_comfy', 1),
    ];
    const [alone, together] = [await make(bundled), await make(bundled, { loras: three })];
    expect(relativeRms(last(together), last(alone))).toBeGreaterThan(1e-4);
    expect(together.memory.peak).toBeGreaterThan(alone.memory.peak);
  });

  test('stops at the step whose latents are not finite', async () => {
    const encodeText = bundled.encodeText;
    const spy = vi
      .spyOn(Object.getPrototypeOf(bundled) as VideoModel, 'encodeText')
      .mockImplementation(async function (this: VideoModel, ...given) {
        const texts = await encodeText.apply(this, given);
        return texts.map((text) => text.fill(Number.NaN));
      });
    await expect(make(bundled)).rejects.toMatchObject({
      code: 'LATENTS_NOT_FINITE',
      message: expect.stringContaining('step 1 of 3'),
    });
    spy.mockRestore();
  });

  test('without the tiny decoder takes the full one, and says so; to want the tiny one is an error', async () => {
    const { 'tiny_decoder/diffusion_pytorch_model.safetensors': _, ...lacking } = parts;
    const model = await open(lacking);
    const { applied, sentence } = resolveSampling(model, 'ultra-fast', asked);
    expect(applied.decoder).toBe('full');
    expect(sentence).toContain('full decoder');
    await expect(make(model, { choices: { decoder: 'tiny' } })).rejects.toMatchObject({
      code: 'MODEL_FILE_MISSING',
    });
  });

  test('chains clips', async () => {
    const short = await open(parts, { maxClipFrames: 9 });
    const { frames, steps } = await make(short, { frames: 17 });
    expect([frames.length, steps]).toEqual([17, 6]);
  });
});

describe('ultra-fast where the adapter', () => {
  const { 'adapter/adapter.safetensors': _, ...without } = parts;

  test('is absent: a cache, and guidance for 60 % of the steps', async () => {
    const { applied, sentence, steps } = await make(await open(without));
    expect(applied).toMatchObject({ steps: 6, guided_steps: 4, cache: 'easycache', adapter: null });
    expect(sentence).toMatch(/^Ultra-fast \(no few-step adapter is installed\): 6 steps, /);
    expect(steps).toBe(6);
  });

  test('is of another base: the same, and the line says why; to want it is an error', async () => {
    const wrong = await golden('loras/wrong_base_14b.safetensors');
    const model = await open({ ...without, 'adapter/adapter.safetensors': wrong });
    expect(model.adapter?.misfit).toMatchObject({ code: 'LORA_WRONG_BASE' });
    const { sentence } = resolveSampling(model, 'ultra-fast', asked);
    expect(sentence).toContain('its adapter does not fit');
    await expect(model.withLoras([], 1)).rejects.toMatchObject({ code: 'LORA_WRONG_BASE' });
    await expect((await open(without)).withLoras([], 1)).rejects.toMatchObject({
      code: 'MODEL_FILE_MISSING',
    });
  });
});
