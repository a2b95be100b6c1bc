import {
  type DeviceOptions,
  type DeviceReport,
  type EngineRequest,
  type ProgressEvent,
  usualKernels,
} from '../contract';
import { type Backend, probeDevice } from '../gpu';
import { joinOf, keptLatents } from '../pipeline/clips';
import type { RunControl } from '../pipeline/control';
import { type Paces, RunEstimator } from '../pipeline/estimate/estimator';
import { type CountedRun, stagesOf, usualRates } from '../pipeline/estimate/stages';
import type { VideoModel } from '../pipeline/model';
import { KinoraDatabase } from '../predictions/database';
import { loadSetting, saveSetting } from '../predictions/settings';
import { sampledFrames } from '../safety';

const database = new KinoraDatabase();

/** What was measured on a device with a model, and the setting that keeps it. @param gpu null for the CPU */
export async function knownPaces(
  gpu: DeviceReport | null,
  { kernels }: Pick<DeviceOptions, 'kernels'>,
  model: string,
) {
  const device = gpu
    ? ['webgpu', ...Object.values(gpu.adapter), kernels ?? usualKernels(gpu.software)]
    : ['wasm', navigator.hardwareConcurrency];
  const key = ['paces', ...device, model].join('|');
  const kind: keyof typeof usualRates = !gpu ? 'cpu' : gpu.software ? 'emulated' : 'gpu';
  // A browser without storage measures each time.
  const kept = (await loadSetting(database, key).catch(() => undefined)) as Paces | undefined;
  return { key, kind, kept, paces: { ...kept } };
}

/** Milliseconds between two estimates where nothing happens, and at least. */
const [tickMs, leastMs] = [1000, 250];

/**
 * Tells how far one run is, with its events and once a second. What is measured is kept in this browser, for the
 * engines of the studio and of a serving tab.
 */
export class RunEstimate {
  #saidAt = 0;
  readonly #timer = setInterval(() => this.#say(), tickMs);

  private constructor(
    readonly known: Awaited<ReturnType<typeof knownPaces>>,
    readonly estimator: RunEstimator,
    readonly report: (event: ProgressEvent) => void,
    /** Whether it is known what an earlier run has done; until then nothing is said. */
    public knowsStart: boolean,
  ) {}

  /** Starts with what was measured on this device, if anything was. */
  static async open(
    { parameters, device, continuation, model: id, before, options }: EngineRequest,
    run: Pick<CountedRun, 'sampling' | 'frames' | 'optimises'> & { readonly model: VideoModel },
    control: RunControl,
    report: (event: ProgressEvent) => void,
  ): Promise<RunEstimate> {
    const gpu = device.backend === 'webgpu' ? await probeDevice() : null;
    const known = await knownPaces(gpu, device, id);
    const { manifest } = run.model;
    const stages = stagesOf(
      {
        ...run,
        manifest,
        counts: run.model,
        // How many latent frames an earlier video has is not read yet; it hardly counts.
        join: joinOf(manifest, before && keptLatents),
        size: parameters.size,
        finishing: parameters,
        decodesOnly: continuation === 'finish' || continuation === 'refine',
        checkedFrames: options.safetyChecker ? sampledFrames(run.frames).length : 0,
      },
      known.kind,
    );
    const finishing = () => control.finishing || continuation === 'finish';
    const estimator = new RunEstimator(stages, known.paces, finishing);
    const phase = run.optimises ? 'optimise' : 'load';
    estimator.take({ type: 'phase', phase, clip: 0, clips: 1 });
    return new RunEstimate(known, estimator, report, continuation !== 'resume');
  }

  /** Call it with each event before it is reported. */
  take(event: ProgressEvent): void {
    // The checkpoint is told before the first plan.
    if (event.type === 'plan') this.knowsStart = true;
    if (!this.estimator.take(event)) return;
    const isRare = event.type === 'phase' || event.type === 'step' || event.type === 'paused';
    if (isRare || performance.now() - this.#saidAt >= leastMs) this.#say();
  }

  /** What the kernels were measured at, where no run has found it: FLOP/s of each family. */
  expectKernels({ compute, kernels }: Pick<Backend, 'compute' | 'kernels'>): void {
    if (!kernels || !compute) return;
    const { paces, kind } = this.known;
    const linear = compute.rates.get(kernels.fastLinear ? 'fastLinear' : 'linear');
    const { fastAttention, matrixAttention } = kernels;
    const attention = compute.rates.get(
      fastAttention ? 'fastAttention' : matrixAttention ? 'matrixAttention' : 'attention',
    );
    const convolution = compute.rates.get(
      kernels.matrixConvolution ? 'matrixConvolution' : 'convolution',
    );
    const { operation } = usualRates[kind];
    // About half of the work of denoising is attention.
    if (linear && attention) paces.denoise ??= (0.5 / linear + 0.5 / attention) / operation;
    if (convolution) paces.decode ??= 1 / convolution / operation;
  }

  /** Remembers what was measured. A full disk loses no video: then it is measured again. */
  async keep(): Promise<void> {
    const { key, kept } = this.known;
    const paces = { ...kept, ...this.estimator.measured() };
    await saveSetting(database, key, paces).catch(() => undefined);
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #say(): void {
    if (!this.knowsStart) return;
    this.#saidAt = performance.now();
    this.report({ type: 'estimate', ...this.estimator.current() });
  }
}
