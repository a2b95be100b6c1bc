import {
  at,
  type DecoderKind,
  decoderKinds,
  type ModelManifest,
  type Precision,
} from '../../contract';
import type { PromptLength } from '../../contract/optimizer';
import type { Backend } from '../../gpu';
import {
  type Frame,
  type LatentSize,
  type LatentSpace,
  latentSizeOf,
  splitLatents,
} from '../../pipeline/latents';
import type { MemoryPlanner } from '../../pipeline/memory/plan';
import type { ClipToDecode, Loading, PlanRequest, TokenIds } from '../../pipeline/model';
import { missingDecoder } from '../../pipeline/profiles';
import type { Checkpoint, ModelFolder } from '../../weights';
import type { LoraBranches } from '../layers/lora';
import type { TensorShapes } from '../layers/tensors';
import type { TextEncoderConfig } from '../umt5/config';
import { encodePrompts } from '../umt5/text-encoder';
import { loadTokenizer } from '../umt5/tokenizer';
import type { WanAdapters } from './adapter';
import { measureChunkTokens } from './chunk-size';
import { type TransformerConfig, type VaeConfig, withDecoder } from './config';
import { clipComputation } from './counts';
import { type FamilyPlanOptions, planWan, usualChoice } from './plan';
import { previewOf } from './preview';
import { decoderWidth } from './tensors';
import { createTinyDecoder } from './tiny-decoder';
import { tokensPerFrame } from './tokens';
import {
  type ClipDecoder,
  createTiledVaeDecoder,
  createVaeDecoder,
  encodeClip,
  encodeFirstFrame,
} from './vae';

/** What every Wan model has in its configuration. */
export interface WanConfig {
  readonly transformer: TransformerConfig;
  readonly vae: VaeConfig;
  readonly text_encoder: TextEncoderConfig;
}

/** The parts of a model, opened and checked: every tensor is there in its shape, none is read yet. */
export interface WanParts {
  readonly manifest: ModelManifest;
  /** Tells its weights from others'. */
  readonly fingerprint: string;
  /** Configuration and tokenizer; a bundled model's weights too. */
  readonly folder: ModelFolder;
  readonly config: WanConfig;
  /** How the linear layers are to be held on the device. */
  readonly precision: Precision;
  /** Whether each layer is one contiguous read, already in its precision: then it can be streamed. */
  readonly packed: boolean;
  readonly textEncoder: Checkpoint;
  readonly vae: Checkpoint;
  /** The small decoder; null where the model comes without one. */
  readonly tinyDecoder: Checkpoint | null;
  /** A decoder of the VAE's own layers, but narrower; absent or null where the model comes without one. */
  readonly lightDecoder?: Checkpoint | null;
  /** The LoRAs that the model comes with, for its profiles. */
  readonly adapters: WanAdapters;
}

/** What the models of all families do alike: prompts, memory plan, and decode. */
export abstract class WanModel<Parts extends WanParts> {
  readonly decoders: readonly DecoderKind[];
  readonly latents: LatentSpace;

  constructor(
    readonly parts: Parts,
    /** What tells its adapters from others. */
    readonly adapterIds: readonly string[],
  ) {
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

  get manifest(): ModelManifest {
    return this.parts.manifest;
  }

  get fingerprint(): string {
    return JSON.stringify([this.parts.fingerprint, ...this.adapterIds]);
  }

  get installed(): boolean {
    return this.parts.packed;
  }

  get adapters(): WanAdapters {
    return this.parts.adapters;
  }

  /** The weights that a pass of the denoiser reads. */
  protected abstract readonly transformer: Checkpoint;
  /** The adapters that take most memory; null without any. */
  protected abstract readonly lora: LoraBranches | null;
  /** What differs between families in a memory plan. */
  protected get planOptions(): FamilyPlanOptions {
    return {};
  }

  computation(size: LatentSize, decoder: DecoderKind) {
    const tiny = decoder === 'tiny' ? shapesOf(this.#weightsOf('tiny')) : null;
    return clipComputation(this.#configFor(decoder), size, tiny);
  }

  weightBytes(stage: 'text' | 'denoise'): number {
    const checkpoint = stage === 'text' ? this.parts.textEncoder : this.transformer;
    let bytes = 0;
    for (const name of checkpoint.names()) {
      // Of the embedding table a prompt reads its own rows only.
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
    const { lora } = this;
    const chosen = backend ? backend.kernels : usualChoice(kernels ?? 'exact');
    const request = {
      ...rest,
      ...this.planOptions,
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
  #configFor(decoder: DecoderKind | undefined): WanConfig {
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
