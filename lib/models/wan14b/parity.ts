import { z } from 'zod';
import { at } from '../../contract';
import type { Backend } from '../../gpu';
import { Scope } from '../../gpu';
import { denoise } from '../../pipeline/denoise';
import type { KeyFrame } from '../../pipeline/key-frames';
import type { Frame, LatentSize } from '../../pipeline/latents';
import type { NamedTensors } from '../../pipeline/model';
import {
  compare,
  failure,
  type ParityLine,
  type ParityOptions,
  type ParityStage,
} from '../../pipeline/parity';
import { createScheduler } from '../../pipeline/schedulers';
import { decodePng } from '../../safety/parity/png';
import { type Checkpoint, type ModelFolder, openCheckpoint, subfolder } from '../../weights';
import type { Precision } from '../layers/linear';
import { combineLoras, type LoraBranches, parseLora } from '../layers/lora';
import {
  adaptersOf,
  combinations,
  decodeFrames,
  goldenImage,
  int8Tolerance,
  labelOf,
  openFile,
  promptRows,
  type ScaledFile,
  videoOf,
} from '../wan/parity';
import { latentsToTokens, tokensToLatents } from '../wan/tokens';
import { Transformer, tokenWidth } from '../wan/transformer';
import { createVaeDecoder } from '../wan/vae';
import { encodeCondition } from './condition';
import { readVideoConfig, type VideoConfig } from './config';
import { conditionName, ExpertsDenoiser, featuresName } from './denoiser';
import { type Expert, expertOfLora, expertsOf } from './experts';
import { encodeImage, encoderPixels, withoutPrefix } from './image-encoder/image-encoder';
import { loraArchitecture } from './lora';

/** By the mode of kernels that store f16. */
const kernelTolerances = { exact: 3e-3, fast: 5e-2, matrix: 5e-3 } as const;

const settingsSchema = z.looseObject({
  num_frames: z.int().positive(),
  num_inference_steps: z.int().positive(),
  guidance_scale: z.number(),
  /** Below the boundary; the same as above it when null. */
  guidance_scale_2: z.number().nullish(),
  flow_shift: z.number().positive(),
  dit_timestep: z.number().optional(),
});

const kinds: readonly unknown[] = ['wan21', 'a14b'];

/** Whether references are of this family: their `kind` says so. */
export function recognises14b(golden: unknown): boolean {
  return (
    typeof golden === 'object' && golden !== null && kinds.includes(Reflect.get(golden, 'kind'))
  );
}

/** Adapters of each transformer. */
type Adapters = Partial<Record<Expert, LoraBranches>>;

/** References and what computes them. */
class Golden {
  /** What the model makes of pictures, by their names. */
  readonly #conditions = new Map<string, NamedTensors>();

  constructor(
    readonly folder: ModelFolder,
    readonly model: ModelFolder,
    readonly config: VideoConfig,
    readonly settings: z.output<typeof settingsSchema>,
    readonly tensors: Checkpoint,
    readonly backend: Backend,
    readonly precision: Precision,
    readonly tolerance: number,
    readonly loraFiles: readonly string[],
  ) {}

  get size(): LatentSize {
    const [, , frames = 0, height = 0, width = 0] = this.tensors.shape('noise');
    return { frames, height, width };
  }

  get vae(): Promise<Checkpoint> {
    return openCheckpoint(this.model, 'vae');
  }

  async imageEncoder(): Promise<Checkpoint | null> {
    const { image_encoder: encoder } = this.config;
    return encoder && withoutPrefix(await openCheckpoint(this.model, 'image_encoder'), encoder);
  }

