import {
  appUrl,
  type Backend as BackendKind,
  type CheckRequest,
  type EngineApi,
  type EngineRequest,
  type EnhanceRequest,
  exposeWorker,
  type GenerationResult,
  isDeviceFault,
  type KernelSetting,
  KinoraError,
  type ProgressEvent,
  type Safety,
  toKinoraError,
} from '../contract';
import { probeDevice, selfTest } from '../gpu';
import { RunControl } from '../pipeline/control';
import type { ModelFamilies, VideoModel } from '../pipeline/model';
import { openModel } from '../pipeline/open';
import { readVideo, removeVideo } from '../predictions/videos';
import { readSeconds } from '../weights';
import { modelLock, openModelStore } from '../weights/store';
import { compareDecoders } from './compare-decoders';
import { EngineDevice } from './device';
import { framesOfClip } from './earlier-video';
import { enhanceVideo, openFinishers } from './finisher';
import { Generation } from './generation';
import { EngineKernels } from './kernels';
import { requireNoChild } from './prompt';
import { checkBackends, checkVideo } from './run-safety';
import { type EngineTools, installedTools } from './tools';

/** Dependencies of an engine. */
export interface EngineDependencies {
  readonly families: ModelFamilies;
  /** Address of the folder of bundled and listed models; `/models/` of this origin when absent. */
  readonly manifests?: URL;
  /** What the browser has besides models: what is installed, when absent. */
  readonly tools?: EngineTools;
  /** Shortest time between two checkpoints, in seconds; 20 when absent. */
  readonly checkpointSeconds?: number;
}

/** Model, GPU and encoder, behind the interface that the page speaks. */
export class Engine implements EngineApi {
  readonly #dependencies: EngineDependencies;
  readonly #tools: EngineTools;
  readonly #device = new EngineDevice();
  readonly #kernels = new EngineKernels();
  #model: VideoModel | undefined;
  #control: RunControl | undefined;

  constructor(dependencies: EngineDependencies) {
    this.#dependencies = dependencies;
    this.#tools = dependencies.tools ?? installedTools;
  }

  probe() {
    return probeDevice();
  }

  async selfTest(kind: BackendKind) {
    this.#requireIdle();
    const backend = await this.#device.open(kind);
    const checks = await selfTest(backend);
    await backend.releaseSessions();
    return checks;
  }

  async load(id: string, kind: BackendKind, onProgress?: (event: ProgressEvent) => void) {
    this.#requireIdle();
    onProgress?.({ type: 'phase', phase: 'load', clip: 0, clips: 1 });
    await this.#device.open(kind);
    await this.#openModel(id);
  }

  generate(
    request: EngineRequest,
    onProgress: (event: ProgressEvent) => void,
  ): Promise<GenerationResult> {
    const { checkpointSeconds } = this.#dependencies;
    return this.#work((control) => {
      const run = new Generation(request, {
        openModel: () => this.#openModel(request.model),
        device: this.#device,
        kernels: this.#kernels,
        tools: this.#tools,
        checkpointSeconds,
        control,
        report: onProgress,
      });
      return withModel(request.model, () => run.make());
    });
  }

  check({ videoFile, model, prompts, backend }: CheckRequest): Promise<Safety> {
    return this.#work(async ({ signal }) => {
      const checker = await this.#tools.openChecker(model);
      const file = await readVideo(videoFile);
      const safety = await checkVideo(file, checker, checkBackends(this.#device, backend), signal);
      if (safety.status === 'flagged') await refuseChild(videoFile, prompts);
      return safety;
    });
  }

  compareDecoders(video: Blob, id: string, kind: BackendKind) {
    return this.#work(async ({ signal }) => {
      const backend = await this.#device.open(kind);
      const model = await this.#openModel(id);
      const frames = await framesOfClip(video, model);
      return compareDecoders(model, backend, frames, signal);
    });
  }

  enhance(request: EnhanceRequest, onProgress: (event: ProgressEvent) => void): Promise<Blob> {
    return this.#work(async ({ signal }) => {
      const { finishing, backend } = request;
      const open = () => this.#device.open(backend);
      const networks = await openFinishers(finishing, this.#tools, open);
      if (networks.upscaler) await this.#kernels.use(await open(), undefined, onProgress, signal);
      return enhanceVideo(request, networks, signal, onProgress);
    });
  }

  tune(setting: KernelSetting, onProgress: (event: ProgressEvent) => void): Promise<void> {
    return this.#work(async ({ signal }) => {
      if (setting === 'runtime') return;
      const backend = await this.#device.open('webgpu', setting);
      await this.#kernels.tune(backend, setting, onProgress, signal);
    });
  }

  async skipTuning() {
    this.#kernels.skip();
  }

  async cancel() {
    this.#control?.cancel();
  }

  async pause() {
    this.#control?.pause();
  }

  async finishEarly() {
    this.#control?.finishEarly();
  }

  async counters() {
    return { ...(await this.#device.counters()), loadSeconds: readSeconds() };
  }

  async unload() {
    this.#requireIdle();
    this.#model = undefined;
    await this.#device.drop();
  }

  #requireIdle(): void {
    if (this.#control) throw new KinoraError('BUSY');
  }

  /** The one thing that runs; a failure leaves nothing of it on the device. */
  async #work<T>(work: (control: RunControl) => Promise<T>): Promise<T> {
    this.#requireIdle();
    const control = new RunControl();
    this.#control = control;
    try {
      return await work(control);
    } catch (thrown) {
      // A cancelled run may fail in many ways; what the user did is the reason.
      const error = control.signal.aborted
        ? new KinoraError('CANCELLED')
        : toKinoraError(await this.#device.reasonOf(thrown));
      if (error.code === 'DEVICE_LOST') {
        await this.#device.tidy((backend) => this.#kernels.lost(backend));
      }
      if (isDeviceFault(error.code) || error.code === 'PAUSED') await this.#device.drop();
      else await this.#device.tidy((backend) => backend.releaseSessions());
      throw error;
    } finally {
      this.#control = undefined;
      await this.#device.tidy((backend) => backend.trim());
    }
  }

  async #openModel(id: string): Promise<VideoModel> {
    // The stored model may have been deleted or replaced since the last run.
    if (!this.#model || this.#model.manifest.id !== id || this.#model.installed) {
      this.#model = undefined;
      this.#model = await openModel(id, {
        families: this.#dependencies.families,
        manifests: this.#dependencies.manifests ?? appUrl('/models/'),
        store: await openModelStore(),
      });
    }
    return this.#model;
  }
}

/** Deletes a flagged video whose prompt names a child. @throws KinoraError `PROMPT_REFUSED` */
async function refuseChild(videoFile: string, prompts: readonly string[]): Promise<void> {
  try {
    requireNoChild('video', prompts);
  } catch (refusal) {
    await removeVideo(videoFile);
    throw refusal;
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

/** Starts an engine in this worker; the page speaks to it over Comlink. */
export function startEngine(dependencies: EngineDependencies): void {
  exposeWorker(new Engine(dependencies));
}
