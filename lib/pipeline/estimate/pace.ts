import type { Rate, Rates, UsualRate } from './rates';
import type { Cost, Stage } from './stages';

/** Pieces of work of which the median is taken: a few, so that a device that becomes slower is seen. */
const latest = 5;

/** How fast one cost goes in a run: what was expected, until it was measured. */
export class Pace {
  /** What this run has found; before that, what was expected. */
  rate: Rate;
  /** Seconds per unit of the latest pieces, without the first, which has the startup in it. */
  readonly #pieces: number[] = [];
  #first: { readonly work: number; readonly seconds: number } | null = null;

  /** @param isKnown whether the rate was measured, in this run or an earlier one; else it is what is usual */
  constructor(
    rate: Rate,
    public isKnown: boolean,
    readonly usual: Rate = rate,
  ) {
    this.rate = rate;
  }

  get isMeasured(): boolean {
    return this.#first !== null;
  }

  /** Seconds before the next unit. */
  get startupLeft(): number {
    return this.#first ? 0 : this.rate.startup;
  }

  /** Some work was done. @param expected the rate that the estimate had for it */
  take(piece: { readonly work: number; readonly seconds: number }, expected: Rate): void {
    if (!this.#first) {
      this.#first = piece;
      this.rate = afterFirst(expected, this.isKnown, piece);
    } else {
      this.#pieces.push(piece.seconds / piece.work);
      if (this.#pieces.length > latest) this.#pieces.shift();
      const perUnit = medianOf(this.#pieces);
      const startup = Math.max(0, this.#first.seconds - perUnit * this.#first.work);
      this.rate = { perUnit, startup };
    }
    this.isKnown = true;
  }
}

/**
 * Less than was expected is less startup, as where kernels are compiled already. More is more of both, in
 * the same proportion.
 */
function afterFirst(rate: Rate, known: boolean, first: { work: number; seconds: number }): Rate {
  const ofWork = rate.perUnit * first.work;
  const rest = first.seconds - ofWork;
  if (known && rest >= 0 && rest < rate.startup) return { perUnit: rate.perUnit, startup: rest };
  const expected = rate.startup + ofWork;
  const factor = expected > 0 ? first.seconds / expected : 1;
  return { perUnit: rate.perUnit * factor, startup: rate.startup * factor };
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

/** The paces before a run. */
export function pacesBefore(
  stages: readonly Stage[],
  usual: Readonly<Record<Cost, UsualRate>>,
  remembered: Rates,
): Record<Cost, Pace> {
  const paces = Object.entries(usual).map(([name, rate]) => {
    const cost = name as Cost;
    const expected = withCalls(rate, cost, stages);
    const known = remembered[cost];
    return [cost, new Pace(known ?? expected, known !== undefined, expected)] as const;
  });
  return Object.fromEntries(paces) as Record<Cost, Pace>;
}

/** A rate that has the calls and pixels of all work of its cost in its units. */
function withCalls(
  { perUnit, startup, perCall = 0, perPixel = 0 }: UsualRate,
  cost: Cost,
  stages: readonly Stage[],
): Rate {
  let [units, seconds] = [0, 0];
  for (const { total, calls = 0, pixels = 0 } of stages.filter((stage) => stage.cost === cost)) {
    units += total;
    seconds += perCall * calls + perPixel * pixels;
  }
  return { startup, perUnit: perUnit + (units > 0 ? seconds / units : 0) };
}
