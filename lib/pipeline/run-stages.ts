import { KinoraError, type Phase } from '../contract';
import type { Backend } from '../gpu';
import { decodeClip } from '../models/wan22/decode-clip';
import type { Model } from '../models/wan22/model';
import { encodePrompts } from '../models/wan22/text-encoder';
import { type LatentSize, latentsToTokens, tokensToLatents } from '../models/wan22/tokens';
import { Transformer } from '../models/wan22/transformer';
import {
  decodeWork,
  encodeFirstFrame,
  requireFinite,
  type TileProgress,
} from '../models/wan22/vae';
import { DenoiseInterrupted, denoise } from './denoise';
import type { Pace } from './eta';
import type { MemoryFit } from './memory/fit';
import { gaussianNoise } from './noise';
import { previewStrip } from './preview';
import type { Frame, ImageToVideoHooks, ImageToVideoRequest } from './run-request';
import { createScheduler } from './schedulers/scheduler';
import type { SolverState } from './schedulers/solver';

/** Frames of the preview strip, at most. */
const previewFrames = 16;
/** A preview comes about this often in a run. */
const previewsPerClip = 10;

/** Embeddings of the prompts. */
interface Texts {
  readonly prompt: Float32Array;
  readonly negativePrompt: Float32Array;
}

/** The stages of one run of `imageToVideo`, in order; each frees what it took. */
export class Stages {
  /** Whether a clip was ended before its last step. */
  cutShort = false;
  /** To the finished video, while frames are decoded; null where it cannot be told. */
  secondsRemaining: number | null = null;
  #bytesDone = 0;

  constructor(
    readonly backend: Backend,
    readonly model: Model,
    readonly request: ImageToVideoRequest,
    readonly hooks: ImageToVideoHooks,
    readonly pace: Pace,
    readonly clips: number,
    readonly memory: MemoryFit,
  ) {}

  async encodeText(prompts: readonly (readonly number[])[]): Promise<Texts> {
    const { model, backend } = this;
    this.#phase('text', 0);
    await this.memory.makeRoom('text');
    const [prompt, negativePrompt] = await encodePrompts(
      backend,
      model.textEncoder,
      model.config.text_encoder,
      prompts,
      this.#loading(this.#bytesOf('textEncoder')),
    );
    await this.#endStage();
    const empty = new Float32Array(0);
    return { prompt: prompt ?? empty, negativePrompt: negativePrompt ?? empty };
  }

  async encodeImage(clip: number, image: Frame): Promise<Float32Array> {
    this.#phase('image', clip);
    await this.memory.makeRoom('image');
    const { config, vae } = this.model;
    const { signal } = this.hooks.control;
    const latent = await encodeFirstFrame(this.backend, config.vae, vae, image, { signal });
    requireFinite(latent, 'The latent of the image');
    await this.#endStage();
    return latent;
  }

  /** Denoises a clip; where memory runs out, by a smaller plan from the step that was reached. */
  async denoise(
    clip: number,
    size: LatentSize,
    imageLatent: Float32Array,
    texts: Texts,
  ): Promise<Float32Array> {
    for (let resume: SolverState | null = null; ; ) {
      try {
        return await this.#denoise(clip, size, imageLatent, texts, resume);
      } catch (error) {
        if (error instanceof DenoiseInterrupted) resume = error.state;
        await this.memory.shrink(error);
      }
    }
  }

