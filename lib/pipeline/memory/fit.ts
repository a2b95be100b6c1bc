import { KinoraError, type MemoryReport } from '../../contract';
import { type Backend, probeBudget } from '../../gpu';
import { DenoiseInterrupted } from '../denoise';
import { type MemoryPlan, type MemoryPlanner, memoryReport, type StageName } from './memory-plan';

/** The CPU's memory does not hold a clip in tiles: a smaller plan of the device's would not help. */
export class MainMemoryExhausted extends KinoraError {
  constructor(bytes: number, cause: RangeError) {
    const mebibytes = Math.ceil(bytes / 2 ** 20).toLocaleString('en');
    super(
      'OUT_OF_MEMORY',
      `Decoding in tiles takes ${mebibytes} MiB of main memory, and the browser gave less.`,
      {
        cause,
        remedy:
          'Close other tabs and programs, make a shorter video, or allow more GPU memory so that whole frames are decoded.',
      },
    );
  }
}

/** A stage that failed with this many bytes is tried again with this share of them. */
const shrinkBy = 0.9;
/** It is not known how far a failed decode came, so it shrinks by more. */
const shrinkDecodeBy = 0.75;

/** Keeps a run within the memory of its device: the plan in force, and smaller ones where it fails. */
export class MemoryFit {
  #plan: MemoryPlan;
  /** The budget of the denoising since it ran out of memory. */
  #denoiseBudget = Number.POSITIVE_INFINITY;
  #replans = 0;

  private constructor(
    readonly backend: Backend,
    readonly planner: MemoryPlanner,
    readonly budget: number,
    readonly budgetSet: boolean,
    readonly onPlan: (memory: MemoryReport, plan: MemoryPlan) => void,
  ) {
    this.#plan = planner.fit(budget);
    onPlan(this.report, this.#plan);
  }

  /**
   * Makes the first plan.
   *
   * @param budget bytes to keep to, `probe` to ask the device or keep to main memory, or all that the full plan wants
   * @throws KinoraError `OUT_OF_MEMORY` with both numbers where nothing fits
   */
  static async create(
    backend: Backend,
    planner: MemoryPlanner,
    budget: number | 'probe' | undefined,
    onPlan: (memory: MemoryReport, plan: MemoryPlan) => void,
  ): Promise<MemoryFit> {
    const fullPeak = planner.full.peak;
    let most = fullPeak;
    if (typeof budget === 'number') most = budget;
    else if (budget === 'probe' && backend.mainMemory < fullPeak) {
      // The browser's figure is capped, or a guess: it makes a run smaller, but refuses no run.
      most = Math.max(backend.mainMemory, planner.least.peak);
    } else if (budget === 'probe') most = await probeBudget(backend, fullPeak);
    return new MemoryFit(backend, planner, most, typeof budget === 'number', onPlan);
  }

  get plan(): MemoryPlan {
    return this.#plan;
  }

  get report(): MemoryReport {
    return memoryReport(this.#plan, this.budget, this.#replans, this.budgetSet);
  }

  /** Frees the sessions of earlier stages where this stage would not fit beside them. */
  async freeSessionsFor(stage: StageName): Promise<void> {
    const needed = stageOf(this.#plan, stage).peak;
    const { liveBytes } = this.backend.counters();
    const budget = stage === 'denoise' ? Math.min(this.budget, this.#denoiseBudget) : this.budget;
    if (liveBytes + needed > budget) await this.backend.releaseSessions();
  }

  /**
   * Replans with less memory for denoising, after it ran out of memory. The plan of the decode stays:
   * tiles would change the result, and the decode may fit all the same.
   *
   * @throws the given error, where it is another one or no smaller plan exists
   */
  async shrink(error: unknown): Promise<void> {
    const reason = error instanceof DenoiseInterrupted ? error.cause : error;
    const { peak } = stageOf(this.#plan, 'denoise');
    const live = error instanceof DenoiseInterrupted ? error.liveBytes : peak;
    await this.#recover(reason);
    const budget = Math.floor(shrinkBy * Math.min(live, peak));
    // The budget may be below the smallest plan, which is still smaller than the one that failed.
    const plan = this.planner.withDenoise(this.#plan, budget);
    const smaller = stageOf(plan, 'denoise').peak;
    if (smaller >= peak) throw reason;
    this.#denoiseBudget = Math.max(budget, smaller);
    this.#adopt(plan);
  }

  /**
   * Replans with smaller tiles, after the decode ran out of memory.
   *
   * @throws the given error, where it is another one or no smaller tiles exist
   */
  async shrinkDecode(error: unknown): Promise<void> {
    const { peak } = stageOf(this.#plan, 'decode');
    await this.#recover(error);
    const tiles = this.planner.tilesWithin(Math.floor(shrinkDecodeBy * peak));
    const plan = this.planner.withTiles(this.#plan, tiles ?? this.planner.least.tiles);
    if (stageOf(plan, 'decode').peak >= peak) throw error;
    this.#adopt(plan);
  }

  async #recover(reason: unknown): Promise<void> {
    if (reason instanceof MainMemoryExhausted) throw reason;
    if (!(reason instanceof KinoraError) || reason.code !== 'OUT_OF_MEMORY') throw reason;
    await this.backend.recover();
  }

  #adopt(plan: MemoryPlan): void {
    this.#plan = plan;
    this.#replans += 1;
    this.onPlan(this.report, plan);
  }
}

function stageOf(plan: MemoryPlan, stage: StageName) {
  const stagePlan = plan.stages.find((each) => each.stage === stage);
  if (!stagePlan) throw new TypeError(`the plan lacks ${stage}`);
  return stagePlan;
}
