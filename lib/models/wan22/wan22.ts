import {
  adapterParts,
  type DecoderKind,
  KinoraError,
  type LoraFile,
  type ModelManifest,
} from '../../contract';
import { componentName } from '../../contract/format';
import type { PromptLength } from '../../contract/optimizer';
import type { Backend } from '../../gpu';
import { type KeyFrame, latentOf } from '../../pipeline/key-frames';
import {
  type Frame,
  type LatentSize,
  type LatentSpace,
  latentSizeOf,
  splitLatents,
} from '../../pipeline/latents';
import type { MemoryPlan, MemoryPlanner } from '../../pipeline/memory/plan';
import type {
  AdapterScales,
  ClipToDecode,
  Denoiser,
  Loading,
  ModelFamily,
  NamedTensors,
  PlanRequest,
  TokenIds,
  VideoModel,
} from '../../pipeline/model';
import type { Checkpoint } from '../../weights';
import { combineLoras, type LoraBranches, readLoras } from '../layers/lora';
import type { TensorShapes } from '../layers/tensors';
import { encodePrompts } from '../umt5/text-encoder';
import { loadTokenizer } from '../umt5/tokenizer';
import type { Wan22Adapters } from './adapter';
import { measureChunkTokens } from './chunk-size';
import { readModelConfig } from './config';
import { clipComputation, countWan22 } from './counts';
import { givenName, Wan22Denoiser } from './denoiser';
import { wan22Installation } from './install';
import { loraArchitecture } from './lora';
import { openParts, openStoredParts, type Wan22Parts } from './parts';
import { planWan22, usualChoice } from './plan';
import { previewOf } from './preview';
import { createTinyDecoder } from './tiny-decoder';
import { tokensPerFrame } from './tokens';
import { Transformer } from './transformer';
import { type ClipDecoder, createTiledVaeDecoder, createVaeDecoder, encodeFirstFrame } from './vae';

/** Wan2.2-TI2V as the pipeline sees it: see the README of this folder. */
export class Wan22 implements VideoModel {
  readonly decoders: readonly DecoderKind[];
  readonly latents: LatentSpace;

  constructor(
    readonly parts: Wan22Parts,
    readonly lora: LoraBranches | null = null,
    readonly triggerWords: readonly string[] = [],
    /** What tells its adapters from others. */
    readonly adapterIds: readonly string[] = [],
  ) {
    const { vae, transformer } = parts.config;
    const channels = transformer.in_channels;
    this.decoders = parts.tinyDecoder ? ['full', 'tiny'] : ['full'];
    this.latents = {
      channels,
      strides: { space: vae.scale_factor_spatial, time: vae.scale_factor_temporal },
      preview: previewOf(parts.manifest, channels),
    };
  }

  get manifest(): ModelManifest {
    return this.parts.manifest;
  }

  get fingerprint(): string {
    return JSON.stringify([this.parts.fingerprint, ...this.adapterIds]);
  }

  get installed(): boolean {
    return this.parts.packed;
  }

