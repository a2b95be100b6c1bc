import * as Comlink from 'comlink';
import {
  type Backend as BackendKind,
  type EngineApi,
  type EngineCounters,
  type EngineRequest,
  frameCount,
  framesPerSecond,
  type GenerationResult,
  isDeviceFault,
  KinoraError,
  type LoraFile,
  type Phase,
  type ProgressEvent,
  phases,
  sizeInPixels,
  type Timings,
  toKinoraError,
} from '../lib/contract';
import { installErrorTransfer } from '../lib/contract/error-transfer';
import { type Backend, createBackend, probeDevice, requireUsable, selfTest } from '../lib/gpu';
import {
  combineLoras,
  imageToVideo,
  type LoraBranches,
  type Model,
  openBundledModel,
  parseLora,
  RunControl,
} from '../lib/models/wan22';
import { removeVideo, writeVideo } from '../lib/predictions/videos';
import {
  coverCrop,
  createVideoMetadata,
  createVideoWriter,
  decodeImage,
  FrameScaler,
  type VideoWriter,
} from '../lib/video';
import { blobFile, openSafetensors } from '../lib/weights';
import { modelLock, openModelStore } from '../lib/weights/store';

/** The engine's worker: model, GPU and encoder live here; the page speaks to it over Comlink. */
class Engine implements EngineApi {
  /** The one backend, or the promise of it: two callers must not make two devices. */
  #backend: Promise<Backend> | undefined;
  #kind: BackendKind | undefined;
  #model: Model | undefined;
  #control: RunControl | undefined;

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
    const model = await this.#openModel(request.model);
    const lora = await combineLoraFiles(request.loras, model);
    const backend = await this.#open(request.backend);
    control.signal.throwIfAborted();

    const { width, height } = sizeInPixels(parameters.size);
    const native = model.manifest.nativeSizes[parameters.size];
    const frames = frameCount(parameters.duration);
    const scaler = new FrameScaler(native, { width, height });
    let writer: VideoWriter | undefined;
    try {
      const output = await createVideoWriter({
        width,
        height,
        frameRate: framesPerSecond,
        frames,
        metadata: createVideoMetadata({ ...request, createdAt: new Date().toISOString() }),
        encoder: request.encoder ?? 'auto',
      });
      writer = output;
      const result = await imageToVideo(
        backend,
        model,
        {
          image: { data: coverCrop(pixels, native.width, native.height), ...native },
          prompt: parameters.prompt,
          negativePrompt: parameters.negative_prompt,
          frames,
          steps: parameters.num_inference_steps,
          guidanceScale: parameters.guidance_scale,
          flowShift: parameters.flow_shift,
          seed: parameters.seed,
          ...(lora ? { lora } : {}),
          // Whoever has no limit of its own, the CPU for one, gives whatever is wanted.
          memoryBudget: request.memoryBudget ?? 'probe',
        },
        {
          control,
          onProgress,
          onFrame: async (frame) => output.add(scaler.scale(frame.data)),
        },
      );
      onProgress({ type: 'phase', phase: 'finish', clip: 0, clips: 1 });
      const video = await output.finish(result.frames);
      const videoFile = videoFileOf(request);
      await writeVideo(videoFile, video);
      control.signal.throwIfAborted();
      return {
        videoFile,
        videoBytes: video.size,
        size: parameters.size,
        width,
        height,
        frames: result.frames,
        seed: parameters.seed,
        model: request.model,
        backend: request.backend,
        encoder: output.encoder,
        finishedEarly: result.finishedEarly,
        memory: result.memory,
        timings: clock.stop(),
      };
    } finally {
      await writer?.cancel();
    }
  }

  #requireIdle(): void {
    if (this.#control) throw new KinoraError('BUSY');
  }

  /** The backend of this kind; another kind's, and one whose device is gone, is given up first. */
  async #open(kind: BackendKind): Promise<Backend> {
    const current = await this.#backend?.catch(() => undefined);
    if (current && (this.#kind !== kind || current.lost)) await this.#dropBackend();
    if (!this.#backend) {
      this.#kind = kind;
      this.#backend = openTested(kind);
      // A failed attempt is forgotten, so that the next one starts afresh.
      this.#backend.catch(() => {
        this.#backend = undefined;
      });
    }
    return this.#backend;
  }

  async #openModel(id: string): Promise<Model> {
    // What is in the store may have been deleted or replaced since the last run.
    if (!this.#model || this.#model.manifest.id !== id || this.#model.packed) {
      this.#model = undefined;
      const manifests = new URL('/models/', self.location.origin);
      this.#model = await openBundledModel(id, manifests, await openModelStore());
    }
    return this.#model;
  }

  /** Frees what is left over; a device that is lost meanwhile is the next run's concern. */
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
 * Runs `work` while nobody may delete or replace the model: its files are read until the last step.
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
 * @throws KinoraError `GPU_UNRELIABLE`; then nothing is held
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

/** Reads the adapters and checks them against the model; undefined where there are none. */
async function combineLoraFiles(
  files: readonly LoraFile[],
  model: Model,
): Promise<LoraBranches | undefined> {
  if (files.length === 0) return undefined;
  const config = model.config.transformer;
  const adapters = [];
  for (const { name, file, scale } of files) {
    const checkpoint = await openSafetensors(blobFile(name, file)).catch((cause) => {
      throw new KinoraError('LORA_INVALID', `${name} is not a safetensors file that can be read.`, {
        cause,
      });
    });
    adapters.push({ lora: await parseLora(checkpoint, config, name), scale });
  }
  return combineLoras(adapters, config);
}

/** Adds up the seconds of each phase; a phase may come back, clip after clip. */
class PhaseClock {
  readonly #seconds = Object.fromEntries(phases.map((phase) => [phase, 0])) as Record<
    Phase,
    number
  >;
  readonly #begin = performance.now();
  #phase: Phase | undefined;
  #since = this.#begin;

  enter(phase: Phase): void {
    const now = performance.now();
    if (this.#phase) this.#seconds[this.#phase] += (now - this.#since) / 1000;
    this.#phase = phase;
    this.#since = now;
  }

  stop(): Timings {
    if (this.#phase) this.enter(this.#phase);
    return { ...this.#seconds, total: (performance.now() - this.#begin) / 1000 };
  }
}

installErrorTransfer();
Comlink.expose(new Engine());
