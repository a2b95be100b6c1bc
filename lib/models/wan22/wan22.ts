import { framesPerSecond, KinoraError, type LoraFile, type ModelManifest } from '../../contract';
import type { Backend } from '../../gpu';
import { type Frame, type LatentSpace, latentFrame, latentSizeOf } from '../../pipeline/latents';
import type { MemoryPlan, MemoryPlanner } from '../../pipeline/memory/plan';
import type {
  ClipToDecode,
  Denoiser,
  Loading,
  ModelFamily,
  PlanRequest,
  TokenIds,
  VideoModel,
} from '../../pipeline/model';
import { blobFile, openSafetensors } from '../../weights';
import { passFlops } from './benchmark/flops';
import { wan22BenchmarkStages } from './benchmark/stages';
import { benchmarkStreaming } from './benchmark/streaming';
import { measureChunkTokens } from './chunk-size';
import { maxPromptTokens, readModelConfig } from './config';
import { Wan22Denoiser } from './denoiser';
import { wan22Installation } from './install';
import { combineLoras, type LoraBranches, parseLora } from './lora';
import { triggerWords } from './lora-metadata';
import { wan22ParityStages } from './parity';
import { openParts, openStoredParts, type Wan22Parts } from './parts';
import { planWan22 } from './plan';
import { wan22Preview } from './preview';
import { encodePrompts } from './text-encoder';
import { loadTokenizer } from './tokenizer';
import { tokensPerFrame } from './tokens';
import { Transformer } from './transformer';
import { type ClipDecoder, createTiledVaeDecoder, createVaeDecoder, encodeFirstFrame } from './vae';

/** Decoding a clip takes 3.9 times the FLOPs of a pass of the transformer, for 121 frames of 1280×704. */
const decodePasses = 3.9;

/** Wan2.2-TI2V as the pipeline sees it: see the README of this folder. */
export class Wan22 implements VideoModel {
  readonly decodePasses = decodePasses;
  readonly latents: LatentSpace;

  constructor(
    readonly parts: Wan22Parts,
    readonly lora: LoraBranches | null = null,
    readonly triggerWords: readonly string[] = [],
  ) {
    const { vae, transformer } = parts.config;
    const channels = transformer.in_channels;
    this.latents = {
      channels,
      strides: { space: vae.scale_factor_spatial, time: vae.scale_factor_temporal },
      frameRate: framesPerSecond,
      // The map was fitted for the 48 channels of this VAE.
      preview: channels === wan22Preview.matrix.length ? wan22Preview : null,
    };
  }

  get manifest(): ModelManifest {
    return this.parts.manifest;
  }

  get installed(): boolean {
    return this.parts.packed;
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

  async withLoras(files: readonly LoraFile[]): Promise<Wan22> {
    if (files.length === 0) return this;
    const config = this.parts.config.transformer;
    const adapters = [];
    const words: string[] = [];
    for (const { name, file, scale } of files) {
      const checkpoint = await openSafetensors(blobFile(name, file)).catch((cause) => {
        const sentence = `${name} is not a safetensors file that can be read.`;
        throw new KinoraError('LORA_INVALID', sentence, { cause });
      });
      adapters.push({ lora: await parseLora(checkpoint, config, name), scale });
      words.push(...triggerWords(checkpoint.metadata));
    }
    return new Wan22(this.parts, combineLoras(adapters, config), [...new Set(words)]);
  }

  async tokenize(prompts: readonly string[]): Promise<TokenIds[]> {
    const { encodePrompt } = await loadTokenizer(this.parts.folder);
    return prompts.map(encodePrompt);
  }

  async tokenCounter(): Promise<(prompt: string) => number> {
    return (await loadTokenizer(this.parts.folder)).countTokens;
  }

  async planMemory({ native, backend, promptTokens }: PlanRequest): Promise<MemoryPlanner> {
    const { config, precision } = this.parts;
    const request = {
      native,
      ...(promptTokens ? { promptTokens } : {}),
      ...(this.lora ? { lora: this.lora } : {}),
    };
    if (!backend) return planWan22(config, precision, request);
    const size = latentSizeOf(this.latents, native);
    const tokens = size.frames * tokensPerFrame(config.transformer, size);
    const chunkTokens = await measureChunkTokens(backend, config.transformer, tokens);
    await backend.trim();
    const largestBuffer = backend.maxBufferBytes;
    return planWan22(config, precision, { ...request, chunkTokens, largestBuffer });
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

  encodeImage(backend: Backend, image: Frame, signal: AbortSignal): Promise<Float32Array> {
    const { config, vae } = this.parts;
    return encodeFirstFrame(backend, config.vae, vae, image, { signal });
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
    { size, latents, tiles, signal, onTile }: ClipToDecode,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { config, vae } = this.parts;
    const options = { latentHeight: size.height, latentWidth: size.width, signal };
    const decoder: ClipDecoder =
      tiles === 'full'
        ? await createVaeDecoder(backend, config.vae, vae, options)
        : await createTiledVaeDecoder(backend, config.vae, vae, { ...options, tiles, onTile });
    try {
      const frames = Array.from({ length: size.frames }, (_, f) => latentFrame(latents, size, f));
      yield* decoder.decodeClip(frames);
    } finally {
      decoder.dispose();
    }
  }
}

/** The family of Wan2.2-TI2V models. */
export const wan22Family: ModelFamily = {
  installation: wan22Installation,
  open: async (manifest, folder) => new Wan22(await openParts(manifest, folder)),
  openInstalled: async (manifest, folder) => new Wan22(await openStoredParts(manifest, folder)),
  async plan(precision, configuration, { native, promptTokens }) {
    const request = { native, ...(promptTokens ? { promptTokens } : {}) };
    return planWan22(await readModelConfig(configuration), precision, request);
  },
  async passFlops(configuration, { native }) {
    const { transformer, vae } = await readModelConfig(configuration);
    const strides = { space: vae.scale_factor_spatial, time: vae.scale_factor_temporal };
    const size = latentSizeOf({ strides }, native);
    return passFlops(transformer, size.frames * tokensPerFrame(transformer, size), maxPromptTokens);
  },
  parityStages: wan22ParityStages,
  async benchmarkStages(configuration, options) {
    return wan22BenchmarkStages(await readModelConfig(configuration), options);
  },
  async benchmarkStreaming(backend, configuration, folder) {
    return benchmarkStreaming(backend, await readModelConfig(configuration), folder);
  },
};
