import type { EngineRequest, ProgressEvent } from '../contract';
import { type Backend, probeDevice } from '../gpu';
import type { Family } from '../gpu/kernels/tune';
import type { RunControl } from '../pipeline/control';
import {
  type CountedRun,
  deviceOf,
  keepRates,
  RunEstimator,
  ratesFolder,
  readRates,
  stagesOf,
  usualRates,
} from '../pipeline/estimate';
import type { MemoryPlan } from '../pipeline/memory/plan';
import type { VideoModel } from '../pipeline/model';
import { sampledFrames } from '../safety';
import { opfsFolder } from '../weights/store';

/** What the estimate of a run is made with. */
export interface RunEstimateOptions extends Pick<CountedRun, 'sampling' | 'frames' | 'optimises'> {
  readonly request: EngineRequest;
  readonly model: VideoModel;
  readonly control: RunControl;
  readonly report: (event: ProgressEvent) => void;
}

/** Milliseconds between two estimates: so many where nothing happens, and so few where much does. */
const tickMs = 1000;
const leastMs = 250;

/**
 * Tells how far one run is, with its events and once a second. The rates are kept in OPFS, which engines of
 * the studio and of a serving tab share: no page has to hand them in.
 */
export class RunEstimate {
  readonly #estimator: RunEstimator;
  #saidAt = 0;
  /** Whether it is known what an earlier run has done; until then nothing is said. */
  #knowsStart: boolean;
  readonly #timer: ReturnType<typeof setInterval>;

  private constructor(
    readonly key: string,
    estimator: RunEstimator,
    resumes: boolean,
    readonly report: RunEstimateOptions['report'],
  ) {
    this.#estimator = estimator;
    this.#knowsStart = !resumes;
    this.#timer = setInterval(() => this.#say(), tickMs);
  }

  /** Starts with what was measured on this device, if anything was. */
  static async open(options: RunEstimateOptions): Promise<RunEstimate> {
    const { request, model, optimises, control, report } = options;
    const { parameters, device, continuation } = request;
    const gpu = device.backend === 'webgpu' ? await probeDevice() : null;
    const { name, kind } = deviceOf(gpu, navigator.hardwareConcurrency, device);
    const key = `${name} | ${request.model}`;
    const remembered = await readRates(opfsFolder(ratesFolder), key).catch(() => ({}));
    const stages = stagesOf({
      ...options,
      manifest: model.manifest,
      counts: model,
      size: parameters.size,
      decodesOnly: continuation === 'finish' || continuation === 'refine',
      checkedFrames: request.options.safetyChecker ? sampledFrames(options.frames).length : 0,
    });
    const usual = usualRates[kind];
    const finishing = () => control.finishing || continuation === 'finish';
    const estimator = new RunEstimator({ stages, usual, remembered, finishing });
    estimator.take({ type: 'phase', phase: optimises ? 'optimise' : 'load', clip: 0, clips: 1 });
    return new RunEstimate(key, estimator, continuation === 'resume', report);
  }

  /** Call it with each event before it is reported. */
  take(event: ProgressEvent): void {
    // The checkpoint is told before the first plan.
    if (event.type === 'plan') this.#knowsStart = true;
    if (!this.#estimator.take(event)) return;
    const isRare = event.type === 'phase' || event.type === 'step' || event.type === 'paused';
    if (isRare || performance.now() - this.#saidAt >= leastMs) this.#say();
  }

  plan({ decodeWork }: MemoryPlan): void {
    this.#estimator.decodeFactor(decodeWork);
  }

  /** No checker can run: the frames are not checked. */
  expectNoCheck(): void {
    this.#estimator.expect('check', { perUnit: 0, startup: 0 });
  }

  /** What the kernels were measured at, where no run has found it: FLOP/s of each family. */
  expectKernels({ compute, kernels }: Pick<Backend, 'compute' | 'kernels'>): void {
    if (!kernels) return;
    const { fastLinear, fastAttention } = kernels;
    const rateOf = (family: Family) => compute?.rates.get(family);
    const linear = rateOf(fastLinear ? 'fastLinear' : 'linear');
    const attention = rateOf(fastAttention ? 'fastAttention' : 'attention');
    const convolution = rateOf('convolution');
    // About half of the work of denoising is attention.
    if (linear && attention) {
      this.#estimator.expect('denoise', { perUnit: 0.5 / linear + 0.5 / attention, startup: 2 });
    }
    if (convolution) this.#estimator.expect('decode', { perUnit: 1 / convolution, startup: 2 });
  }

  /** Remembers what was measured. A full disk loses no video: then it is measured again. */
  async keep(): Promise<void> {
    const folder = opfsFolder(ratesFolder);
    await keepRates(folder, this.key, this.#estimator.measured()).catch(() => undefined);
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #say(): void {
    if (!this.#knowsStart) return;
    this.#saidAt = performance.now();
    this.report({ type: 'estimate', ...this.#estimator.current() });
  }
}
