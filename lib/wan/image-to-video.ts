import { KinoraError, type MemoryReport, type Phase, type ProgressEvent } from '../contract';
import type { Backend } from '../gpu';
import { measureChunkTokens } from './chunk-size';
import { latentFrames, planClips } from './clips';
import type { RunControl } from './control';
import { DenoiseInterrupted, denoise } from './denoise';
import type { LoraBranches } from './lora';
import { MemoryFit } from './memory-fit';
import type { Model } from './model';
import { gaussianNoise } from './noise';
import { Pace } from './pace';
import { MemoryPlanner } from './plan';
import { previewStrip } from './preview';
import { createScheduler } from './scheduler';
import type { SolverState } from './solver';
import { encodePrompts } from './text-encoder';
import { loadTokenizer } from './tokenizer';
import {
  type LatentSize,
  latentFrame,
  latentsToTokens,
  tokensPerFrame,
  tokensToLatents,
} from './tokens';
import { Transformer } from './transformer';
import { createTiledVaeDecoder, createVaeDecoder, encodeFirstFrame, type Tiling } from './vae';

/** An image or a frame: planar RGB [3, height, width] in −1…1. */
export interface Frame {
  readonly data: Float32Array;
  readonly width: number;
  readonly height: number;
}

/** One video, at the model's native size. */
export interface ImageToVideoRequest {
  readonly image: Frame;
  readonly prompt: string;
  readonly negativePrompt: string;
  /** 4n+1; longer than the model's longest clip means several clips. */
  readonly frames: number;
  readonly steps: number;
  readonly guidanceScale: number;
  readonly flowShift: number;
  readonly seed: number;
  readonly lora?: LoraBranches;
  /**
   * Device bytes to keep to; `probe` asks the device, as far as the video needs; all that the video
   * needs when absent.
   */
  readonly memoryBudget?: number | 'probe';
}

export interface ImageToVideoHooks {
  readonly control: RunControl;
  readonly onProgress: (event: ProgressEvent) => void;
  /** Takes each frame as it is decoded; decoding waits for it. */
  readonly onFrame: (frame: Frame) => Promise<void>;
}

/** What came out. */
export interface ImageToVideoResult {
  /** Frames that were handed out; fewer than asked for when the run was finished early. */
  readonly frames: number;
  readonly finishedEarly: boolean;
  /** How it fitted the device in the end. */
  readonly memory: MemoryReport;
}

/** Frames of the preview strip, at most. */
const previewFrames = 16;
/** A preview comes about this often in a run. */
const previewsPerClip = 10;

/**
 * Image-to-video with Wan2.2-TI2V: text embeddings → image latent → denoising → frames; and for a
 * video longer than the model's longest clip, again from the last decoded frame (reference
 * `wan22-ti2v-5b.md` §4).
 *
 * Each stage frees its weights before the next one loads: the peak is the largest stage, not the sum.
 * A plan makes the stages fit the device's memory; if an allocation fails all the same, the run goes on
 * from its current step by a smaller one.
 *
 * @throws KinoraError `LATENTS_NOT_FINITE` naming the step, `CANCELLED`, `OUT_OF_MEMORY` where the
 * smallest plan does not fit, and what the files and the device throw; then nothing stays on the device
 */
export async function imageToVideo(
  backend: Backend,
  model: Model,
  request: ImageToVideoRequest,
  hooks: ImageToVideoHooks,
): Promise<ImageToVideoResult> {
  // What the user allows is kept to, also where a plan should be wrong.
  const { ceiling } = backend;
  if (typeof request.memoryBudget === 'number') backend.ceiling = request.memoryBudget;
  try {
    return await makeVideo(backend, model, request, hooks);
  } finally {
    backend.ceiling = ceiling;
  }
}

async function makeVideo(
  backend: Backend,
  model: Model,
  request: ImageToVideoRequest,
  hooks: ImageToVideoHooks,
): Promise<ImageToVideoResult> {
  const { control, onFrame } = hooks;
  const { config, manifest } = model;
  const clips = planClips(request.frames, manifest.maxClipFrames);
  const pace = new Pace(
    request.steps,
    clips.length,
    Math.min(request.frames, manifest.maxClipFrames),
    request.guidanceScale > 1 ? 2 : 1,
  );
  const prompts = await tokenise(model, request);
  const memory = await fitMemory(backend, model, request, hooks, prompts);
  const run = new Stages(backend, model, request, hooks, pace, clips.length, memory);

  const texts = await run.encodeText(prompts);
  let start = request.image;
  let framesDone = 0;
  for (const [clip, { frames, dropFirst }] of clips.entries()) {
    const held = await run.encodeImage(clip, start); // [C, 1, h, w]
    const size = {
      frames: latentFrames(frames, config.vae.scale_factor_temporal),
      height: start.height / config.vae.scale_factor_spatial,
      width: start.width / config.vae.scale_factor_spatial,
    };
    const latents = await run.denoise(clip, size, held, texts); // [C, F, h, w]
    let dropping = dropFirst;
    for await (const frame of run.decode(clip, size, latents)) {
      start = frame;
      if (dropping) {
        // It repeats the last frame of the clip before, from which this clip started.
        dropping = false;
        continue;
      }
      await onFrame(frame);
      framesDone += 1;
      hooks.onProgress({ type: 'frame', frame: framesDone, frames: request.frames });
    }
    if (control.finishing) break;
  }
  // Who asks when the last step is done gets the whole video all the same.
  const finishedEarly = run.cutShort || framesDone < request.frames;
  return { frames: framesDone, finishedEarly, memory: memory.report };
}

