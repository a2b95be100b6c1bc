/** @module-tag full */
import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type LoraFile, parseManifest, profilesSchema, type RunOptions } from '../../contract';
import { relativeRms } from '../../gpu';
import { RunControl } from '../../pipeline/control';
import { type Frame, latentSizeOf } from '../../pipeline/latents';
import type { VideoModel } from '../../pipeline/model';
import { gaussianNoise } from '../../pipeline/noise';
import { decodedPreview, Previews } from '../../pipeline/preview';
import { resolveSampling } from '../../pipeline/profiles';
import { imageToVideo } from '../../pipeline/run';
import { openCheckpoint } from '../../weights/testing/checkpoint';
import {
  f32,
  goldens,
  patchedFolder,
  publicModels,
  safetensorsBytes,
  type TestTensor,
} from '../../weights/testing/files';
import { modelFamilies } from '..';
import { nodeBackend, tinyFolder } from './testing/model';
import { smoothImage, videoDefaults } from './testing/video';

/** A LoRA file to be made. */
interface Twin {
  readonly key: (module: string) => { down: string; up: string; alpha?: string };
  readonly rank: number;
  readonly alpha?: number;
  readonly scale: number;
  /** Whether it changes every linear layer of the blocks. */
  readonly all?: boolean;
}

/** As LongLive-Plug: the original names under PEFT's prefix, no alpha, 10 linears of each block. */
const peft = (rank: number, scale: number): Twin => ({
  key: (module) => ({
    down: `base_model.model.${module}.lora_A.weight`,
    up: `base_model.model.${module}.lora_B.weight`,
  }),
  rank,
  scale,
  all: true,
});
const comfy: Twin = {
  key: (module) => ({
    down: `diffusion_model.${module}.lora_down.weight`,
    up: `diffusion_model.${module}.lora_up.weight`,
    alpha: `diffusion_model.${module}.alpha`,
  }),
  rank: 2,
  alpha: 1,
  scale: 0.8,
};
const kohya: Twin = {
  key: (module) => {
    const name = `lora_unet_${module.replaceAll('.', '_')}`;
    return {
      down: `${name}.lora_down.weight`,
      up: `${name}.lora_up.weight`,
      alpha: `${name}.alpha`,
    };
  },
  rank: 5,
  alpha: 10,
  scale: 0.3,
};

