import { KinoraError, type Phase, type ProgressEvent } from '../contract';
import type { Backend } from '../gpu';
import { measureChunkTokens } from './chunk-size';
import { latentFrames, planClips } from './clips';
import type { RunControl } from './control';
import { denoise } from './denoise';
import type { LoraBranches } from './lora';
import type { Model } from './model';
import { gaussianNoise } from './noise';
import { Pace } from './pace';
import { previewStrip } from './preview';
import { createScheduler } from './scheduler';
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
import { createVaeDecoder, encodeFirstFrame } from './vae';

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
 *
 * @throws KinoraError `LATENTS_NOT_FINITE` naming the step, `CANCELLED`, and what the files and the
 * device throw; then nothing stays on the device
 */
export async function imageToVideo(
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
  const run = new Stages(backend, model, request, hooks, pace, clips.length);

  const texts = await run.encodeText();
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
  return { frames: framesDone, finishedEarly };
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
  #chunkTokens: number | null = null;

  constructor(
    readonly backend: Backend,
    readonly model: Model,
    readonly request: ImageToVideoRequest,
    readonly hooks: ImageToVideoHooks,
    readonly pace: Pace,
    readonly clips: number,
  ) {}

  async encodeText(): Promise<Texts> {
    const { model, request, backend } = this;
    this.#phase('text', 0);
    const { encodePrompt } = await loadTokenizer(model.folder);
    const guided = request.guidanceScale > 1;
    const texts = guided ? [request.prompt, request.negativePrompt] : [request.prompt];
    const [prompt, negativePrompt] = await encodePrompts(
      backend,
      model.textEncoder,
      model.config.text_encoder,
      texts.map(encodePrompt),
      this.#loading(this.#bytesOf('textEncoder')),
    );
    await this.#endStage();
    const empty = new Float32Array(0);
    return { prompt: prompt ?? empty, negativePrompt: negativePrompt ?? empty };
  }

  async encodeImage(clip: number, image: Frame): Promise<Float32Array> {
    this.#phase('image', clip);
    const { config, vae } = this.model;
    const { signal } = this.hooks.control;
    const latent = await encodeFirstFrame(this.backend, config.vae, vae, image, { signal });
    if (!latent.every(Number.isFinite)) {
      throw new KinoraError('LATENTS_NOT_FINITE', 'The latent of the image has invalid numbers.');
    }
    await this.#endStage();
    return latent;
  }

  async denoise(
    clip: number,
    size: LatentSize,
    imageLatent: Float32Array,
    texts: Texts,
  ): Promise<Float32Array> {
    const { backend, model, request, hooks, pace } = this;
    const { transformer: config } = model.config;
    const channels = config.in_channels;
    this.#phase('load', clip, 'transformer');
    const transformer = await Transformer.load(backend, model.transformer, config, {
      ...this.#loading(this.#bytesOf('transformer')),
      ...(request.lora ? { lora: request.lora } : {}),
    });
    try {
      this.#phase('denoise', clip);
      const tokens = size.frames * tokensPerFrame(config, size);
      this.#chunkTokens ??= await measureChunkTokens(backend, config, tokens);
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
        maxChunkTokens: this.#chunkTokens,
        signal: hooks.control.signal,
        afterStep: (step, prediction) => this.#afterStep(clip, step, prediction, size),
      });
      return tokensToLatents(result, channels, size, config);
    } finally {
      transformer.dispose();
      await this.#endStage();
    }
  }

  async *decode(clip: number, size: LatentSize, latents: Float32Array): AsyncGenerator<Frame> {
    const { backend, model, hooks, pace } = this;
    this.#phase('decode', clip);
    const begin = performance.now();
    const decoder = await createVaeDecoder(backend, model.config.vae, model.vae, {
      latentHeight: size.height,
      latentWidth: size.width,
      signal: hooks.control.signal,
    });
    const scale = model.config.vae.scale_factor_spatial;
    const [width, height] = [size.width * scale, size.height * scale];
    let frames = 0;
    try {
      for (let f = 0; f < size.frames; f++) {
        for await (const data of decoder.decode(latentFrame(latents, size, f))) {
          hooks.control.signal.throwIfAborted();
          frames += 1;
          yield { data, width, height };
        }
      }
    } finally {
      decoder.dispose();
      await this.#endStage();
    }
    pace.decoded(frames, (performance.now() - begin) / 1000);
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
      precision: this.model.manifest.precision,
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
