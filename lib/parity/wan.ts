import { z } from 'zod';
import { at, KinoraError } from '../contract';
import { Scope } from '../gpu';
import { memoised } from '../graph';
import type { Precision } from '../models/layers/linear';
import {
  combineLoras,
  type LoraArchitecture,
  type LoraBranches,
  parseLora,
} from '../models/layers/lora';
import { encodePrompts } from '../models/umt5/text-encoder';
import { readTextEncoderConfig, type TextEncoderConfig } from '../models/umt5/text-encoder-config';
import { loadTokenizer } from '../models/umt5/tokenizer';
import { conditionName, encodePictures, featuresName, givenName } from '../models/wan/condition';
import { WanDenoiser } from '../models/wan/denoiser';
import type { Expert } from '../models/wan/experts';
import { loraArchitectureOf } from '../models/wan/lora';
import { readVideoConfig, type VideoConfig } from '../models/wan/model-config';
import { latentsToTokens, tokensPerFrame, tokensToLatents } from '../models/wan/tokens';
import { Transformer, tokenWidth } from '../models/wan/transformer';
import { type ClipDecoder, createVaeDecoder, encodeFirstFrame } from '../models/wan/vae';
import { openComponent, type WeightComponent } from '../models/wan/wan-naming';
import { denoise } from '../pipeline/denoise';
import { type Frame, joinLatents, type LatentSize, splitLatents } from '../pipeline/latents';
import type { NamedTensors } from '../pipeline/model';
import { createScheduler } from '../pipeline/schedulers';
import { openTensorFiles, subfolder } from '../weights';
import { type Golden, openFile, readFields, readPicture } from './golden';

const settingsSchema = z.looseObject({
  prompt: z.string(),
  negative_prompt: z.string().default(''),
  num_frames: z.int().positive().default(1),
  num_inference_steps: z.int().positive(),
  guidance_scale: z.number(),
  /** Below the boundary; the same as above it when null. */
  guidance_scale_2: z.number().nullish(),
  flow_shift: z.number().positive(),
  dit_timestep: z.number().default(Number.NaN),
  tokenizer_prompts: z.array(z.string()).default([]),
  tokenizer_ids: z.array(z.array(z.int())).default([]),
  cleaned: z.array(z.string()).default([]),
});

/** The references of 14B models come without a text encoder. */
type Config = VideoConfig & { readonly text_encoder?: TextEncoderConfig };

/** Embeddings of prompt and negative prompt, and what the references call them. */
export const textNames = ['prompt_embeds', 'negative_prompt_embeds'];

export const modelOf = ({ folder }: Golden) => subfolder(folder, 'model');

export async function openWan(golden: Golden) {
  const folder = modelOf(golden);
  const config = await readVideoConfig(folder);
  const hasText = await folder.exists('text_encoder/config.json');
  const text = hasText && { text_encoder: await readTextEncoderConfig(folder) };
  return new Wan(golden, await readFields(golden, settingsSchema), { ...config, ...text });
}

/** The start of the loop, if it differs from that of the references. */
interface Loop {
  readonly image: NamedTensors;
  readonly texts: readonly Float32Array[];
  readonly guidance: number;
  readonly lora: LoraBranches;
  readonly precision: Precision;
}

/** A file of a LoRA, and how much it counts. */
export type ScaledFile = readonly [file: string, scale: number];

/** A Wan model with its references. */
export class Wan {
  /** Whether clips are conditioned by given latent frames, and not by channels of their own. */
  readonly inpaints: boolean;
  readonly architecture: LoraArchitecture;

  constructor(
    readonly golden: Golden,
    readonly settings: z.output<typeof settingsSchema>,
    readonly config: Config,
    /** Opens the weights of a component, by diffusers' names. */
    readonly open = async (component: WeightComponent) =>
      openComponent(component, await openTensorFiles(modelOf(golden), component), config),
  ) {
    this.inpaints = config.kind.pictures === 'frames';
    this.architecture = loraArchitectureOf(config);
  }

  /** Of the latents. @throws KinoraError `TENSOR_MISSING` where the golden has none */
  get size(): LatentSize {
    const { tensors } = this.golden;
    const name = ['final_latents', 'dit_input'].find((each) => tensors.has(each)) ?? 'noise';
    const [, , frames = 0, height = 0, width = 0] = tensors.shape(name);
    return { frames, height, width };
  }

