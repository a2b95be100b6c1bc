import type { Rate } from './rates';

/** What is known of the rate of one cost while a run goes on. */
export interface Pace extends Rate {
  /** Whether it was measured, in this run or an earlier one; else it is what is usual. */
  readonly known: boolean;
  /** The first unit, which has the startup in it; null before. */
  readonly first: Measured | null;
  /** All later units, for the next run. */
  readonly later: Measured;
  /** The latest units, of which `perUnit` is the mean. */
  readonly recent: Measured;
}

interface Measured {
  readonly work: number;
  readonly seconds: number;
}

const nothing: Measured = { work: 0, seconds: 0 };

/** The pace before a run. @param known see {@link Pace.known} */
export function paceOf(rate: Rate, known: boolean): Pace {
  return { ...rate, known, first: null, later: nothing, recent: nothing };
}

/** Seconds that some work takes, with the startup where nothing of it was done yet. */
export function secondsFor(pace: Pace, work: number): number {
  return (pace.first ? 0 : pace.startup) + pace.perUnit * work;
}

/** Share of all work that the mean of the latest units looks back, and weight of what was known before. */
const window = 0.15;
const knownWeight = 0.1;

/**
 * The pace after some work was done.
 *
 * @param total all work of its kind in the stage
 */
export function paceAfter(pace: Pace, done: Measured, total: number): Pace {
  if (!pace.first) return afterFirst(pace, done);
  const before =
    pace.recent.work > 0
      ? pace.recent
      : weighted(pace.perUnit, pace.known ? knownWeight * total : 0);
  const kept = Math.exp(-done.work / Math.max(window * total, 2 * done.work));
  const recent = plus({ work: kept * before.work, seconds: kept * before.seconds }, done);
  const perUnit = recent.seconds / recent.work;
  return { ...pace, known: true, perUnit, recent, later: plus(pace.later, done) };
}

/**
 * Less than was expected is less startup, as where kernels are compiled already. More is more of both, in
 * the same proportion.
 */
function afterFirst(pace: Pace, first: Measured): Pace {
  const expected = secondsFor(pace, first.work);
  const rest = first.seconds - pace.perUnit * first.work;
  const isFaster = first.seconds < expected && rest >= 0 && pace.known;
  const factor = isFaster || expected === 0 ? 1 : first.seconds / expected;
  const startup = isFaster ? rest : pace.startup * factor;
  return { ...pace, known: true, first, startup, perUnit: pace.perUnit * factor };
}

/** What a run measured, to be remembered; null where the work was not done. */
export function measuredRate({ first, later, perUnit, startup }: Pace): Rate | null {
  if (!first) return null;
  if (later.work === 0) return { perUnit, startup };
  const mean = later.seconds / later.work;
  return { perUnit: mean, startup: Math.max(0, first.seconds - mean * first.work) };
}

function weighted(perUnit: number, work: number): Measured {
  return { work, seconds: perUnit * work };
}

function plus(a: Measured, b: Measured): Measured {
  return { work: a.work + b.work, seconds: a.seconds + b.seconds };
}
