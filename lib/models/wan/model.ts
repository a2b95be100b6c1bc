import {
  at,
  type DecoderKind,
  decoderKinds,
  type LoraFile,
  type ModelManifest,
  type PromptLength,
} from '../../contract';
import type { Backend } from '../../gpu';
import type { KeyFrame } from '../../pipeline/key-frames';
import {
  type Frame,
  type LatentSize,
  type LatentSpace,
  latentSizeOf,
  splitLatents,
} from '../../pipeline/latents';
import type { MemoryPlan, MemoryPlanner } from '../../pipeline/memory/memory-plan';
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
import { missingDecoder } from '../../pipeline/profiles';
import type { Checkpoint } from '../../weights';
import type { LoraBranches } from '../layers/lora';
import type { TensorShapes } from '../layers/tensor-shapes';
import { encodePrompts } from '../umt5/text-encoder';
import { loadTokenizer } from '../umt5/tokenizer';
import type { WanAdapters } from './adapter';
import { measureChunkTokens } from './chunk-size';
import { encodePictures } from './condition';
import { withDecoder } from './config-schemas';
import { clipComputation, countWan } from './counts';
import { WanDenoiser } from './denoiser';
import type { Expert } from './experts';
import type { WanKind } from './kinds';
import { adaptExperts, type ExpertLoras } from './lora';
import { type ModelConfig, readModelConfig } from './model-config';
import { planWan, usualChoice } from './model-memory';
import { openParts, openStoredParts, type WanParts } from './parts';
import { previewOf } from './preview';
import { createTinyDecoder } from './tiny-decoder';
import { tokensPerFrame } from './tokens';
import { Transformer } from './transformer';
import {
  type ClipDecoder,
  createTiledVaeDecoder,
  createVaeDecoder,
  encodeClip,
  encodeFirstFrame,
} from './vae';
import { wanInstallation } from './wan-installation';
import { decoderWidth } from './wan-tensors';

/** A Wan model as the pipeline sees it: see the README of this folder. */
export class WanModel implements VideoModel {
  readonly manifest: ModelManifest;
  readonly adapters: WanAdapters;
  readonly installed: boolean;
  readonly fingerprint: string;
  readonly decoders: readonly DecoderKind[];
  readonly latents: LatentSpace;

  constructor(
    readonly parts: WanParts,
    readonly loras: ExpertLoras = new Map(),
    /** What tells its adapters from others. */
    adapterIds: readonly string[] = [],
    readonly notes: readonly string[] = [],
  ) {
    this.manifest = parts.manifest;
    this.adapters = parts.adapters;
    this.installed = parts.packed;
    this.fingerprint = JSON.stringify([parts.fingerprint, ...adapterIds]);
    const { vae, transformer } = parts.config;
    const channels = transformer.out_channels;
    const { lightDecoder: light, tinyDecoder: tiny } = parts;
    const weights = { full: true, light, tiny };
    this.decoders = decoderKinds.filter((kind) => weights[kind]);
    this.latents = {
      channels,
      strides: { space: vae.scale_factor_spatial, time: vae.scale_factor_temporal },
      preview: previewOf(parts.manifest, channels),
    };
  }

  async withLoras(files: readonly LoraFile[], scales: AdapterScales = {}): Promise<WanModel> {
    if (files.length + Object.keys(scales).length === 0) return this;
    const { loras, ids, notes } = await adaptExperts(this.parts, files, scales);
    return new WanModel(this.parts, loras, ids, notes);
  }

