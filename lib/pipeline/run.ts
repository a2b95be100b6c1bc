import { at, KinoraError, type MemoryReport, type Phase } from '../contract';
import type { Backend } from '../gpu';
import { openCheckpoints, RunCheckpoints } from './checkpoints';
import { type ClipJoin, joinOf, keptLatents, planClips } from './clips';
import { decodeClip, VideoOutput } from './decode';
import { DenoiseInterrupted, type DenoiseState, denoise, type Prediction } from './denoise';
import { type KeyFrame, PictureFades, type ShownPicture } from './key-frames';
import {
  type Frame,
  joinLatents,
  type LatentSize,
  latentSizeOf,
  requireFinite,
  splitLatents,
} from './latents';
import { MemoryFit } from './memory/fit';
import { type MemoryPlan, planRequestOf } from './memory/memory-plan';
import type { ClipConditions, Loading, NamedTensors, TokenIds, VideoModel } from './model';
import { gaussianNoise } from './noise';
import { Previews } from './preview';
import type { ImageToVideoHooks, ImageToVideoRequest, ImageToVideoResult } from './request';
import { createScheduler, type Scheduler } from './schedulers';
import { StepClock } from './step-clock';

export type { ImageToVideoHooks, ImageToVideoRequest, ImageToVideoResult } from './request';

/**
 * Latent frames in which the detail of the clip before fades out, and in which a clip fades into a picture and out of
 * it.
 */
const [fadedLatents, pictureLatents] = [3, 2] as const;

/** Shortest time between two reports of the bytes that were read, in milliseconds. */
const bytesIntervalMs = 50;

/** A preview comes about this often in a clip. */
const previewsPerClip = 10;

/**
 * Image-to-video with any model: text embeddings → image latents → denoising → frames; and for a video
 * longer than the model's longest clip, again from the last decoded frame.
 *
 * Each stage frees its weights before the next one loads: the peak is the largest stage, not the sum.
 * A plan makes the stages fit the device's memory; if an allocation fails all the same, the run continues
 * from its current step by a smaller one.
 *
 * A run that is saved can be resumed: finished clips are decoded again from their latents, the clip under
 * way goes on from its last checkpoint, and gives the same latents bit for bit.
 *
 * @throws KinoraError `LATENTS_NOT_FINITE` naming the step, `CANCELLED`, `OUT_OF_MEMORY` where the
 * smallest plan does not fit, `KERNELS_UNAVAILABLE` before anything is computed, `PAUSED` after {@link RunControl.pause}, `CHECKPOINT_INVALID`,
 * `CHECKPOINT_MISMATCH`, and what the files and the device throw; then nothing stays on the device
 */
export async function imageToVideo(
  backend: Backend,
  model: VideoModel,
  request: ImageToVideoRequest,
  hooks: ImageToVideoHooks,
): Promise<ImageToVideoResult> {
  // A budget of the user is a hard limit, also where a plan is wrong.
  const { ceiling } = backend;
  const { memoryBudget } = hooks;
  if (typeof memoryBudget === 'number') backend.ceiling = memoryBudget;
  try {
    return await new Run(backend, model, request, hooks).make();
  } finally {
    backend.ceiling = ceiling;
  }
}

/** The start of a clip. */
interface ClipStart {
  readonly size: LatentSize;
  /** Its first frame, where it holds no latent frames. */
  readonly start: Frame;
  /** Latent frames [C, h, w] that it begins with. */
  readonly held: readonly Float32Array[];
}

/** One run, from top to bottom in the order of its stages. */
class Run {
  readonly #join: ClipJoin;
  readonly #clips;
  readonly #pictures: PictureFades;
  readonly #stepClock = new StepClock();
  /** Whether a clip was ended before its last step. */
  #cutShort = false;
  #checkpoints: RunCheckpoints;
  /** Finished steps of the clip under way. */
  #step = 0;
  readonly #previews: Previews;
  readonly #scheduler: Scheduler;
  readonly #output: VideoOutput;
  #fit: MemoryFit | null = null;
  #texts: readonly Float32Array[] = [];
  /** Latent frames [C, h, w] that are decoded as one sequence: of a clip, or of all where the motion is kept. */
  #sequence: readonly Float32Array[];
  /** How many of them are of an earlier video. */
  readonly #earlier: number;

