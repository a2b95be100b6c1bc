/** Limits of EasyCache. */
export interface EasyCacheOptions {
  readonly steps: number;
  /** Largest relative change of the output that reused steps may sum up to. */
  readonly threshold: number;
  /** Share of the steps that are computed first. */
  readonly computedShare: number;
}

/** What {@link EasyCache} knows after a step. */
export interface EasyCacheState {
  /** Input of the latest step. */
  readonly previous: Float32Array;
  /** Input and outputs of the latest computed step, by branch. */
  readonly input: Float32Array;
  readonly outputs: readonly Float32Array[];
  /** mean |Δout| / mean |Δx| between the last two computed steps; null before the second. */
  readonly slope: number | null;
  /** What reused steps have summed up to. */
  readonly error: number;
}

/**
 * Decides at each step whether the model's output can be reused, by EasyCache (Zhou et al.,
 * arXiv:2507.02860; `easycache_generate.py` of H-EmbodVis/EasyCache). It needs no calibration: how much
 * the output changes with the input is measured at the last two computed steps.
 *
 * A reused output is `x + (out' − x')` with input x' and output out' of the last computed step. The branch
 * under the prompt decides for both.
 */
export class EasyCache {
  /** Input of the step before. */
  #previous: Float32Array | null = null;
  /** Input and outputs of the last computed step, by branch. */
  #computed: { readonly input: Float32Array; readonly outputs: readonly Float32Array[] } | null =
    null;
  /** mean |Δout| / mean |Δx| between the last two computed steps. */
  #slope: number | null = null;
  #error = 0;

  /** @param state where an earlier one was left */
  constructor(
    readonly options: EasyCacheOptions,
    state: EasyCacheState | null = null,
  ) {
    if (!state) return;
    const { previous, input, outputs, slope, error } = state;
    this.#previous = previous;
    this.#computed = { input, outputs };
    this.#slope = slope;
    this.#error = error;
  }

  /** The state after the latest step; null before the first. */
  get state(): EasyCacheState | null {
    if (!this.#previous || !this.#computed) return null;
    return {
      previous: this.#previous,
      ...this.#computed,
      slope: this.#slope,
      error: this.#error,
    };
  }

  /**
   * The outputs of a step where they may be reused, by branch; null where the step has to be computed.
   * Call it once for each step, in order.
   *
   * @param step from 0
   * @param input latents of the step
   * @param branches how many outputs are wanted
   */
  reuse(step: number, input: Float32Array, branches: number): Float32Array[] | null {
    const previous = this.#previous;
    this.#previous = input;
    const reused = this.#mayReuse(step, input, previous, branches);
    if (!reused) this.#error = 0;
    return reused;
  }

  /** Takes what was computed at a step. */
  keep(input: Float32Array, outputs: readonly Float32Array[]): void {
    const last = this.#computed;
    const [output] = outputs;
    const [before] = last?.outputs ?? [];
    if (last && output && before) {
      this.#slope = meanChange(output, before) / meanChange(input, last.input);
    }
    this.#computed = { input, outputs };
  }

  #mayReuse(
    step: number,
    input: Float32Array,
    previous: Float32Array | null,
    branches: number,
  ): Float32Array[] | null {
    const { steps, computedShare, threshold } = this.options;
    const computed = this.#computed;
    if (step < Math.ceil(computedShare * steps) || step === steps - 1) return null;
    if (!computed || !previous || this.#slope === null) return null;
    const [output] = computed.outputs;
    if (!output || computed.outputs.length < branches) return null;
    this.#error += (this.#slope * meanChange(input, previous)) / meanSize(output);
    if (!(this.#error < threshold)) return null;
    return computed.outputs
      .slice(0, branches)
      .map((out) => input.map((x, i) => x + (out[i] as number) - (computed.input[i] as number)));
  }
}

function meanChange(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += Math.abs((a[i] as number) - (b[i] as number));
  return sum / a.length;
}

function meanSize(values: Float32Array): number {
  let sum = 0;
  for (const value of values) sum += Math.abs(value);
  return sum / values.length;
}