  get frameSize() {
    return { latentHeight: this.size.height, latentWidth: this.size.width };
  }

  /** Embeddings by our own text encoder. */
  async ownTexts(precision: Precision): Promise<Float32Array[]> {
    const { text_encoder: config } = this.config;
    if (!config) throw new KinoraError('MODEL_FILE_MISSING', 'The goldens have no text encoder.');
    const { encodePrompt } = await loadTokenizer(modelOf(this.golden));
    const ids = [this.settings.prompt, this.settings.negative_prompt].map(encodePrompt);
    const checkpoint = await this.open('text_encoder');
    return encodePrompts(this.golden.backend, checkpoint, config, ids, { precision });
  }

  /** Embeddings of a reference, without padding. */
  async embeds(name: string): Promise<Float32Array> {
    const { text_dim: width } = this.config.transformer;
    const rows = await this.golden.tensors.read(name);
    const last = rows.findLastIndex((value) => value !== 0);
    return rows.slice(0, width * (1 + Math.max(0, Math.floor(last / width))));
  }

  /** Embeddings of the references; our own where the golden lacks one. */
  async texts(): Promise<Float32Array[]> {
    const isThere = textNames.every((name) => this.golden.tensors.has(name));
    return isThere ? Promise.all(textNames.map((name) => this.embeds(name))) : this.ownTexts('f32');
  }

  /** The latent [C, 1, h, w] of a picture. */
  async latentOf(picture: Frame): Promise<Float32Array> {
    return encodeFirstFrame(this.golden.backend, this.config.vae, await this.open('vae'), picture);
  }

  /** What a clip is conditioned by, of the golden's picture and of one that it may end in. */
  readonly conditions = memoised(async (last?: Frame): Promise<NamedTensors> => {
    const { config, golden, settings } = this;
    const image = await readPicture(golden.tensors, 'image_rgb_u8');
    const { num_frames: frames } = settings;
    const images = [{ frame: 0, image }, ...(last ? [{ frame: frames - 1, image: last }] : [])];
    const vae = await this.open('vae');
    const imageEncoder = config.image_encoder && (await this.open('image_encoder'));
    return encodePictures(golden.backend, { config, vae, imageEncoder }, images, frames);
  });

  /** The same with the latent of the references, where it is there. */
  async givenConditions(): Promise<NamedTensors> {
    const { tensors } = this.golden;
    if (!this.inpaints || !tensors.has('image_latent')) return this.conditions();
    return { [givenName(0)]: await tensors.read('image_latent') };
  }

  /** Fast linear layers are for weights in blocks only. */
  async load(expert: Expert, given: Partial<Loop>): Promise<Transformer> {
    const { backend } = this.golden;
    const { lora, precision = backend.kernels?.mode === 'fast' ? 'int8' : 'f32' } = given;
    const options = { precision, ...(lora && { lora }) };
    return Transformer.load(backend, await this.open(expert), this.config.transformer, options);
  }

  /** The whole denoising loop with the noise of the references. */
  async latents(given: Partial<Loop> = {}): Promise<Float32Array> {
    const { config, settings, golden, size } = this;
    const { backend, tensors, own } = golden;
    const { num_inference_steps: steps, flow_shift: flowShift, guidance_scale } = settings;
    const { guidance, texts = await this.texts(), image = await this.givenConditions() } = given;
    const high = guidance ?? guidance_scale;
    const low = guidance ?? settings.guidance_scale_2 ?? high;
    const guidanceScale = Math.max(high, low);
    const noise = await tensors.read('noise');
    const load = (expert: Expert) => this.load(expert, given);
    const denoiser = await WanDenoiser.create(config.boundary, 4096, load, 1000);
    return denoise(backend, own(denoiser), {
      size,
      image,
      texts: guidanceScale > 1 ? texts : texts.slice(0, 1),
      noise: () => noise,
      scheduler: createScheduler({ kind: 'unipc', steps, flowShift }),
      guidanceScale,
      guidanceAt: (timestep) => (timestep >= (config.boundary ?? 0) ? high : low),
    });
  }

