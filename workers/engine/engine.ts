import * as Comlink from 'comlink';
import {
  type Backend as BackendKind,
  type EngineApi,
  type EngineCounters,
  type EngineRequest,
  type GenerationResult,
  isDeviceFault,
  KinoraError,
  type Phase,
  type ProgressEvent,
  sizeInPixels,
  type Timings,
  toKinoraError,
} from '../../lib/contract';
import { installErrorTransfer } from '../../lib/contract/error-transfer';
import { type Backend, createBackend, probeDevice, requireUsable, selfTest } from '../../lib/gpu';
import { RunControl } from '../../lib/pipeline/control';
import type { Frame } from '../../lib/pipeline/latents';
import type { ModelFamilies, VideoModel } from '../../lib/pipeline/model';
import { openModel } from '../../lib/pipeline/open';
import { resolveSampling } from '../../lib/pipeline/profiles';
import { imageToVideo } from '../../lib/pipeline/run';
import {
  FrameChain,
  type FrameStep,
  type FrameStepMaker,
  type PromptStep,
  runPromptSteps,
  type StepContext,
} from '../../lib/pipeline/steps';
import { removeVideo, writeVideo } from '../../lib/predictions/videos';
import {
  coverCrop,
  createVideoMetadata,
  createVideoWriter,
  decodeImage,
  FrameScaler,
  type VideoWriter,
} from '../../lib/video';
import { modelLock, openModelStore } from '../../lib/weights/store';

/** What an engine is made of. */
export interface EngineParts {
  readonly families: ModelFamilies;
  /** Address of the folder of bundled and listed models; `/models/` of this origin when absent. */
  readonly manifests?: URL;
  /** Run in order on the texts before the tokenizer. */
  readonly promptSteps?: readonly PromptStep[];
  /** Make the steps that see each frame, in order, before it is scaled and encoded. */
  readonly frameSteps?: readonly FrameStepMaker[];
}

/** Model, GPU and encoder, behind the interface that the page speaks. */
export class Engine implements EngineApi {
  readonly #parts: EngineParts;
  /** The one backend, or the promise of it: two callers must not make two devices. */
  #backend: Promise<Backend> | undefined;
  #kind: BackendKind | undefined;
  #model: VideoModel | undefined;
  #control: RunControl | undefined;

  constructor(parts: EngineParts) {
    this.#parts = parts;
  }

  probe() {
    return probeDevice();
  }

  async selfTest(kind: BackendKind) {
    this.#requireIdle();
    const backend = await this.#open(kind);
    const checks = await selfTest(backend);
    await backend.releaseSessions();
    return checks;
  }

  async load(id: string, kind: BackendKind, onProgress?: (event: ProgressEvent) => void) {
    this.#requireIdle();
    onProgress?.({ type: 'phase', phase: 'load', clip: 0, clips: 1 });
    await this.#open(kind);
    await this.#openModel(id);
  }