  constructor(
    readonly backend: Backend,
    readonly model: VideoModel,
    readonly request: ImageToVideoRequest,
    readonly hooks: ImageToVideoHooks,
  ) {
    this.#previews = new Previews(backend, model, request.previewShare);
    const { manifest, latents } = model;
    this.#join = joinOf(manifest, request.before?.latents.length);
    const { frames } = request;
    this.#clips = planClips(frames, manifest.maxClipFrames, latents.strides.time, this.#join);
    const fade = pictureLatents * latents.strides.time;
    this.#pictures = new PictureFades(this.#shownPictures(fade), fade);
    const faded = fadedLatents * latents.strides.time;
    const { framesPerSecond } = manifest;
    this.#output = new VideoOutput(request, hooks, this.#pictures, framesPerSecond, faded);
    this.#sequence = request.before?.latents ?? [];
    this.#earlier = this.#sequence.length;
    const { length: clips } = this.#clips;
    const { scheduler, steps, flowShift } = request;
    this.#scheduler = createScheduler({ ...scheduler, steps, flowShift });
    const unsaved = { saved: null, decodes: false, resumes: 0, writer: null };
    this.#checkpoints = new RunCheckpoints({ ...unsaved, clips, steps });
  }

  get #memory(): MemoryFit {
    if (!this.#fit) throw new TypeError('the memory is not planned yet');
    return this.#fit;
  }