  /** The same from prompt and picture by our own encoders, as far as the golden has their inputs. */
  async whole(given: Partial<Loop>): Promise<Float32Array> {
    const { precision = 'f32' } = given;
    const hasImage = this.golden.tensors.has('image_rgb_u8');
    const image = await (hasImage ? this.conditions() : this.givenConditions());
    const texts = await (this.config.text_encoder ? this.ownTexts(precision) : this.texts());
    return this.latents({ image, texts, ...given });
  }

  /** One pass of the first transformer, its blocks too where `onBlock` is given. */
  async forward(
    given: Partial<Loop> = {},
    onBlock?: (block: number, hidden: Float32Array) => void,
  ): Promise<Float32Array> {
    const { inpaints, size, golden, settings } = this;
    const { transformer: config, image_encoder: encoder } = this.config;
    const { backend, tensors, own } = golden;
    const { in_channels, out_channels } = config;
    const conditions = inpaints ? {} : await this.conditions();
    const { [conditionName]: condition, [featuresName]: features } = conditions;
    const model = own(await this.load('transformer', given));
    const scope = own(new Scope(backend));
    const clip = own(
      await model.createClip(size, {
        given: inpaints ? [0] : [],
        // One frame per chunk: the check shall cross the seams between chunks.
        maxChunkTokens: tokensPerFrame(config, size),
        guided: false,
        imageRows: encoder && features ? features.length / encoder.hidden_size : undefined,
      }),
    );
    const rest = in_channels - out_channels;
    if (condition) clip.setCondition(latentsToTokens(condition, rest, size, config));
    if (features) await model.embedImage(clip, features);
    const text = own(await model.prepareText(clip, at(await this.texts(), 0)));
    const time = async (timestep: number) => {
      const embedding = model.createTimeEmbedding(scope);
      await model.embedTime(clip, timestep, embedding);
      return embedding;
    };
    const times = { conditioning: await time(0), noisy: await time(settings.dit_timestep) };
    const input = await tensors.read(inpaints ? 'dit_input' : 'noise');
    const tokens = latentsToTokens(input, out_channels, size, config);
    const width = tokenWidth(config);
    const split = clip.conditioningTokens * width;
    const part = (data: Float32Array) =>
      scope.float32([data.length / width, width], 'latents', data);
    const rows = (data: Float32Array) => ({
      conditioning: split > 0 ? part(data.subarray(0, split)) : null,
      free: part(data.subarray(split)),
    });
    const velocity = rows(new Float32Array(tokens.length));
    await model.velocity(clip, rows(tokens), times, [{ text, velocity }], {
      afterBlock: async (block) => onBlock?.(block, await clip.read()),
    });
    if (velocity.conditioning) tokens.set(await backend.read(velocity.conditioning));
    tokens.set(await backend.read(velocity.free), split);
    return tokensToLatents(tokens, out_channels, size, config);
  }

  /** Frames of latents [C, F, h, w], in order, each [3, H, W]. */
  async frames(decoder: ClipDecoder, latents: Float32Array): Promise<Float32Array[]> {
    const frames: Float32Array[] = [];
    const clip = this.golden.own(decoder).decodeClip(splitLatents(latents, this.size));
    for await (const frame of clip) frames.push(frame);
    return frames;
  }

  /** The same as [3, T, H, W]. */
  async video(latents: Float32Array): Promise<Float32Array> {
    const { golden, config, frameSize } = this;
    const vae = await this.open('vae');
    const decoder = await createVaeDecoder(golden.backend, config.vae, vae, frameSize);
    const frames = await this.frames(decoder, latents);
    return joinLatents(frames, { height: 1, width: at(frames, 0).length / 3 });
  }

  /** Files of LoRAs joined, for every transformer. */
  async readLora(files: readonly ScaledFile[]): Promise<LoraBranches> {
    const { architecture, golden } = this;
    const loras = files.map(async ([file, scale]) => {
      const checkpoint = await openFile(golden.folder, `loras/${file}`);
      return { lora: await parseLora(checkpoint, architecture, file), scale };
    });
    return combineLoras(await Promise.all(loras), architecture);
  }
}
