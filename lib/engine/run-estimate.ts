import {
  type DeviceOptions,
  type DeviceReport,
  type EngineRequest,
  type ProgressEvent,
  usualKernels,
} from '../contract';
import type { RunOptions } from '../contract/run';
import { probeDevice } from '../gpu';
import { joinOf, keptLatents } from '../pipeline/clips';
import type { RunControl } from '../pipeline/control';
import { type Paces, RunEstimator } from '../pipeline/estimate/estimator';
import { type CountedRun, stagesOf } from '../pipeline/estimate/stages';
import type { VideoModel } from '../pipeline/model';
import { KinoraDatabase } from '../predictions/database';
import { loadSetting, saveSetting } from '../predictions/settings';
import { sampledFrames } from '../safety/check';

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
  // A browser without storage measures each time.
  const kept = (await loadSetting(database, key).catch(() => undefined)) as Paces | undefined;
  return { key, paces: kept ?? {} };
}

/** The stages of a run on a device. @param gpu null for the CPU */
export function stagesOn(
  gpu: DeviceReport | null,
  { safetyChecker }: RunOptions,
  run: Omit<CountedRun, 'checkedFrames'>,
) {
  const checkedFrames = safetyChecker ? sampledFrames(run.frames).length : 0;
  return stagesOf({ ...run, checkedFrames }, !gpu ? 'cpu' : gpu.software ? 'emulated' : 'gpu');
}

/**
 * Tells how far one run is, with its phases and steps and once a second. What is measured is kept in this browser,
 * for the engines of the studio and of a serving tab.
 */
export class RunEstimate {
  readonly #timer = setInterval(() => this.#say(), 1000);

  private constructor(
    readonly known: Awaited<ReturnType<typeof knownPaces>>,
    readonly estimator: RunEstimator,
    readonly report: (event: ProgressEvent) => void,
    /** Whether it is known what an earlier run has done; until then nothing is said. */
    public knowsStart: boolean,
  ) {}

  /** Starts with what was measured on this device, if anything was. */
  static async open(
    { parameters, device, continuation, before, options }: EngineRequest,
    run: Pick<CountedRun, 'sampling' | 'frames' | 'optimises'> & { readonly model: VideoModel },
    control: RunControl,
    report: (event: ProgressEvent) => void,
  ): Promise<RunEstimate> {
    const { model } = run;
    const gpu = device.backend === 'webgpu' ? await probeDevice() : null;
    const known = await knownPaces(gpu, device, model.manifest.id);
    const stages = stagesOn(gpu, options, {
      ...run,
      manifest: model.manifest,
      counts: model,
      // How many latent frames an earlier video has is not read yet; it hardly counts.
      join: joinOf(model.manifest, before && keptLatents),
      size: parameters.size,
      finishing: parameters,
      decodesOnly: continuation === 'finish' || continuation === 'refine',
    });
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
    this.estimator.take(event);
    if (event.type === 'phase' || event.type === 'step' || event.type === 'paused') this.#say();
  }

  /** Remembers what was measured. A full disk loses no video: then it is measured again. */
  async keep(): Promise<void> {
    const { key, paces } = this.known;
    const measured = { ...paces, ...this.estimator.measured() };
    await saveSetting(database, key, measured).catch(() => undefined);
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #say(): void {
    if (this.knowsStart) this.report({ type: 'estimate', ...this.estimator.current() });
  }
}