  /** Of the transformer whose LoRAs have the highest ranks: only one is on the device at a time. */
  get #largestLora(): LoraBranches | null {
    const ranks = ({ branches }: LoraBranches) =>
      [...branches.values()].reduce((sum, { rank }) => sum + rank, 0);
    const all = [...this.loras.values()].sort((a, b) => ranks(b) - ranks(a));
    return all[0] ?? null;
  }

  #expert(expert: Expert): Checkpoint {
    const checkpoint = this.parts.experts.get(expert);
    if (!checkpoint) throw new TypeError(`there is no ${expert}`);
    return checkpoint;
  }

  computation(size: LatentSize, decoder: DecoderKind) {
    const tiny = decoder === 'tiny' ? shapesOf(this.#weightsOf('tiny')) : null;
    return clipComputation(this.#configFor(decoder), size, tiny);
  }

  weightBytes(stage: 'text' | 'denoise'): number {
    const checkpoint = stage === 'text' ? this.parts.textEncoder : this.#expert('transformer');
    let bytes = 0;
    for (const name of checkpoint.names()) {
      // A prompt reads only its own rows of the embedding table.
      if (name !== 'shared.weight' && name !== 'encoder.embed_tokens.weight') {
        bytes += checkpoint.bytes(name);
      }
    }
    return bytes;
  }

  async tokenize(prompts: readonly string[]): Promise<TokenIds[]> {
    const { encodePrompt } = await loadTokenizer(this.parts.folder);
    return prompts.map(encodePrompt);
  }

  async promptMeter(): Promise<(prompt: string) => PromptLength> {
    return (await loadTokenizer(this.parts.folder)).measure;
  }

  async planMemory({ backend, kernels, decoder, ...rest }: PlanRequest): Promise<MemoryPlanner> {
    const { precision } = this.parts;
    const config = this.#configFor(decoder);
    const { native } = rest;
    const lora = this.#largestLora;
    const chosen = backend ? backend.kernels : usualChoice(kernels ?? 'exact');
    const request = {
      ...rest,
      kernels: chosen,
      ...(lora && { lora }),
      ...(decoder === 'tiny' && { tinyDecoder: shapesOf(this.#weightsOf('tiny')) }),
    };
    if (!backend) return planWan(config, precision, request);
    const size = latentSizeOf(this.latents, native);
    const tokens = size.frames * tokensPerFrame(config.transformer, size);
    const chunkTokens = await measureChunkTokens(backend, config.transformer, tokens);
    await backend.trim();
    const largestBuffer = backend.maxBufferBytes;
    return planWan(config, precision, {
      ...request,
      chunkTokens,
      largestBuffer,
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

  encodeImages(
    backend: Backend,
    images: readonly KeyFrame[],
    frames: number,
    signal: AbortSignal,
    held?: readonly Float32Array[],
  ): Promise<NamedTensors> {
    return encodePictures(backend, this.parts, images, frames, signal, held);
  }

  async encodeFrames(
    backend: Backend,
    frames: readonly Frame[],
    signal: AbortSignal,
  ): Promise<Float32Array[]> {
    const { config, vae } = this.parts;
    if (this.manifest.continuation.encodes === 'pictures') {
      const latents: Float32Array[] = [];
      for (const [f, frame] of frames.entries()) {
        if (f % this.latents.strides.time !== 0) continue;
        latents.push(await encodeFirstFrame(backend, config.vae, vae, frame, { signal }));
      }
      return latents;
    }
    const first = at(frames, 0);
    const size = latentSizeOf(this.latents, { ...first, frames: frames.length });
    const shown = new Map(frames.entries());
    return splitLatents(
      await encodeClip(backend, config.vae, vae, shown, size.frames, { signal }),
      size,
    );
  }

  async loadDenoiser(
    backend: Backend,
    plan: MemoryPlan,
    loading: Loading,
    timestep: number,
  ): Promise<Denoiser> {
    const { config, precision } = this.parts;
    let first = true;
    const load = (expert: Expert) => {
      const lora = this.loras.get(expert);
      const { signal, onBytes } = loading;
      const reading = { signal, precision, ...(first && { onBytes }), ...(lora && { lora }) };
      first = false;
      const weights = this.#expert(expert);
      return Transformer.load(backend, weights, config.transformer, reading, plan.residency);
    };
    return WanDenoiser.create(config.boundary, plan.chunkTokens, load, timestep);
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
    const options = { latentHeight: size.height, latentWidth: size.width, signal };
    const weights = this.#weightsOf(decoder);
    if (decoder === 'tiny') return createTinyDecoder(backend, weights, options);
    const { vae } = this.#configFor(decoder);
    if (tiles === 'full') return createVaeDecoder(backend, vae, weights, options);
    return createTiledVaeDecoder(backend, vae, weights, { ...options, tiles, onTile });
  }

  /** The configuration with the decoder that decodes. */
  #configFor(decoder: DecoderKind | undefined): ModelConfig {
    const { config } = this.parts;
    if (decoder !== 'light') return config;
    const [filters = 0] = this.#weightsOf(decoder).shape(decoderWidth);
    return { ...config, vae: withDecoder(config.vae, filters) };
  }

  #weightsOf(decoder: DecoderKind): Checkpoint {
    const { vae, lightDecoder, tinyDecoder, manifest } = this.parts;
    const weights = { full: vae, light: lightDecoder, tiny: tinyDecoder }[decoder];
    if (weights) return weights;
    throw missingDecoder(manifest, decoder);
  }
}

function shapesOf(checkpoint: Checkpoint): TensorShapes {
  return new Map([...checkpoint.names()].map((name) => [name, checkpoint.shape(name)]));
}

/** The family of the models of a kind. */
export function wanFamily(kind: WanKind): ModelFamily {
  return {
    installation: wanInstallation(kind),
    open: async (manifest, folder) => new WanModel(await openParts(manifest, folder)),
    openInstalled: async (manifest, folder) =>
      new WanModel(await openStoredParts(manifest, folder)),
    count: async (precision, configuration) =>
      countWan(await readModelConfig(configuration, kind), precision),
  };
}
