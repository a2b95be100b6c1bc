import {
  type Backend,
  type DeviceTensor,
  type Executor,
  type GraphSizes,
  openExecutor,
  Scope,
} from '../../gpu';
import { Graph, memoised, weightedSum } from '../../graph';
import type { Evaluation, Scheduler } from './scheduler';

type Tensor = DeviceTensor<'float32'>;

/** Without a corrector the sample stays: nothing else counts. */
const uncorrected = { last: 0, current: 0, previous: 0, beforePrevious: 0 };

/**
 * Guidance and what one evaluation of the model does to the latents:
 *
 *     v = v_u + g·(v_c − v_u)                                  classifier-free guidance
 *     m_i = x_i − σ_i·v                                        prediction of the clean latents
 *     x_i ← corrected from x_last, m_i, m_{i−1}, m_{i−2}       UniPC's corrector
 *     x_{i+1} = predicted from x_i, m_i, m_{i−1}, and fresh noise ε in stochastic samplers
 *
 * Every line is a weighted sum (see `Coefficients`), the first two are one: so the same graph runs every
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

/** The sizes on which the graph of a step runs. */
export function stepSizes(rows: number): GraphSizes {
  return { chunks: [], sizes: { R: rows }, classed: new Set(), ranks: new Map() };
}

/** Inputs of the memory count of a sampling. */
export type SolverForm = Pick<Scheduler, 'stochastic' | 'evaluations'> & {
  /** Whether there is a second branch. */
  readonly guided: boolean;
};

/**
 * What a sampler has on the device, all f32: a run takes it, and the memory plan counts it. The state before a step
 * stays until the step is computed for certain, so that more evaluations need spares.
 */
export function solverSizes(
  latents: readonly number[],
  { guided, stochastic, evaluations }: SolverForm,
) {
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
    ...(evaluations > 1 && {
      spare_corrected: latents,
      spare_next: latents,
      spare_prediction: latents,
    }),
    ...(evaluations > 2 && { spare_before: latents }),
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

/** Tensors of a {@link SolverState}. */
type StateTensors = Readonly<Record<'sample' | 'last' | 'previous' | 'before', Tensor>>;

interface Committed {
  readonly step: number;
  readonly tensors: StateTensors;
}

/** The sampler's state on the device: latents, their history and the velocities of a step. */
export class Solver {
  readonly #scope: Scope;
  readonly #graph: Graph;
  /** Those that x_i and x_last are among, and those that m_{i−1} and m_{i−2} are among. */
  readonly #samples: readonly Tensor[];
  readonly #predictions: readonly Tensor[];
  #state: StateTensors;
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
    const { stochastic, evaluations } = scheduler;
    this.#graph = stepGraph(guided, stochastic, width);
    try {
      const form = { guided, stochastic, evaluations };
      const sizes = solverSizes([first.length / width, width], form);
      const tensors = scope.all(sizes, 'latents', {
        sample: first,
        last: state?.last,
        previous: state?.previous,
        before: state?.before,
      });
      const { sample, last, corrected, next, previous, before, prediction } = tensors;
      this.#samples = present(
        sample,
        last,
        corrected,
        next,
        tensors.spare_corrected,
        tensors.spare_next,
      );
      this.#predictions = present(
        previous,
        before,
        prediction,
        tensors.spare_prediction,
        tensors.spare_before,
      );
      this.#state = { sample, last, previous, before };
      this.conditional = tensors.conditional;
      this.unconditional = tensors.unconditional ?? null;
      this.#noise = tensors.noise ?? null;
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
    return this.#state.sample;
  }

  /** The latest prediction of the clean latents, m_i; after the last step it is the result. */
  get prediction(): Tensor {
    return this.#state.previous;
  }

  /**
   * Takes the velocities of an evaluation, which lie in `conditional` and `unconditional`.
   *
   * @param noise standard normal values, where the evaluation adds noise
   * @param guidanceScale 1 leaves `unconditional` out; that of the sampling when absent
   * @throws TypeError where noise is needed and absent
   */
  async apply(
    evaluation: Evaluation,
    noise?: Float32Array,
    guidanceScale = this.guidanceScale,
  ): Promise<void> {
    const { sigma, correct, predict } = evaluation;
    const {
      last: lastFactor,
      current,
      previous: previousFactor,
      beforePrevious,
    } = correct ?? uncorrected;
    const guidance = this.unconditional ? guidanceScale : 1;
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
    if (this.#noise && predict.noise !== 0) {
      if (!noise) throw new TypeError('The evaluation needs noise.');
      this.backend.write(this.#noise, noise);
    }
    const { sample, last, previous, before } = this.#state;
    const used = [...Object.values(this.#state), ...Object.values(this.#committed?.tensors ?? {})];
    const [corrected, next] = this.#samples.filter((tensor) => !used.includes(tensor));
    const prediction = this.#predictions.find((tensor) => !used.includes(tensor));
    if (!corrected || !next || !prediction) throw new TypeError('a step has too many evaluations');
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
    this.#state = { sample: next, last: corrected, previous: prediction, before: previous };
  }

  /**
   * Marks the present state as valid: all steps before `step` are computed, since their result was
   * read. The evaluations of the next step do not overwrite the tensors of this state.
   */
  commit(step: number): void {
    this.#committed = { step, tensors: this.#state };
  }

  /**
   * Reads the state of the last {@link commit}; null before the first.
   *
   * @param previous m_{i−1}, where it has been read already
   */
  async save(previous?: Float32Array): Promise<SolverState | null> {
    if (!this.#committed) return null;
    const { step, tensors } = this.#committed;
    const { backend } = this;
    const [sample, last, before, read] = await backend.collect([
      backend.stage(tensors.sample),
      backend.stage(tensors.last),
      backend.stage(tensors.before),
      previous ?? backend.stage(tensors.previous),
    ]);
    return { step, sample, last, previous: read, before };
  }

  dispose(): void {
    this.executor.dispose();
    this.#scope.dispose();
  }
}

const present = (...tensors: readonly (Tensor | undefined)[]) =>
  tensors.filter((tensor) => tensor !== undefined);
