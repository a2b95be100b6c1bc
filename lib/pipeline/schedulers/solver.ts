import { type Backend, type DeviceTensor, Scope } from '../../gpu';
import { add, type Graph, GraphBuilder, mul, sub, type Value } from '../../onnx';
import type { Scheduler } from './scheduler';

type Tensor = DeviceTensor<'float32'>;

/** The scalars of a step; each is a tensor [1] that is rewritten every step. */
const coefficientNames = [
  'guidance',
  'sigma',
  'keep',
  'correct_last',
  'correct_current',
  'correct_previous',
  'correct_before',
  'predict_sample',
  'predict_current',
  'predict_previous',
  'predict_noise',
] as const;
type CoefficientName = (typeof coefficientNames)[number];

/** A step without a corrector keeps its sample: nothing else counts. */
const uncorrected = { last: 0, current: 0, previous: 0, beforePrevious: 0 };

/**
 * Guidance and one step of the scheduler as a graph over n elements:
 *
 *     v = v_u + g·(v_c − v_u)                                  classifier-free guidance
 *     m_i = x_i − σ_i·v                                        prediction of the clean latents
 *     x_i ← corrected from x_last, m_i, m_{i−1}, m_{i−2}       UniPC's corrector
 *     x_{i+1} = predicted from x_i, m_i, m_{i−1}, and fresh noise ε in stochastic samplers
 *
 * Every line is a linear combination (see {@link StepCoefficients}), so the same graph runs every sampler,
 * first step and last; only a stochastic one has an input for noise.
 */
export function stepGraph(guided: boolean, stochastic: boolean, width: number): Graph {
  const g = new GraphBuilder(`${guided ? 'guided-' : ''}${stochastic ? 'stochastic-' : ''}step`);
  const tensor = (name: string) => g.input(name, 'float32', ['S', width]);
  const scalar = (name: CoefficientName) => g.input(name, 'float32', [1]);
  const sum = (terms: readonly (readonly [CoefficientName, Value<'float32'>])[]) =>
    terms.map(([name, value]) => mul(value, scalar(name))).reduce((a, b) => add(a, b));

  const sample = tensor('sample'); // x_i
  const last = tensor('last'); // x_last
  const previous = tensor('previous'); // m_{i−1}
  const before = tensor('before'); // m_{i−2}
  const conditional = tensor('conditional'); // v_c
  let velocity = conditional;
  if (guided) {
    const unconditional = tensor('unconditional'); // v_u
    velocity = add(unconditional, mul(sub(conditional, unconditional), scalar('guidance')));
  }
  const prediction = sub(sample, mul(velocity, scalar('sigma')));
  const corrected = sum([
    ['keep', sample],
    ['correct_last', last],
    ['correct_current', prediction],
    ['correct_previous', previous],
    ['correct_before', before],
  ]);
  const next = sum([
    ['predict_sample', corrected],
    ['predict_current', prediction],
    ['predict_previous', previous],
    ...(stochastic ? ([['predict_noise', tensor('noise')]] as const) : []),
  ]);
  g.output('prediction', prediction);
  g.output('corrected', corrected);
  g.output('next', next);
  return g.build();
}

/** What a sampler has on the device, all f32: a run takes it, and the memory plan counts it. */
export function solverSizes(latents: readonly number[], guided: boolean, stochastic: boolean) {
  const unused = [guided ? '' : 'guidance', stochastic ? '' : 'predict_noise'];
  const used = coefficientNames.filter((name) => !unused.includes(name));
  const scalar: readonly number[] = [1];
  return {
    tensors: {
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
    },
    coefficients: Object.fromEntries(used.map((name) => [name, scalar])) as Record<
      CoefficientName,
      typeof scalar
    >,
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
  /** Without guidance, for steps that leave it out. */
  readonly #plainGraph: Graph;
  readonly #coefficients: Readonly<Record<CoefficientName, Tensor>>;
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

  /**
   * @param start x_0, [rows, width], or where an earlier sampling was left
   * @param guidanceScale 1 means one branch only
   * @throws KinoraError `OUT_OF_MEMORY`; then it holds none
   */
  constructor(
    readonly backend: Backend,
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
    this.#plainGraph = stepGraph(false, stochastic, width);
    try {
      const sizes = solverSizes([first.length / width, width], guided, stochastic);
      const made = scope.all(sizes.tensors, 'latents', {
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
      this.#coefficients = scope.all(sizes.coefficients, 'latents');
    } catch (error) {
      scope.dispose();
      throw error;
    }
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
    const values: Record<CoefficientName, number> = {
      guidance: this.guidanceScale,
      sigma,
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
    for (const [name, tensor] of Object.entries(this.#coefficients)) {
      this.backend.write(tensor, Float32Array.of(values[name as CoefficientName]));
    }
    const [sample, last, corrected, next] = this.#samples;
    const [previous, before, prediction] = this.#predictions;
    const inputs = { sample, last, previous, before, conditional: this.conditional };
    const isGuided = guided && this.unconditional !== null;
    const unconditional =
      isGuided && this.unconditional ? { unconditional: this.unconditional } : {};
    const { guidance, ...plain } = this.#coefficients;
    const fresh = this.#noise ? { noise: this.#noise } : {};
    await this.backend.run(
      isGuided ? this.#graph : this.#plainGraph,
      { ...inputs, ...unconditional, ...fresh, ...plain, ...(isGuided && { guidance }) },
      { prediction, corrected, next },
    );
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
    this.#scope.dispose();
  }
}