  async generate(
    request: EngineRequest,
    onProgress: (event: ProgressEvent) => void,
  ): Promise<GenerationResult> {
    this.#requireIdle();
    const control = new RunControl();
    this.#control = control;
    try {
      return await withModel(request.model, () => this.#generate(request, control, onProgress));
    } catch (thrown) {
      // A cancelled run may fail in many ways; what the user did is the reason.
      const error = control.signal.aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
      await removeVideo(videoFileOf(request)).catch(() => undefined);
      if (isDeviceFault(error.code)) await this.#dropBackend();
      else await this.#tidy((backend) => backend.releaseSessions());
      throw error;
    } finally {
      this.#control = undefined;
      await this.#tidy((backend) => backend.trim());
    }
  }

  async cancel() {
    this.#control?.cancel();
  }

  async pause() {
    this.#control?.pause();
  }

  async resume() {
    this.#control?.resume();
  }

  async finishEarly() {
    this.#control?.finishEarly();
  }

  async counters(): Promise<EngineCounters> {
    const nothing = { categories: {}, liveBytes: 0, allocations: 0, readbacks: 0 };
    return (await this.#backend?.catch(() => undefined))?.counters() ?? nothing;
  }

  async unload() {
    this.#requireIdle();
    this.#model = undefined;
    await this.#dropBackend();
  }

  async #generate(
    request: EngineRequest,
    control: RunControl,
    report: (event: ProgressEvent) => void,
  ): Promise<GenerationResult> {
    const clock = new PhaseClock();
    const onProgress = (event: ProgressEvent) => {
      if (event.type === 'phase') clock.enter(event.phase);
      report(event);
    };
    const { parameters } = request;
    onProgress({ type: 'phase', phase: 'load', clip: 0, clips: 1 });
    // The cheap checks come first: a bad image must not wait for the GPU.
    const pixels = await decodeImage(request.image);
    const plain = await this.#openModel(request.model);
    const sampling = resolveSampling(plain.manifest, request.profile, parameters);
    const model = await plain.withLoras(request.loras);
    const backend = await this.#open(request.backend);
    const { signal } = control;
    signal.throwIfAborted();

    const { width, height } = sizeInPixels(parameters.size);
    const native = model.manifest.nativeSizes[parameters.size];
    const { frameRate } = model.latents;
    const frames = frameRate * parameters.duration + 1;
    const image = { data: coverCrop(pixels, native.width, native.height), ...native };
    const context: StepContext = { seed: parameters.seed, image, frames, signal };
    const prompts = await runPromptSteps(
      this.#parts.promptSteps ?? [],
      { prompt: parameters.prompt, negativePrompt: parameters.negative_prompt },
      context,
    );
    const chain = new FrameChain(
      (this.#parts.frameSteps ?? []).map((make) => make(context)),
      scaling(native, { width, height }),
    );
    let writer: VideoWriter | undefined;
    try {
      const output = await createVideoWriter({
        width,
        height,
        frameRate,
        frames,
        metadata: createVideoMetadata({ ...request, createdAt: new Date().toISOString() }),
        encoder: request.encoder ?? 'auto',
      });
      writer = output;
      const result = await imageToVideo(
        backend,
        model,
        {
          ...sampling,
          ...prompts.texts,
          image,
          frames,
          seed: parameters.seed,
          // Where the user set no budget the device is asked.
          memoryBudget: request.memoryBudget ?? 'probe',
        },
        {
          control,
          onProgress,
          onFrame: async (frame) => output.add(await chain.next(frame)),
        },
      );
      onProgress({ type: 'phase', phase: 'finish', clip: 0, clips: 1 });
      const video = await output.finish(result.frames);
      const findings = { ...prompts.findings, ...(await chain.finish()) };
      const videoFile = videoFileOf(request);
      await writeVideo(videoFile, video);
      signal.throwIfAborted();
      return {
        videoFile,
        videoBytes: video.size,
        size: parameters.size,
        width,
        height,
        frames: result.frames,
        seed: parameters.seed,
        model: request.model,
        profile: request.profile,
        backend: request.backend,
        encoder: output.encoder,
        finishedEarly: result.finishedEarly,
        memory: result.memory,
        ...(Object.keys(findings).length > 0 ? { findings } : {}),
        timings: clock.stop(),
      };
    } finally {
      chain.dispose();
      await writer?.cancel();
    }
  }

  #requireIdle(): void {
    if (this.#control) throw new KinoraError('BUSY');
  }

  /** The backend of this kind. One of another kind, or whose device was lost, is disposed first. */
  async #open(kind: BackendKind): Promise<Backend> {
    const current = await this.#backend?.catch(() => undefined);
    if (current && (this.#kind !== kind || current.lost)) await this.#dropBackend();
    if (!this.#backend) {
      this.#kind = kind;
      this.#backend = openTested(kind);
      // The next call tries again.
      this.#backend.catch(() => {
        this.#backend = undefined;
      });
    }
    return this.#backend;
  }

  async #openModel(id: string): Promise<VideoModel> {
    // What is in the store may have been deleted or replaced since the last run.
    if (!this.#model || this.#model.manifest.id !== id || this.#model.installed) {
      this.#model = undefined;
      this.#model = await openModel(id, {
        families: this.#parts.families,
        manifests: this.#parts.manifests ?? new URL('/models/', self.location.origin),
        store: await openModelStore(),
      });
    }
    return this.#model;
  }

  /** Frees what is left; a device that is lost meanwhile is replaced by the next run. */
  async #tidy(work: (backend: Backend) => Promise<void>): Promise<void> {
    const backend = await this.#backend?.catch(() => undefined);
    if (backend) await work(backend).catch(() => undefined);
  }

  async #dropBackend(): Promise<void> {
    const backend = await this.#backend?.catch(() => undefined);
    this.#backend = undefined;
    await backend?.dispose().catch(() => undefined);
  }
}

/**
 * Runs `work` under a lock that keeps the model from being deleted or replaced: its files are read until
 * the last step.
 *
 * @throws KinoraError `MODEL_BUSY`
 */
function withModel<T>(id: string, work: () => Promise<T>): Promise<T> {
  return navigator.locks.request(modelLock(id), { mode: 'shared', ifAvailable: true }, (lock) => {
    if (lock) return work();
    throw new KinoraError('MODEL_BUSY', 'The model is just being downloaded, checked or deleted.', {
      remedy: 'Wait until that is done, then run it again.',
    });
  });
}

/**
 * Makes a backend and asks a real GPU for its numbers before anything is computed on it. An emulated
 * GPU computes with the CPU's own arithmetic, and would take seconds to compile the test.
 *
 * @throws KinoraError `GPU_UNRELIABLE`; then nothing stays allocated
 */
async function openTested(kind: BackendKind): Promise<Backend> {
  const backend = await createBackend(kind);
  try {
    if (kind === 'webgpu' && !(await probeDevice()).software)
      requireUsable(await selfTest(backend));
    return backend;
  } catch (error) {
    await backend.dispose().catch(() => undefined);
    throw error;
  }
}

function videoFileOf(request: EngineRequest): string {
  return request.videoFile ?? `${request.id}.mp4`;
}

/** The frame step that makes what the encoder takes: RGBA of exactly the delivered size. */
function scaling(
  native: { readonly width: number; readonly height: number },
  delivered: { readonly width: number; readonly height: number },
): FrameStep<Frame, Uint8ClampedArray<ArrayBuffer>> {
  const scaler = new FrameScaler(native, delivered);
  return { name: 'scaling', apply: ({ data }) => scaler.scale(data) };
}

/** Adds up the seconds of each phase; phases repeat with each clip. */
class PhaseClock {
  readonly #seconds: Partial<Record<Phase, number>> = {};
  readonly #begin = performance.now();
  #phase: Phase | undefined;
  #since = this.#begin;

  enter(phase: Phase): void {
    const now = performance.now();
    if (this.#phase) {
      const before = this.#seconds[this.#phase] ?? 0;
      this.#seconds[this.#phase] = before + (now - this.#since) / 1000;
    }
    this.#phase = phase;
    this.#since = now;
  }

  stop(): Timings {
    if (this.#phase) this.enter(this.#phase);
    return { ...this.#seconds, total: (performance.now() - this.#begin) / 1000 };
  }
}

/** Starts an engine in this worker; the page speaks to it over Comlink. */
export function startEngine(parts: EngineParts): void {
  installErrorTransfer();
  Comlink.expose(new Engine(parts));
}