  async #denoise(
    clip: number,
    size: LatentSize,
    imageLatent: Float32Array,
    texts: Texts,
    resume: SolverState | null,
  ): Promise<Float32Array> {
    const { backend, model, request, hooks, pace, memory } = this;
    const { transformer: config } = model.config;
    const channels = config.in_channels;
    this.#phase('load', clip, 'transformer');
    await memory.makeRoom('denoise');
    const { residency, chunkTokens } = memory.plan;
    const reading = {
      ...this.#loading(this.#bytesOf('transformer')),
      ...(request.lora ? { lora: request.lora } : {}),
    };
    const transformer = await Transformer.load(
      backend,
      model.transformer,
      config,
      reading,
      residency,
    );
    try {
      this.#phase('denoise', clip);
      const count = channels * size.frames * size.height * size.width;
      const noise = gaussianNoise({ seed: request.seed, stream: clip, count });
      pace.start();
      pace.decodeWork = decodeWork(size, memory.plan.tiles);
      const result = await denoise(backend, transformer, {
        size,
        held: latentsToTokens(imageLatent, channels, { ...size, frames: 1 }, config),
        noise: latentsToTokens(noise, channels, size, config),
        scheduler: createScheduler({
          kind: 'unipc',
          steps: request.steps,
          flowShift: request.flowShift,
        }),
        guidanceScale: request.guidanceScale,
        ...texts,
        maxChunkTokens: chunkTokens,
        resume,
        signal: hooks.control.signal,
        afterStep: (step, prediction) => this.#afterStep(clip, step, prediction, size),
      });
      return tokensToLatents(result, channels, size, config);
    } finally {
      transformer.dispose();
      await this.#endStage();
    }
  }

  /**
   * Decodes a clip. Where memory runs out it starts again in smaller tiles, behind the frames that are
   * there.
   */
  async *decode(clip: number, size: LatentSize, latents: Float32Array): AsyncGenerator<Frame> {
    const { backend, model, pace, memory, hooks } = this;
    const { signal } = hooks.control;
    const { scale_factor_spatial: scale, scale_factor_temporal: stride } = model.config.vae;
    const [width, height] = [size.width * scale, size.height * scale];
    const total = 1 + (size.frames - 1) * stride;
    this.#phase('decode', clip);
    let frames = 0;
    for (let done = false; !done; ) {
      await memory.makeRoom('decode');
      const { tiles } = memory.plan;
      const onTile = ({ tile, tiles: count, frame }: TileProgress) => {
        this.secondsRemaining = pace.decoding(clip, (tile - 1 + frame / total) / count);
        const { secondsRemaining } = this;
        hooks.onProgress({
          type: 'tile',
          tile,
          tiles: count,
          frame,
          frames: total,
          secondsRemaining,
        });
      };
      pace.startDecode();
      try {
        let index = 0;
        const decoding = { size, latents, tiles, signal, onTile };
        for await (const data of decodeClip(backend, model, decoding)) {
          signal.throwIfAborted();
          requireFinite(data, `Frame ${index + 1} of the decoded clip`);
          index += 1;
          if (index <= frames) continue;
          frames = index;
          if (tiles === 'full') this.secondsRemaining = pace.decoding(clip, index / total);
          yield { data, width, height };
        }
        done = true;
      } catch (error) {
        await memory.shrinkDecode(error);
      } finally {
        await this.#endStage();
      }
    }
    pace.endDecode();
  }

  async #afterStep(
    clip: number,
    index: number,
    prediction: Float32Array,
    size: LatentSize,
  ): Promise<boolean> {
    const { hooks, pace, clips } = this;
    const { steps } = this.request;
    const step = index + 1;
    if (!prediction.every(Number.isFinite)) {
      throw new KinoraError(
        'LATENTS_NOT_FINITE',
        `The latents became invalid (NaN or infinity) in step ${step} of ${steps}.`,
      );
    }
    pace.step();
    hooks.onProgress({
      type: 'step',
      step,
      steps,
      clip,
      clips,
      secondsPerStep: pace.secondsPerStep,
      secondsRemaining: pace.remaining(clip, step),
    });
    if (step % Math.ceil(steps / previewsPerClip) === 0) this.#preview(prediction, size);
    if (hooks.control.paused) {
      hooks.onProgress({ type: 'paused', paused: true });
      await hooks.control.whenRunning();
      hooks.onProgress({ type: 'paused', paused: false });
      pace.start();
    }
    if (!hooks.control.finishing || step === steps) return false;
    this.cutShort = true;
    return true;
  }

  #preview(prediction: Float32Array, size: LatentSize): void {
    const { transformer: config } = this.model.config;
    const channels = config.in_channels;
    // The matrix was fitted for the 48 channels of this VAE; another one has no preview.
    if (channels !== 48) return;
    const values = tokensToLatents(prediction, channels, size, config);
    const strip = previewStrip({ values, channels, ...size }, previewFrames);
    this.hooks.onProgress({ type: 'preview', ...strip });
  }

  #phase(phase: Phase, clip: number, component?: string): void {
    this.hooks.control.signal.throwIfAborted();
    const event = { type: 'phase', phase, clip, clips: this.clips } as const;
    this.hooks.onProgress(component ? { ...event, component } : event);
  }

  /** Frees the runtime's own buffers, so that no stage pays for the one before. */
  async #endStage(): Promise<void> {
    const { categories } = this.backend.counters();
    this.hooks.onProgress({ type: 'memory', categories });
    await this.backend.trim();
  }

  #loading(bytesTotal: number) {
    this.#bytesDone = 0;
    return {
      precision: this.model.precision,
      signal: this.hooks.control.signal,
      onBytes: (bytes: number) => {
        this.#bytesDone += bytes;
        this.hooks.onProgress({ type: 'bytes', bytesDone: this.#bytesDone, bytesTotal });
      },
    };
  }

  #bytesOf(component: 'transformer' | 'textEncoder'): number {
    const checkpoint = this.model[component];
    let bytes = 0;
    for (const name of checkpoint.names()) {
      // Of the embedding table a prompt reads its own rows only.
      if (name !== 'shared.weight' && name !== 'encoder.embed_tokens.weight') {
        bytes += checkpoint.bytes(name);
      }
    }
    return bytes;
  }
}