  /** What a clip is conditioned by, made by ourselves from pictures. @param last the picture of its last frame */
  async conditions(last?: Frame): Promise<NamedTensors> {
    const key = last ? 'first and last' : 'first';
    const cached = this.#conditions.get(key);
    if (cached) return cached;
    const { backend, config, settings } = this;
    const image = await goldenImage(this.tensors, 'image_rgb_u8');
    const images: KeyFrame[] = [{ frame: 0, image }];
    if (last) images.push({ frame: settings.num_frames - 1, image: last });
    const { num_frames } = settings;
    const condition = await encodeCondition(
      backend,
      config,
      await this.vae,
      images,
      num_frames,
      {},
    );
    const encoder = await this.imageEncoder();
    const conditions =
      config.image_encoder && encoder
        ? {
            [conditionName]: condition,
            [featuresName]: await encodeImage(
              backend,
              encoder,
              config.image_encoder,
              encoderPixels(image, config.image_encoder),
            ),
          }
        : { [conditionName]: condition };
    this.#conditions.set(key, conditions);
    return conditions;
  }

  async texts(): Promise<[Float32Array, Float32Array]> {
    const read = async (name: string) =>
      promptRows(await this.tensors.read(name), this.config.transformer.text_dim);
    return [await read('prompt_embeds'), await read('negative_prompt_embeds')];
  }

  async load(expert: Expert, adapters: Adapters = {}, precision = this.precision) {
    const checkpoint = await openCheckpoint(this.model, expert);
    const lora = adapters[expert];
    const options = { precision, ...(lora && { lora }) };
    return Transformer.load(this.backend, checkpoint, this.config.transformer, options);
  }

  /** The whole denoising loop with the noise of the references. */
  async latents({
    adapters,
    last,
    precision,
  }: {
    adapters?: Adapters;
    last?: Frame;
    precision?: Precision;
  } = {}): Promise<Float32Array> {
    const { backend, config, settings } = this;
    const { num_inference_steps: steps, flow_shift: flowShift, guidance_scale: high } = settings;
    const low = settings.guidance_scale_2 ?? high;
    const noise = await this.tensors.read('noise');
    const scheduler = createScheduler({ kind: 'unipc', steps, flowShift });
    const load = (expert: Expert) => this.load(expert, adapters, precision);
    const { boundary } = config;
    const denoiser = await ExpertsDenoiser.create(backend, config, 4096, load, 1000);
    const guidanceScale = Math.max(high, low);
    const texts = await this.texts();
    try {
      return await denoise(backend, denoiser, {
        size: this.size,
        image: await this.conditions(last),
        texts: guidanceScale > 1 ? texts : texts.slice(0, 1),
        noise: () => noise,
        scheduler,
        guidanceScale,
        guidanceAt: (timestep) => (boundary === null || timestep >= boundary ? high : low),
      });
    } finally {
      denoiser.dispose();
    }
  }

  /** One pass of the first transformer over the noise. */
  async forward(onBlock: (block: number, hidden: Float32Array) => void): Promise<Float32Array> {
    const { config, backend, size, settings } = this;
    const { transformer: sizes, image_encoder: encoder } = config;
    const { [conditionName]: condition, [featuresName]: features } = await this.conditions();
    const model = await this.load('transformer');
    const scope = new Scope(backend);
    try {
      const clip = await model.createClip(size, {
        given: [],
        // One frame per chunk: the check shall cross the seams between chunks.
        maxChunkTokens: (size.height * size.width) / 4,
        guided: false,
        imageRows: encoder && features ? features.length / encoder.hidden_size : undefined,
      });
      try {
        const channels = sizes.in_channels - sizes.out_channels;
        clip.setCondition(latentsToTokens(condition ?? new Float32Array(0), channels, size, sizes));
        if (features) await model.embedImage(clip, features);
        const text = await model.prepareText(clip, at(await this.texts(), 0));
        const time = model.createTimeEmbedding(scope);
        await model.embedTime(clip, settings.dit_timestep ?? Number.NaN, time);
        const noise = await this.tensors.read('noise');
        const tokens = latentsToTokens(noise, sizes.out_channels, size, sizes);
        const dims = [clip.tokens, tokenWidth(sizes)];
        const free = scope.float32(dims, 'latents', tokens);
        const velocity = scope.float32(dims, 'latents');
        await model.velocity(
          clip,
          { conditioning: null, free },
          { noisy: time, conditioning: time },
          [{ text, velocity: { conditioning: null, free: velocity } }],
          { afterBlock: async (block) => onBlock(block, await clip.read()) },
        );
        text.dispose();
        const result = await backend.read(velocity);
        return tokensToLatents(result, sizes.out_channels, size, sizes);
      } finally {
        clip.dispose();
      }
    } finally {
      scope.dispose();
      model.dispose();
    }
  }