  get #guided(): boolean {
    return this.request.guidanceScale > 1;
  }

  /** The clip that makes a frame of the video; one that the clip before made as well is of that one. */
  #clipOf(frame: number): number {
    return this.#clips.findIndex(({ last }) => frame <= last);
  }

  /** The pictures that the video shows besides its first frame. @param fade frames in which one comes, and goes */
  #shownPictures(fade: number): ShownPicture[] {
    const { lastImage, frames, lastImageFrame = frames - 1, loop } = this.request;
    const shown = [
      ...(lastImage ? [{ frame: lastImageFrame, image: lastImage }] : []),
      ...(loop ? [{ frame: frames - 1, image: null }] : []),
    ];
    return shown.map(({ frame, image }, i) => {
      const clip = this.#clipOf(frame);
      // Frames of another clip know nothing of it, but for what is decoded as one sequence.
      const from = Math.max(this.#clips[clip - 1]?.last ?? 0, shown[i - 1]?.frame ?? 0);
      const until = this.#join.keepsMotion ? frames - 1 : at(this.#clips, clip).last;
      return { frame, image, fade: Math.min(fade, frame - from), until };
    });
  }

  async make(): Promise<ImageToVideoResult> {
    const { model, request, hooks } = this;
    const { saving, onProgress } = hooks;
    if (saving) {
      const clips = this.#clips.length;
      this.#checkpoints = await openCheckpoints(saving, model, request, clips, onProgress);
    }
    try {
      await this.#begin();
      for (const clip of this.#clips.keys()) if (await this.#makeClip(clip)) break;
      return this.#result();
    } finally {
      await this.#checkpoints.flush();
    }
  }

  /** Plans the memory, and encodes the texts. */
  async #begin(): Promise<void> {
    const { prompt, negativePrompt } = this.request;
    const prompts = await this.model.tokenize(this.#guided ? [prompt, negativePrompt] : [prompt]);
    this.#fit = await this.#fitMemory(prompts);
    const { texts, denoises } = this.#checkpoints;
    this.#texts = texts ?? (denoises ? await this.#encodeText(prompts) : []);
  }

  /** Denoises a clip and shows it, or all clips at once where the motion is kept. @returns whether the video ends with it */
  async #makeClip(clip: number): Promise<boolean> {
    const { keepsMotion } = this.#join;
    const { frames, shared } = at(this.#clips, clip);
    const { start } = this.#output;
    const size = latentSizeOf(this.model.latents, { ...start, frames });
    const held = keepsMotion && shared > 0 ? this.#sequence.slice(-shared) : [];
    const latents =
      this.#savedLatents(clip) ?? (await this.#newLatents(clip, { size, start, held }));
    const { finishing } = this.hooks.control;
    const isEnd = clip === this.#clips.length - 1 || !latents || this.#cutShort;
    if (latents) {
      const own = splitLatents(latents, size);
      this.#sequence = keepsMotion ? [...this.#sequence, ...own.slice(held.length)] : own;
    }
    if (keepsMotion && !isEnd && !finishing) return false;
    if (keepsMotion ? this.#sequence.length === this.#earlier : !latents) return true;
    await this.#show(clip, size, isEnd);
    return isEnd || this.hooks.control.finishing;
  }

  /** Decodes the latents that are there, and hands their frames out. */
  async #show(clip: number, size: LatentSize, isEnd: boolean): Promise<void> {
    const { keepsMotion } = this.#join;
    const { continues, before } = this.request;
    const { time: stride } = this.model.latents.strides;
    const whole = { ...size, frames: this.#sequence.length };
    const latents = joinLatents(this.#sequence, whole);
    const decoded = this.#decode(keepsMotion ? this.#clips.length - 1 : clip, whole, latents);
    const isFirst = this.#output.framesDone === 0;
    await this.#output.take(decoded, {
      clip,
      frames: 1 + (whole.frames - 1) * stride,
      // Frames of the clip before, or of the earlier video without its last one.
      repeated: keepsMotion
        ? Math.max(0, this.#earlier - 1) * stride
        : at(this.#clips, clip).shared,
      fromPicture: isFirst ? continues === true && !before : !keepsMotion,
      isEnd,
    });
  }

  #result(): ImageToVideoResult {
    const { framesDone: frames, frameCount, change: colours, corrections } = this.#output;
    // A video that ends in a given picture shows this picture, not the one of its latents.
    const isOpen = !this.#pictures.changes(frames - 1);
    const keepsEnd = isOpen && this.model.manifest.continuation.latents > 0;
    return {
      frames,
      // A request to finish that comes after the last step still gets the whole video.
      finishedEarly: this.#cutShort || frames < frameCount,
      resumes: this.#checkpoints.resumes,
      memory: this.#memory.report,
      colours: corrections,
      end: keepsEnd ? { latents: this.#sequence.slice(-keptLatents), colours } : null,
    };
  }

  /** Latents [C, F, h, w] of a clip that is not to be denoised any more. */
  #savedLatents(clip: number): Float32Array | null {
    const saved = this.#checkpoints.clipOf(clip);
    if (!saved) return null;
    this.#cutShort = saved.cutShort;
    return saved.latents;
  }

  /** Denoises a clip, from its last checkpoint where there is one. Null where the run only decodes. */
  async #newLatents(clip: number, { size, start, held }: ClipStart): Promise<Float32Array | null> {
    const checkpoints = this.#checkpoints;
    const texts = this.#texts;
    if (!checkpoints.denoises) return null;
    if (clip > 0) await this.#pause();
    let image = checkpoints.imageOf(clip);
    if (!image) {
      image = await this.#encodeImages(clip, start, held);
      checkpoints.saveConditions({ clip, image, texts });
    }
    const state = checkpoints.stateOf(clip);
    this.#step = state?.step ?? 0;
    const latents = await this.#denoise(clip, { size, image, texts }, state);
    checkpoints.saveClip(clip, this.#step, { latents, cutShort: this.#cutShort });
    await this.#written();
    await this.#pause();
    return latents;
  }

  /** Waits for the files on the CPU: each takes several turns of the event loop, and what computes there leaves few. */
  async #written(): Promise<void> {
    if (this.backend.kind === 'wasm') await this.#checkpoints.flush();
  }

  /**
   * Ends the run if that was asked for and what is saved is written.
   *
   * @throws KinoraError `PAUSED`
   */
  async #pause(): Promise<void> {
    const { pausing, finishing } = this.hooks.control;
    if (!pausing || finishing) return;
    if (await this.#checkpoints.flush()) throw new KinoraError('PAUSED');
  }

  /** Plans the memory for the longest clip. */
  async #fitMemory(prompts: readonly TokenIds[]): Promise<MemoryFit> {
    const { backend, model, request, hooks } = this;
    const { width, height } = request.image;
    const frames = Math.max(...this.#clips.map((clip) => clip.frames));
    const planned = {
      ...planRequestOf(request, { width, height, frames }),
      backend,
      promptTokens: prompts.map(({ length }) => length),
    };
    const planner = await model.planMemory(planned).catch((error: unknown) => {
      const refused = error instanceof KinoraError && error.code === 'KERNELS_UNAVAILABLE';
      const { kernels } = backend;
      if (!refused || !kernels || request.kernels !== undefined) throw error;
      backend.kernels = null;
      // The kernels of the image's check are not the kernels that made the video.
      backend.compute?.used.clear();
      const { message: reason } = error;
      hooks.onProgress({ type: 'kernels', asked: kernels.mode, computes: 'runtime', reason });
      return model.planMemory(planned);
    });
    const onPlan = (memory: MemoryReport, { decodeWork }: MemoryPlan) =>
      hooks.onProgress({ type: 'plan', memory, decodeWork });
    return MemoryFit.create(backend, planner, hooks.memoryBudget, onPlan);
  }

  async #encodeText(prompts: readonly TokenIds[]): Promise<Float32Array[]> {
    this.#phase('text', 0);
    await this.#memory.freeSessionsFor('text');
    const texts = await this.model.encodeText(this.backend, prompts, this.#loading('text'));
    await this.#endStage();
    return texts;
  }

  async #encodeImages(
    clip: number,
    start: Frame,
    held: readonly Float32Array[],
  ): Promise<NamedTensors> {
    this.#phase('image', clip);
    await this.#memory.freeSessionsFor('image');
    const { request, hooks } = this;
    const { frames, last } = at(this.#clips, clip);
    const images: KeyFrame[] = held.length > 0 ? [] : [{ frame: 0, image: start }];
    for (const { frame, image } of this.#pictures.pictures) {
      if (this.#clipOf(frame) !== clip) continue;
      images.push({ frame: frames - 1 - (last - frame), image: image ?? request.image });
    }
    const { signal } = hooks.control;
    const conditions = await this.model.encodeImages(this.backend, images, frames, signal, held);
    for (const values of Object.values(conditions)) {
      requireFinite(values, 'What the model made of an image');
    }
    await this.#endStage();
    return conditions;
  }

  /** Denoises a clip; where memory runs out, by a smaller plan from the step that was reached. */
  async #denoise(
    clip: number,
    conditions: ClipConditions,
    state: DenoiseState | null,
  ): Promise<Float32Array> {
    for (let resume = state; ; ) {
      try {
        return await this.#denoiseFrom(resume, clip, conditions);
      } catch (error) {
        if (error instanceof DenoiseInterrupted) resume = error.state;
        await this.#memory.shrink(error);
      }
    }
  }

  async #denoiseFrom(
    resume: DenoiseState | null,
    clip: number,
    conditions: ClipConditions,
  ): Promise<Float32Array> {
    const { backend, model, request, hooks } = this;
    this.#phase('load', clip);
    await this.#memory.freeSessionsFor('denoise');
    const { plan } = this.#memory;
    const [first] = this.#scheduler.step(Math.min(resume?.step ?? 0, request.steps - 1));
    const loading = this.#loading('denoise');
    const denoiser = await model.loadDenoiser(backend, plan, loading, first?.timestep ?? 0);
    try {
      this.#phase('denoise', clip);
      this.#stepClock.start();
      this.#previews.decodes = plan.previews;
      const { size } = conditions;
      const count = model.latents.channels * size.frames * size.height * size.width;
      return await denoise(backend, denoiser, {
        ...conditions,
        scheduler: this.#scheduler,
        guidanceScale: request.guidanceScale,
        guidedSteps: request.guidedSteps,
        cache: request.cache,
        noise: (draw) => gaussianNoise({ seed: request.seed, stream: clip, draw, count }),
        resume,
        signal: hooks.control.signal,
        afterStep: (step, prediction) => this.#afterStep(clip, step, prediction, size),
      });
    } finally {
      denoiser.dispose();
      await this.#endStage();
    }
  }

  async #afterStep(
    clip: number,
    index: number,
    prediction: Prediction,
    size: LatentSize,
  ): Promise<boolean> {
    const { hooks } = this;
    const { steps } = this.request;
    const step = index + 1;
    if (!prediction.rows.every(Number.isFinite)) {
      throw new KinoraError(
        'LATENTS_NOT_FINITE',
        `The latents became invalid (NaN or infinity) in step ${step} of ${steps}.`,
      );
    }
    this.#step = step;
    this.#stepClock.step();
    hooks.onProgress({
      type: 'step',
      step,
      steps,
      clip,
      clips: this.#clips.length,
      secondsPerStep: this.#stepClock.secondsPerStep,
    });
    // The prediction of the last step is decoded next, in full.
    const previewed = step < steps || !this.#previews.decodes;
    if (previewed && step % Math.ceil(steps / previewsPerClip) === 0) {
      await this.#preview(prediction, size);
    }
    const { control } = hooks;
    const checkpoints = this.#checkpoints;
    if (step < steps && (checkpoints.due || control.pausing)) {
      // If this step cannot be saved, one of the next steps can.
      if (await checkpoints.saveState(clip, step, prediction)) {
        await this.#written();
        await this.#pause();
      }
    }
    if (!control.finishing || step === steps) return false;
    this.#cutShort = true;
    return true;
  }

  async #preview(prediction: Prediction, size: LatentSize): Promise<void> {
    const { signal } = this.hooks.control;
    const strip = await this.#previews.make(prediction.latents(), size, signal);
    if (strip) this.hooks.onProgress({ type: 'preview', ...strip });
  }

  #decode(clip: number, size: LatentSize, latents: Float32Array): AsyncGenerator<Frame> {
    const { backend, model, hooks } = this;
    const memory = this.#memory;
    const { decoder } = this.request;
    this.#phase('decode', clip);
    const endStage = () => this.#endStage();
    return decodeClip({ backend, model, size, latents, decoder, memory, hooks, endStage });
  }

  #phase(phase: Phase, clip: number): void {
    this.hooks.control.signal.throwIfAborted();
    this.hooks.onProgress({ type: 'phase', phase, clip, clips: this.#clips.length });
  }

  /** Frees the runtime's own buffers, so that no stage pays for the one before. */
  async #endStage(): Promise<void> {
    const { categories } = this.backend.counters();
    this.hooks.onProgress({ type: 'memory', categories });
    await this.backend.trim();
  }

  /** Options of a stage that reads weights; counts its bytes from 0. */
  #loading(stage: 'text' | 'denoise'): Loading {
    const bytesTotal = this.model.weightBytes(stage);
    let bytesDone = 0;
    let told = Number.NEGATIVE_INFINITY;
    return {
      signal: this.hooks.control.signal,
      onBytes: (bytes) => {
        bytesDone += bytes;
        // Tensors may follow one another within a millisecond, and a page draws anew for each event.
        const now = performance.now();
        if (now - told < bytesIntervalMs && bytesDone < bytesTotal) return;
        told = now;
        this.hooks.onProgress({ type: 'bytes', bytesDone, bytesTotal });
      },
    };
  }
}
