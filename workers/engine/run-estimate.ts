import type { Backend, ProgressEvent } from '../../lib/contract';
import { probeDevice } from '../../lib/gpu';
import {
  type DeviceClass,
  keepRates,
  RunEstimator,
  type RunWork,
  ratesFolder,
  readRates,
  stagesOf,
  usualRates,
} from '../../lib/pipeline/estimate';
import type { MemoryPlan } from '../../lib/pipeline/memory/plan';
import { opfsFolder } from '../../lib/weights/store';

/** What the estimate of a run is made with. */
export interface RunEstimateOptions {
  readonly model: string;
  readonly backend: Backend;
  readonly work: RunWork;
  readonly finishing: () => boolean;
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
  readonly #timer: ReturnType<typeof setInterval>;

  private constructor(
    readonly key: string,
    estimator: RunEstimator,
    readonly report: RunEstimateOptions['report'],
  ) {
    this.#estimator = estimator;
    this.#timer = setInterval(() => this.#say(), tickMs);
  }

  /** Starts with what was measured on this device, if anything was. */
  static async open(options: RunEstimateOptions): Promise<RunEstimate> {
    const { model, backend, work, finishing, report } = options;
    const { name, kind } = await deviceOf(backend);
    const key = `${name} | ${model}`;
    const remembered = await readRates(opfsFolder(ratesFolder), key).catch(() => ({}));
    const stages = stagesOf(work);
    const usual = usualRates[kind];
    const estimator = new RunEstimator({ stages, usual, remembered, finishing });
    return new RunEstimate(key, estimator, report);
  }

  /** Call it with each event before it is reported. */
  take(event: ProgressEvent): void {
    if (!this.#estimator.take(event)) return;
    const isRare = event.type === 'phase' || event.type === 'step' || event.type === 'paused';
    if (isRare || performance.now() - this.#saidAt >= leastMs) this.#say();
  }

  plan({ decodeWork }: MemoryPlan): void {
    this.#estimator.decodeFactor(decodeWork);
  }

  /** Times what is done with a frame after it was decoded. */
  async encoding(work: () => Promise<void>): Promise<void> {
    const begin = performance.now();
    await work();
    this.#estimator.encoded((performance.now() - begin) / 1000);
  }

  /** The check of a frame takes so many seconds, as that of the input did; 0 where none is checked. */
  expectCheck(perUnit: number): void {
    this.#estimator.expect('check', { perUnit, startup: 0 });
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
    this.#saidAt = performance.now();
    this.report({ type: 'estimate', ...this.#estimator.current() });
  }
}

async function deviceOf(backend: Backend): Promise<{ name: string; kind: DeviceClass }> {
  if (backend === 'wasm') return { name: `wasm ${navigator.hardwareConcurrency}`, kind: 'cpu' };
  const { adapter, software } = await probeDevice();
  return {
    name: ['webgpu', ...Object.values(adapter)].join(' '),
    kind: software ? 'emulated' : 'gpu',
  };
}