  async video(latents: Float32Array): Promise<Float32Array> {
    const { size, backend, config } = this;
    const options = { latentHeight: size.height, latentWidth: size.width };
    const decoder = await createVaeDecoder(backend, config.vae, await this.vae, options);
    return videoOf(await decodeFrames(decoder, latents, size));
  }
}

/** A part of the check, and the references of which it needs one. */
type Stage = readonly [
  name: string,
  checks: RegExp,
  run: (golden: Golden) => AsyncGenerator<ParityLine>,
];

const stages: readonly Stage[] = [
  ['image encoder', /^clip_/, imageEncoder],
  ['condition', /^condition$/, condition],
  ['transformer', /^dit_(velocity|block_\d+)$/, transformer],
  ['latents', /^final_latents$/, latents],
  ['last image', /^final_latents_last_image$/, lastImage],
  ['LoRA', /_lora_/, lora],
  ['video', /^video$/, video],
];

/**
 * The stages for which a folder has a reference. Tolerance: 1e-5, 5e-2 with weights in 8 bits; kernels of our own that
 * store f16 have {@link kernelTolerances}.
 *
 * @throws KinoraError when the folder has no references or no model that can be read
 */
export async function wan14bParityStages(
  folder: ModelFolder,
  backend: Backend,
  { tolerance, loraFiles = [] }: ParityOptions,
): Promise<ParityStage[]> {
  const model = subfolder(folder, 'model');
  const tensors = await openFile(folder, 'golden.safetensors');
  const { mode, storage } = backend.kernels ?? { storage: 'f32' };
  const own = mode && storage !== 'f32' ? kernelTolerances[mode] : undefined;
  const golden = new Golden(
    folder,
    model,
    await readVideoConfig(model),
    settingsSchema.parse(await folder.json('golden.json')),
    tensors,
    backend,
    mode === 'fast' ? 'int8' : 'f32',
    tolerance ?? own ?? 1e-5,
    loraFiles,
  );
  const names = [...tensors.names()];
  return stages
    .filter(([, checks]) => names.some((name) => checks.test(name)))
    .map(([name, , run]) => ({ name, tolerance: golden.tolerance, run: () => run(golden) }));
}

async function* imageEncoder(golden: Golden): AsyncGenerator<ParityLine> {
  const { tensors, config, backend, tolerance } = golden;
  const { image_encoder: sizes } = config;
  const checkpoint = await golden.imageEncoder();
  if (!sizes || !checkpoint) return;
  const pixels = encoderPixels(await goldenImage(tensors, 'image_rgb_u8'), sizes);
  if (tensors.has('clip_pixels')) {
    yield compare('image encoder, pixels', pixels, await tensors.read('clip_pixels'), tolerance);
  }
  if (!tensors.has('clip_hidden')) return;
  const features = await encodeImage(backend, checkpoint, sizes, pixels);
  yield compare('image encoder, features', features, await tensors.read('clip_hidden'), tolerance);
}

async function* condition(golden: Golden): AsyncGenerator<ParityLine> {
  const { [conditionName]: actual = [] } = await golden.conditions();
  yield compare('condition', actual, await golden.tensors.read('condition'), golden.tolerance);
}

async function* transformer(golden: Golden): AsyncGenerator<ParityLine> {
  const { tensors, tolerance } = golden;
  const blocks: Float32Array[] = [];
  const velocity = await golden.forward((block, hidden) => {
    blocks[block] = hidden;
  });
  for (const [block, hidden] of blocks.entries()) {
    const name = `dit_block_${block}`;
    if (!tensors.has(name)) continue;
    yield compare(`transformer block ${block}`, hidden, await tensors.read(name), tolerance);
  }
  if (!tensors.has('dit_velocity')) return;
  yield compare('transformer velocity', velocity, await tensors.read('dit_velocity'), tolerance);
}

