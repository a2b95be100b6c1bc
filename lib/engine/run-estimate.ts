import type { DeviceOptions, DeviceReport, EngineRequest, ProgressEvent } from '../contract';
import { type Backend, probeDevice } from '../gpu';
import { joinOf, keptLatents } from '../pipeline/clips';
import type { RunControl } from '../pipeline/control';
import {
  type CountedRun,
  deviceOf,
  keepPaces,
  RunEstimator,
  ratesFolder,
  readPaces,
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

type KnownPaces = Awaited<ReturnType<typeof knownPaces>>;

/** What was measured on a device with a model. @param gpu null for the CPU */
export async function knownPaces(gpu: DeviceReport | null, device: DeviceOptions, model: string) {
  const { name, kind } = deviceOf(gpu, navigator.hardwareConcurrency, device);
  const key = `${name} | ${model}`;
  return { key, kind, paces: await readPaces(opfsFolder(ratesFolder), key) };
}

/** Milliseconds between two estimates: so many where nothing happens, and so few where much does. */
const tickMs = 1000;
const leastMs = 250;

/**
 * Tells how far one run is, with its events and once a second. What is measured is kept in OPFS, which engines of
 * the studio and of a serving tab share: no page has to hand them in.
 */
export class RunEstimate {
  readonly #estimator: RunEstimator;
  #saidAt = 0;
  /** Whether it is known what an earlier run has done; until then nothing is said. */
  #knowsStart: boolean;
  readonly #timer: ReturnType<typeof setInterval>;

  private constructor(
    readonly known: KnownPaces,
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
    const known = await knownPaces(gpu, device, request.model);
    const counted: CountedRun = {
      ...options,
      manifest: model.manifest,
      counts: model,
      // How many latent frames an earlier video has is not read yet; it hardly counts.
      ...(request.before && { join: joinOf(model.manifest, keptLatents) }),
      size: parameters.size,
      finishing: parameters,
      decodesOnly: continuation === 'finish' || continuation === 'refine',
      checkedFrames: request.options.safetyChecker ? sampledFrames(options.frames).length : 0,
    };
    const finishing = () => control.finishing || continuation === 'finish';
    const stages = stagesOf(counted, known.kind);
    const estimator = new RunEstimator({ stages, remembered: known.paces, finishing });
    estimator.take({ type: 'phase', phase: optimises ? 'optimise' : 'load', clip: 0, clips: 1 });
    return new RunEstimate(known, estimator, continuation === 'resume', report);
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
    this.#estimator.expect('check', 0);
  }

  /** What the kernels were measured at, where no run has found it: FLOP/s of each family. */
  expectKernels({ compute, kernels }: Pick<Backend, 'compute' | 'kernels'>): void {
    if (!kernels) return;
    const { fastLinear, fastAttention } = kernels;
    const linear = compute?.rates.get(fastLinear ? 'fastLinear' : 'linear');
    const attention = compute?.rates.get(fastAttention ? 'fastAttention' : 'attention');
    const convolution = compute?.rates.get('convolution');
    const { pass, decode } = usualRates[this.known.kind];
    // About half of the work of denoising is attention.
    if (linear && attention)
      this.#estimator.expect('denoise', (0.5 / linear + 0.5 / attention) / pass.operation);
    if (convolution) this.#estimator.expect('decode', 1 / convolution / decode.operation);
  }

  /** Remembers what was measured. A full disk loses no video: then it is measured again. */
  async keep(): Promise<void> {
    const folder = opfsFolder(ratesFolder);
    await keepPaces(folder, this.known.key, this.#estimator.measured()).catch(() => undefined);
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