/** Token ids of the prompt, and with guidance of the negative one. */
async function tokenise(model: Model, request: ImageToVideoRequest): Promise<number[][]> {
  const { encodePrompt } = await loadTokenizer(model.folder);
  const guided = request.guidanceScale > 1;
  return (guided ? [request.prompt, request.negativePrompt] : [request.prompt]).map(encodePrompt);
}

/** Plans the memory for the longest clip. */
async function fitMemory(
  backend: Backend,
  model: Model,
  request: ImageToVideoRequest,
  hooks: ImageToVideoHooks,
  prompts: readonly (readonly number[])[],
): Promise<MemoryFit> {
  const { config, manifest } = model;
  const { width, height } = request.image;
  const { scale_factor_spatial: scale, scale_factor_temporal: stride } = config.vae;
  const frames = Math.min(request.frames, manifest.maxClipFrames);
  const size = {
    frames: latentFrames(frames, stride),
    height: height / scale,
    width: width / scale,
  };
  const tokens = size.frames * tokensPerFrame(config.transformer, size);
  const chunkTokens = await measureChunkTokens(backend, config.transformer, tokens);
  await backend.trim();
  const planner = await MemoryPlanner.create(config, model.precision, {
    native: { width, height, frames },
    chunkTokens,
    promptTokens: prompts.map(({ length }) => length),
    ...(request.lora ? { lora: request.lora } : {}),
  });
  const onPlan = (memory: MemoryReport) => hooks.onProgress({ type: 'plan', memory });
  return MemoryFit.create(backend, planner, request.memoryBudget, onPlan);
}

interface Texts {
  readonly prompt: Float32Array;
  readonly negativePrompt: Float32Array;
}

/** The stages of one run, in order. */
class Stages {
  /** Whether a clip was ended before its last step. */
  cutShort = false;
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
    if (!latent.every(Number.isFinite)) {
      throw new KinoraError('LATENTS_NOT_FINITE', 'The latent of the image has invalid numbers.');
    }
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
   * Decodes a clip. Where memory runs out it starts again in tiles, behind the frames that are there.
   */
  async *decode(clip: number, size: LatentSize, latents: Float32Array): AsyncGenerator<Frame> {
    const { model, pace, memory } = this;
    this.#phase('decode', clip);
    const begin = performance.now();
    const scale = model.config.vae.scale_factor_spatial;
    const [width, height] = [size.width * scale, size.height * scale];
    let frames = 0;
    for (let done = false; !done; ) {
      await memory.makeRoom('decode');
      try {
        let index = 0;
        for await (const data of this.#decode(size, latents, memory.plan.tiles)) {
          this.hooks.control.signal.throwIfAborted();
          index += 1;
          if (index <= frames) continue;
          frames = index;
          yield { data, width, height };
        }
        done = true;
      } catch (error) {
        await memory.shrinkDecode(error);
      } finally {
        await this.#endStage();
      }
    }
    pace.decoded(frames, (performance.now() - begin) / 1000);
  }

  async *#decode(
    size: LatentSize,
    latents: Float32Array,
    tiles: Tiling | 'full',
  ): AsyncGenerator<Float32Array> {
    const { backend, model } = this;
    const { signal } = this.hooks.control;
    const options = { latentHeight: size.height, latentWidth: size.width, signal };
    const frames = Array.from({ length: size.frames }, (_, f) => latentFrame(latents, size, f));
    if (tiles !== 'full') {
      const all = { ...options, tiles };
      const decoder = await createTiledVaeDecoder(backend, model.config.vae, model.vae, all);
      try {
        yield* decoder.decodeClip(frames);
      } finally {
        decoder.dispose();
      }
      return;
    }
    const decoder = await createVaeDecoder(backend, model.config.vae, model.vae, options);
    try {
      for (const frame of frames) yield* decoder.decode(frame);
    } finally {
      decoder.dispose();
    }
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