/** From the picture to the video, our own results all the way; and with the blocks' weights in 8 bits. */
async function* latents(golden: Golden): AsyncGenerator<ParityLine> {
  const { tensors, tolerance } = golden;
  const expected = await tensors.read('final_latents');
  const actual = await golden.latents();
  yield compare('latents', actual, expected, tolerance);
  if (tensors.has('video')) {
    const reference = await tensors.read('video');
    yield compare('video, from image', await golden.video(actual), reference, tolerance);
  }
  const rounded = await golden.latents({ precision: 'int8' });
  yield compare('latents, 8-bit weights', rounded, expected, int8Tolerance);
}

async function* lastImage(golden: Golden): AsyncGenerator<ParityLine> {
  const { tensors, tolerance, folder } = golden;
  const name = 'final_latents_last_image';
  const last = tensors.has('last_rgb_u8')
    ? await goldenImage(tensors, 'last_rgb_u8')
    : await pictureOf(folder, 'last.png');
  if (!last) {
    yield failure(name, tolerance, 'there is neither last_rgb_u8 nor a last.png that can be read');
    return;
  }
  yield compare(
    'latents, last image',
    await golden.latents({ last }),
    await tensors.read(name),
    tolerance,
  );
}

async function* video(golden: Golden): AsyncGenerator<ParityLine> {
  const { tensors, tolerance } = golden;
  const frames = await golden.video(await tensors.read('final_latents'));
  yield compare('video', frames, await tensors.read('video'), tolerance);
}

/** Each adapter on the transformer that its name says, else on both. */
async function* lora(golden: Golden): AsyncGenerator<ParityLine> {
  const { tensors, tolerance, loraFiles } = golden;
  for (const name of [...tensors.names()].filter((tensor) => tensor.includes('_lora_'))) {
    const choices = choicesOf(name, loraFiles);
    if (choices.length === 0) yield failure(name, tolerance, 'no file in loras/ fits its name');
    for (const choice of choices) {
      const adapters = await adaptersFrom(golden, choice);
      const actual = await golden.latents({ adapters });
      const stage = `latents, ${choice.map(labelOf).join(' + ')}`;
      yield compare(stage, actual, await tensors.read(name), tolerance);
    }
  }
}

/** Files of one layout that are for one transformer each count as one adapter. */
function choicesOf(name: string, files: readonly string[]): ScaledFile[][] {
  const pairs = new Map<string, string[]>();
  for (const file of files.filter((each) => !each.startsWith('wrong'))) {
    const layout = file.replace(/[._-]?(high|low)(_?noise)?/i, '');
    pairs.set(layout, [...(pairs.get(layout) ?? []), file]);
  }
  return combinations(adaptersOf(name), [...pairs.keys()]).map((choice) =>
    choice.flatMap(({ file, scale }) =>
      (pairs.get(file) ?? []).map((each) => ({ file: each, scale })),
    ),
  );
}

async function adaptersFrom(golden: Golden, choice: readonly ScaledFile[]): Promise<Adapters> {
  const architecture = loraArchitecture(golden.config);
  const adapters: Adapters = {};
  for (const expert of expertsOf(golden.config)) {
    const parsed = [];
    for (const { file, scale } of choice) {
      const checkpoint = await openFile(golden.folder, `loras/${file}`);
      const own = expertOfLora({ name: file }, checkpoint.metadata);
      if (own !== null && own !== expert && golden.config.boundary !== null) continue;
      parsed.push({ lora: await parseLora(checkpoint, architecture, file), scale });
    }
    adapters[expert] = combineLoras(parsed, architecture);
  }
  return adapters;
}

/** A PNG of the folder as a frame; null where there is none. */
async function pictureOf(folder: ModelFolder, path: string): Promise<Frame | null> {
  if (!(await folder.exists(path))) return null;
  const file = await folder.open(path);
  const { data: rgba, width, height } = await decodePng(await file.read(0, file.size));
  const plane = width * height;
  const data = Float32Array.from({ length: 3 * plane }, (_, i) => {
    const byte = rgba[4 * (i % plane) + Math.floor(i / plane)] ?? 0;
    return byte / 127.5 - 1;
  });
  return { data, width, height };
}