  computation(size: LatentSize, decoder: DecoderKind) {
    const tiny = decoder === 'tiny' ? shapesOf(this.#tinyDecoder) : null;
    return clipComputation(this.parts.config, size, tiny);
  }

  weightBytes(stage: 'text' | 'denoise'): number {
    const checkpoint = stage === 'text' ? this.parts.textEncoder : this.parts.transformer;
    let bytes = 0;
    for (const name of checkpoint.names()) {
      // Of the embedding table a prompt reads its own rows only.
      if (name !== 'shared.weight' && name !== 'encoder.embed_tokens.weight') {
        bytes += checkpoint.bytes(name);
      }
    }
    return bytes;
  }

  get adapters(): Wan22Adapters {
    return this.parts.adapters;
  }

  async withLoras(files: readonly LoraFile[], scales: AdapterScales = {}): Promise<Wan22> {
    const { adapters: own, manifest, config } = this.parts;
    const architecture = loraArchitecture(config.transformer);
    const adapters = [];
    const ids: string[] = [];
    for (const part of adapterParts) {
      const scale = scales[part];
      if (scale === undefined) continue;
      const adapter = own[part];
      if (!adapter) {
        const what = componentName(part, manifest).toLowerCase();
        throw new KinoraError('MODEL_FILE_MISSING', `${manifest.name} has no ${what} here.`);
      }
      adapters.push({ lora: await adapter.read(), scale });
      ids.push(JSON.stringify([part, adapter.source, scale]));
    }
    if (files.length + adapters.length === 0) return this;
    const read = await readLoras(files, architecture);
    const lora = combineLoras([...adapters, ...read.loras], architecture);
    return new Wan22(this.parts, lora, read.triggerWords, [...ids, ...read.ids]);
  }

  async tokenize(prompts: readonly string[]): Promise<TokenIds[]> {
    const { encodePrompt } = await loadTokenizer(this.parts.folder);
    return prompts.map(encodePrompt);
  }

  async promptMeter(): Promise<(prompt: string) => PromptLength> {
    return (await loadTokenizer(this.parts.folder)).measure;
  }

  async planMemory({ backend, kernels, decoder, ...rest }: PlanRequest): Promise<MemoryPlanner> {
    const { config, precision } = this.parts;
    const { native } = rest;
    const request = {
      ...rest,
      ...(kernels && { kernels: usualChoice(kernels) }),
      ...(this.lora && { lora: this.lora }),
      ...(decoder === 'tiny' && { tinyDecoder: shapesOf(this.#tinyDecoder) }),
    };
    if (!backend) return planWan22(config, precision, request);
    const size = latentSizeOf(this.latents, native);
    const tokens = size.frames * tokensPerFrame(config.transformer, size);
    const chunkTokens = await measureChunkTokens(backend, config.transformer, tokens);
    await backend.trim();
    const largestBuffer = backend.maxBufferBytes;
    return planWan22(config, precision, {
      ...request,
      chunkTokens,
      largestBuffer,
      kernels: backend.kernels,
      compute: backend.compute,
    });
  }

  encodeText(
    backend: Backend,
    prompts: readonly TokenIds[],
    loading: Loading,
  ): Promise<Float32Array[]> {
    const { textEncoder, config, precision } = this.parts;
    const reading = { ...loading, precision };
    return encodePrompts(backend, textEncoder, config.text_encoder, prompts, reading);
  }

  /** Each picture alone, as a first frame: `latent.N` is latent frame N, [C, 1, h, w]; held frames as they are. */
  async encodeImages(
    backend: Backend,
    images: readonly KeyFrame[],
    _frames: number,
    signal: AbortSignal,
    held: readonly Float32Array[] = [],
  ): Promise<NamedTensors> {
    const { config, vae } = this.parts;
    const latents = new Map<Frame, Float32Array>();
    const named = Object.fromEntries(held.map((latent, f) => [givenName(f), latent]));
    for (const { frame, image } of images) {
      const latent =
        latents.get(image) ?? (await encodeFirstFrame(backend, config.vae, vae, image, { signal }));
      latents.set(image, latent);
      named[givenName(latentOf(frame, this.latents.strides.time))] = latent;
    }
    return named;
  }

  async loadDenoiser(backend: Backend, plan: MemoryPlan, loading: Loading): Promise<Denoiser> {
    const { transformer, config, precision } = this.parts;
    const reading = { ...loading, precision, ...(this.lora ? { lora: this.lora } : {}) };
    return new Wan22Denoiser(
      await Transformer.load(backend, transformer, config.transformer, reading, plan.residency),
      plan.chunkTokens,
    );
  }

  async *decode(
    backend: Backend,
    clip: ClipToDecode,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { size, latents } = clip;
    const decoder = await this.#openDecoder(backend, clip);
    const [black, white] = decoder.range;
    const scale = 2 / (white - black);
    try {
      for await (const frame of decoder.decodeClip(splitLatents(latents, size))) {
        yield scale === 1 ? frame : frame.map((value) => (value - black) * scale - 1);
      }
    } finally {
      decoder.dispose();
    }
  }

  async #openDecoder(
    backend: Backend,
    { size, decoder, tiles, signal, onTile }: ClipToDecode,
  ): Promise<ClipDecoder> {
    const { config, vae } = this.parts;
    const options = { latentHeight: size.height, latentWidth: size.width, signal };
    if (decoder === 'tiny') return createTinyDecoder(backend, this.#tinyDecoder, options);
    if (tiles === 'full') return createVaeDecoder(backend, config.vae, vae, options);
    return createTiledVaeDecoder(backend, config.vae, vae, { ...options, tiles, onTile });
  }

  get #tinyDecoder(): Checkpoint {
    const { tinyDecoder, manifest } = this.parts;
    if (tinyDecoder) return tinyDecoder;
    throw new KinoraError('MODEL_FILE_MISSING', `${manifest.name} has no tiny decoder here.`, {
      remedy: 'Download the tiny decoder on the Models page, or decode with the full decoder.',
    });
  }
}

function shapesOf(checkpoint: Checkpoint): TensorShapes {
  return new Map([...checkpoint.names()].map((name) => [name, checkpoint.shape(name)]));
}

/** The family of Wan2.2-TI2V models. */
export const wan22Family: ModelFamily = {
  installation: wan22Installation,
  open: async (manifest, folder) => new Wan22(await openParts(manifest, folder)),
  openInstalled: async (manifest, folder) => new Wan22(await openStoredParts(manifest, folder)),
  count: async (precision, configuration) =>
    countWan22(await readModelConfig(configuration), precision),
};
