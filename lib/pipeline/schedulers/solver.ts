import {
  type Backend,
  type DeviceTensor,
  type Executor,
  type GraphSizes,
  openExecutor,
  Scope,
} from '../../gpu';
import { Graph, memoised, weightedSum } from '../../graph';
import type { Scheduler } from './scheduler';

type Tensor = DeviceTensor<'float32'>;

/** A step without a corrector keeps its sample: nothing else counts. */
const uncorrected = { last: 0, current: 0, previous: 0, beforePrevious: 0 };

/**
 * Guidance and one step of the scheduler:
 *
 *     v = v_u + g·(v_c − v_u)                                  classifier-free guidance
 *     m_i = x_i − σ_i·v                                        prediction of the clean latents
 *     x_i ← corrected from x_last, m_i, m_{i−1}, m_{i−2}       UniPC's corrector
 *     x_{i+1} = predicted from x_i, m_i, m_{i−1}, and fresh noise ε in stochastic samplers
 *
 * Every line is a weighted sum (see {@link StepCoefficients}), the first two are one: so the same graph runs every
 * sampler, first step and last, with guidance and without; only a stochastic one has an input for noise.
 */
export const stepGraph = memoised((guided: boolean, stochastic: boolean, width: number) => {
  const g = new Graph('step');
  const tensor = (name: string) => g.input(name, ['R', width]);
  const sample = tensor('sample'); // x_i
  const last = tensor('last'); // x_last
  const previous = tensor('previous'); // m_{i−1}
  const before = tensor('before'); // m_{i−2}
  const prediction = weightedSum(
    [1, sample],
    ['conditional_factor', tensor('conditional')], // v_c
    ...(guided ? [['unconditional_factor', tensor('unconditional')] as const] : []), // v_u
  );
  const corrected = weightedSum(
    ['keep', sample],
    ['correct_last', last],
    ['correct_current', prediction],
    ['correct_previous', previous],
    ['correct_before', before],
  );
  const next = weightedSum(
    ['predict_sample', corrected],
    ['predict_current', prediction],
    ['predict_previous', previous],
    ...(stochastic ? [['predict_noise', tensor('noise')] as const] : []),
  );
  g.output('prediction', prediction);
  g.output('corrected', corrected);
  g.output('next', next);
  return g;
});

/** What the graph of a step is run on. */
export function stepSizes(rows: number): GraphSizes {
  return { chunks: [], sizes: { R: rows }, classed: new Set(), ranks: new Map() };
}

/** What a sampler has on the device, all f32: a run takes it, and the memory plan counts it. */
export function solverSizes(latents: readonly number[], guided: boolean, stochastic: boolean) {
  return {
    sample: latents,
    last: latents,
    corrected: latents,
    next: latents,
    previous: latents,
    before: latents,
    prediction: latents,
    conditional: latents,
    ...(guided && { unconditional: latents }),
    ...(stochastic && { noise: latents }),
  };
}

/** The state of a sampling on the CPU: enough to continue it bit for bit. */
export interface SolverState {
  /** The next step. */
  readonly step: number;
  /** x_i */
  readonly sample: Float32Array;
  /** x_last */
  readonly last: Float32Array;
  /** m_{i−1} */
  readonly previous: Float32Array;
  /** m_{i−2} */
  readonly before: Float32Array;
}

interface Committed {
  readonly step: number;
  readonly tensors: Readonly<Record<'sample' | 'last' | 'previous' | 'before', Tensor>>;
}

/** The sampler's state on the device: latents, their history and the velocities of a step. */
export class Solver {
  readonly #scope: Scope;
  readonly #graph: Graph;
  /** x_i, x_last and two spares. */
  #samples: readonly [Tensor, Tensor, Tensor, Tensor];
  /** m_{i−1}, m_{i−2} and a spare. */
  #predictions: readonly [Tensor, Tensor, Tensor];
  readonly conditional: Tensor;
  readonly unconditional: Tensor | null;
  /** Fresh noise of a step. */
  readonly #noise: Tensor | null;
  /** The latest state that the device computed for certain. */
  #committed: Committed | null = null;