/** The linear layers of a block, by their names in original files and in those of diffusers. */
const linears = [
  ...(['self_attn', 'cross_attn'] as const).flatMap((original, i) =>
    (['q', 'k', 'v', 'o'] as const).map(
      (one) =>
        [`${original}.${one}`, `attn${i + 1}.${one === 'o' ? 'to_out.0' : `to_${one}`}`] as const,
    ),
  ),
  ['ffn.0', 'ffn.net.0.proj'] as const,
  ['ffn.2', 'ffn.net.2'] as const,
];

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
  modelFamilies.wan22.open({ ...manifest, ...fields }, patchedFolder(tinyFolder, files));
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
    memoryBudget,
    ...limits
  }: {
    loras?: LoraFile[];
    frames?: number;
    choices?: RunOptions;
    memoryBudget?: number;
    previewShare?: number;
  } = {},
) {
  const { sampling, adapterScales, applied, sentence } = resolveSampling(
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
    await model.withLoras(loras, adapterScales),
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
      ...(memoryBudget !== undefined && { memoryBudget }),
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

  test('two adapters and three LoRAs, each in its layout, are the weights that they change', async () => {
    const base = await openCheckpoint(tinyFolder, 'transformer');
    const merged = new Map<string, number[]>();
    for (const name of base.names()) merged.set(name, [...(await base.read(name))]);
    const blocks = [...new Set([...merged.keys()].map((key) => /^blocks\.\d+/.exec(key)?.[0]))];
    let stream = 0;
    const noise = (count: number) => [...gaussianNoise({ seed: 36, stream: stream++, count })];
    /** A file of f32 factors, which are added to the merged weights in double precision. */
    function file({ key, rank, alpha, scale, all = false }: Twin): Uint8Array<ArrayBuffer> {
      const tensors: Record<string, TestTensor> = {};
      for (const block of blocks.filter((each) => each !== undefined)) {
        for (const [original, module] of all ? linears : linears.slice(0, 3)) {
          const weight = merged.get(`${block}.${module}.weight`) ?? [];
          const [out = 0, inner = 0] = base.shape(`${block}.${module}.weight`);
          const [down, up] = [noise(rank * inner), noise(out * rank)].map((all) =>
            all.map((value) => Math.fround(value * 0.1)),
          ) as [number[], number[]];
          const stem = key(`${block}.${original}`);
          tensors[stem.down] = f32([rank, inner], down);
          tensors[stem.up] = f32([out, rank], up);
          if (stem.alpha) tensors[stem.alpha] = f32([1], [alpha ?? rank]);
          const factor = (scale * (alpha ?? rank)) / rank;
          for (const i of weight.keys()) {
            const [row, column] = [Math.floor(i / inner), i % inner];
            for (let r = 0; r < rank; r++) {
              const change = (up[row * rank + r] ?? 0) * (down[r * inner + column] ?? 0);
              weight[i] = (weight[i] ?? 0) + factor * change;
            }
          }
        }
      }
      return safetensorsBytes(tensors);
    }
    const [fewStep, guidance] = [file(peft(8, 1)), file(peft(4, 0.5))];
    const loras = [comfy, kohya, { ...peft(3, 0.4), all: false }].map((twin, i) => ({
      name: `lora ${i}`,
      file: new Blob([file(twin)]),
      scale: twin.scale,
    }));
    const [first] = manifest.profiles['ultra-fast'].adapters;
    const scheduler = { kind: 'unipc', timesteps: [999.8, 937.265, 833.055, 624.687] };
    const beside = { repository: 'owner/name', path: 'guidance.safetensors', scale: 0.5 };
    const of = (fields: object) => ({
      profiles: profilesSchema.parse({ 'ultra-fast': { decoder: 'tiny', ...fields } }),
    });
    const branches = await make(
      await open(
        {
          ...parts,
          'adapter/adapter.safetensors': fewStep,
          'guidance_adapter/adapter.safetensors': guidance,
        },
        of({ adapters: [{ ...first, scheduler, guidanceAdapter: beside }] }),
      ),
      { loras },
    );
    const weights = [...merged].map(([name, values]) => [name, f32(base.shape(name), values)]);
    const changed = safetensorsBytes(Object.fromEntries(weights));
    const transformer = 'transformer/diffusion_pytorch_model.safetensors';
    const inWeights = await make(
      await open({ ...parts, [transformer]: changed }, of({ scheduler, guidance: 1 })),
    );
    expect(branches.steps).toBe(4);
    expect(relativeRms(last(branches), last(inWeights))).toBeLessThan(1e-5);
    const plain = await make(await open(parts, of({ scheduler, guidance: 1 })));
    expect(relativeRms(last(plain), last(inWeights))).toBeGreaterThan(1e-2);
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

  test('is absent: guidance for 60 % of the steps, and without ratios no cache', async () => {
    const { applied, sentence, steps } = await make(await open(without));
    expect(applied).toMatchObject({ steps: 6, guided_steps: 4, cache: 'none', adapter: null });
    expect(sentence).toMatch(/^Ultra-fast \(no few-step adapter is installed\): 6 steps, /);
    expect(steps).toBe(6);
  });

  test('is of another base: the same, and the line says why; to want it is an error', async () => {
    const wrong = await golden('loras/wrong_base_14b.safetensors');
    const model = await open({ ...without, 'adapter/adapter.safetensors': wrong });
    expect(model.adapters.adapter?.misfit).toMatchObject({ code: 'LORA_WRONG_BASE' });
    const { sentence } = resolveSampling(model, 'ultra-fast', asked);
    expect(sentence).toContain('its adapter does not fit');
    await expect(model.withLoras([], { adapter: 1 })).rejects.toMatchObject({
      code: 'LORA_WRONG_BASE',
    });
    await expect((await open(without)).withLoras([], { adapter: 1 })).rejects.toMatchObject({
      code: 'MODEL_FILE_MISSING',
    });
  });
});