  private constructor(
    readonly backend: Backend,
    readonly executor: Executor,
    readonly scheduler: Scheduler,
    readonly guidanceScale: number,
    start: Float32Array | SolverState,
    readonly width: number,
  ) {
    const scope = new Scope(backend);
    this.#scope = scope;
    const state = start instanceof Float32Array ? null : start;
    const first = start instanceof Float32Array ? start : start.sample;
    const guided = guidanceScale > 1;
    const { stochastic } = scheduler;
    this.#graph = stepGraph(guided, stochastic, width);
    try {
      const sizes = solverSizes([first.length / width, width], guided, stochastic);
      const made = scope.all(sizes, 'latents', {
        sample: first,
        last: state?.last,
        previous: state?.previous,
        before: state?.before,
      });
      this.#samples = [made.sample, made.last, made.corrected, made.next];
      this.#predictions = [made.previous, made.before, made.prediction];
      this.conditional = made.conditional;
      this.unconditional = made.unconditional ?? null;
      this.#noise = made.noise ?? null;
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  /**
   * Takes the memory of a sampling.
   *
   * @param guidanceScale 1 means one branch only
   * @param start x_0, [rows, width], or where an earlier sampling was left
   * @throws KinoraError `OUT_OF_MEMORY`; then it holds none
   */
  static async open(
    backend: Backend,
    scheduler: Scheduler,
    guidanceScale: number,
    start: Float32Array | SolverState,
    width: number,
  ): Promise<Solver> {
    const { length } = start instanceof Float32Array ? start : start.sample;
    const graph = stepGraph(guidanceScale > 1, scheduler.stochastic, width);
    const executor = await openExecutor(backend, [graph], stepSizes(length / width));
    return new Solver(backend, executor, scheduler, guidanceScale, start, width);
  }

  /** The current latents x_i, [rows, width]. */
  get sample(): Tensor {
    return this.#samples[0];
  }

  /** The latest prediction of the clean latents, m_i; after the last step it is the result. */
  get prediction(): Tensor {
    return this.#predictions[0];
  }

  /** Whether step `i` takes fresh noise. */
  wantsNoise(i: number): boolean {
    return this.scheduler.step(i).predict.noise !== 0;
  }

  /**
   * Takes step `i` with the velocities that lie in `conditional` and `unconditional`.
   *
   * @param noise standard normal values for the step; not used where {@link wantsNoise} says so
   * @param guided whether the step takes `unconditional` into account, where there is one
   * @throws TypeError where noise is wanted and absent
   */
  async step(i: number, noise?: Float32Array, guided = true): Promise<void> {
    const { sigma, correct, predict } = this.scheduler.step(i);
    const {
      last: lastFactor,
      current,
      previous: previousFactor,
      beforePrevious,
    } = correct ?? uncorrected;
    const guidance = guided && this.unconditional ? this.guidanceScale : 1;
    const factors = {
      conditional_factor: -sigma * guidance,
      unconditional_factor: -sigma * (1 - guidance),
      keep: correct ? 0 : 1,
      correct_last: lastFactor,
      correct_current: current,
      correct_previous: previousFactor,
      correct_before: beforePrevious,
      predict_sample: predict.sample,
      predict_current: predict.current,
      predict_previous: predict.previous,
      predict_noise: predict.noise,
    };
    if (this.#noise && this.wantsNoise(i)) {
      if (!noise) throw new TypeError(`Step ${i} needs noise.`);
      this.backend.write(this.#noise, noise);
    }
    const [sample, last, corrected, next] = this.#samples;
    const [previous, before, prediction] = this.#predictions;
    const { conditional, unconditional } = this;
    await this.executor.run(this.#graph, {
      sample,
      last,
      previous,
      before,
      conditional,
      prediction,
      corrected,
      next,
      ...(unconditional && { unconditional }),
      ...(this.#noise && { noise: this.#noise }),
      ...factors,
    });
    this.#samples = [next, corrected, last, sample];
    this.#predictions = [prediction, previous, before];
  }

  /**
   * Marks the present state as valid: all steps before `step` are computed, since their result was
   * read. The next step does not overwrite the tensors of this state.
   */
  commit(step: number): void {
    const [sample, last] = this.#samples;
    const [previous, before] = this.#predictions;
    this.#committed = { step, tensors: { sample, last, previous, before } };
  }

  /**
   * Reads the state of the last {@link commit}; null before the first.
   *
   * @param previous m_{i−1}, where it has been read already
   */
  async save(previous?: Float32Array): Promise<SolverState | null> {
    if (!this.#committed) return null;
    const { step, tensors } = this.#committed;
    return {
      step,
      sample: await this.backend.read(tensors.sample),
      last: await this.backend.read(tensors.last),
      previous: previous ?? (await this.backend.read(tensors.previous)),
      before: await this.backend.read(tensors.before),
    };
  }

  dispose(): void {
    this.executor.dispose();
    this.#scope.dispose();
  }
}
