import {
  type Code,
  defineFunction,
  f32,
  f32x4,
  i32,
  i32x4,
  type Local,
  repeatWhile,
  select,
  v128,
} from './assembler';
import {
  acrossLanes,
  addSums,
  advance,
  block,
  bytesOf,
  clear,
  floats,
  nibblesOf,
  tree,
  vectors,
} from './idioms';

/*
 * The inner loops of the conversion. JavaScript needs 5 ns to quantise a weight, these 0.6 (8 bits) to
 * 1.7 ns (4 bits); a gigabit line brings a weight of Q4_K every 4.5 ns, and it has to be decoded too.
 *
 * Each function converts one or more blocks and adds Σ error² and Σ w² to the two f64 at `sumsAddress`.
 * NaN and infinity need no test of their own: they make the second sum NaN.
 */

/**
 * A block whose largest magnitude is below this counts as zeros: f32 cannot hold its reciprocal. Half
 * floats, and so all GGML types, cannot even express it.
 */
const smallest = 2 ** -100;

/** 1.5·2²³: adding it rounds a small f32 to an integer, which then lies in the low bits. */
const roundingBias = 12_582_912;

const eight = [0, 1, 2, 3, 4, 5, 6, 7] as const;

/** f32 → 8 bits: scale = max|w| / 127. */
export const quantise8 = defineFunction('quantise8', block, (args, declare) => {
  const [source, values, scales, count] = args;
  const x = eight.map(() => declare('v128'));
  const [unit, error, norm, inverse, temporary] = vectors(declare);
  const largest = declare('f32');
  const usable = declare('i32');
  const [bias, mask] = vectors(declare);
  const body = [
    ...x.flatMap((lane, k) => lane.set(v128.load(source.get, 16 * k))),
    ...unit.set(
      tree(
        f32x4.pmax,
        x.map((lane) => f32x4.abs(lane.get)),
      ),
    ),
    ...largest.set(f32x4.first(acrossLanes(unit, f32x4.pmax))),
    ...usable.set(f32.atLeast(largest.get, f32.const(smallest))),
    ...unit.set(f32x4.splat(f32.div(largest.get, f32.const(127)))),
    ...f32.store(scales.get, select(f32x4.first(unit.get), f32.const(0), usable.get)),
    ...inverse.set(
      f32x4.splat(select(f32.div(f32.const(127), largest.get), f32.const(0), usable.get)),
    ),
    ...clear(error),
    ...clear(norm),
    // From here on in units of the scale, so that squares neither overflow nor vanish.
    ...x.flatMap((lane) => [
      ...lane.set(f32x4.mul(lane.get, inverse.get)),
      ...norm.set(f32x4.add(norm.get, f32x4.mul(lane.get, lane.get))),
      ...temporary.set(f32x4.add(lane.get, bias.get)),
      ...lane.set(f32x4.sub(lane.get, f32x4.sub(temporary.get, bias.get))),
      ...error.set(f32x4.add(error.get, f32x4.mul(lane.get, lane.get))),
      ...lane.set(v128.and(temporary.get, mask.get)),
    ]),
    ...[0, 1].flatMap((half) => v128.store(values.get, 16 * half, bytesOf(x, half))),
    ...addSums(unit, error, norm),
    ...advance(source, 128),
    ...advance(values, 32),
    ...advance(scales, 4),
    ...advance(count, -1),
  ];
  return [
    ...bias.set(floats(roundingBias + 128)),
    ...mask.set(i32x4.splat(i32.const(255))),
    ...repeatWhile(count.get, body),
  ];
});

/**
 * How much finer than (extreme value)/−8 the scales are that the 4-bit quantiser tries. It keeps the
 * one whose integers fit best, and then takes the scale that suits these integers by least squares.
 * Against the first alone (GGML's Q4_0) the RMS error of normally distributed weights falls by 5 %,
 * that of Q4_K by 10 %.
 */
const fineness = [1, 8.49 / 8, 7.5 / 8] as const;

/** f32 → 4 bits. */
export const quantise4 = defineFunction('quantise4', block, (args, declare) => {
  const [source, values, scales, count] = args;
  const x = eight.map(() => declare('v128'));
  const q = eight.map(() => declare('v128'));
  const [unit, error, norm, low, high] = vectors(declare);
  const [product, square, score, bestScore, bestRatio] = vectors(declare);
  const best = declare('v128');
  const extreme = declare('f32');
  const usable = declare('i32');
  const [seven, bias, mask] = vectors(declare);
  const fines = fineness.map(() => declare('v128'));
  const rounded = (lane: Local, scale: Code) =>
    f32x4.sub(f32x4.add(f32x4.pmin(f32x4.mul(lane.get, scale), seven.get), bias.get), bias.get);
  const body = [
    ...x.flatMap((lane, k) => lane.set(v128.load(source.get, 16 * k))),
    ...low.set(
      tree(
        f32x4.pmin,
        x.map((lane) => lane.get),
      ),
    ),
    ...high.set(
      tree(
        f32x4.pmax,
        x.map((lane) => lane.get),
      ),
    ),
    ...low.set(acrossLanes(low, f32x4.pmin)),
    ...high.set(acrossLanes(high, f32x4.pmax)),
    // Not `select`: it becomes a branch, and this one is a coin toss.
    ...high.set(
      v128.choose(high.get, low.get, f32x4.greater(high.get, f32x4.sub(floats(0), low.get))),
    ),
    ...extreme.set(f32x4.first(high.get)),
    ...usable.set(f32.atLeast(f32.abs(extreme.get), f32.const(smallest))),
    ...unit.set(f32x4.splat(f32.mul(extreme.get, f32.const(-1 / 8)))),
    ...low.set(f32x4.splat(select(f32.div(f32.const(-8), extreme.get), f32.const(0), usable.get))),
    ...clear(norm),
    ...x.flatMap((lane) => [
      ...lane.set(f32x4.mul(lane.get, low.get)),
      ...norm.set(f32x4.add(norm.get, f32x4.mul(lane.get, lane.get))),
    ]),
    ...bestScore.set(floats(-1)),
    ...fines.flatMap((fine) => [
      ...q.flatMap((target, k) => target.set(rounded(x[k] as Local, fine.get))),
      ...product.set(
        tree(
          f32x4.add,
          q.map((target, k) => f32x4.mul(target.get, (x[k] as Local).get)),
        ),
      ),
      ...square.set(
        tree(
          f32x4.add,
          q.map((target) => f32x4.mul(target.get, target.get)),
        ),
      ),
      ...product.set(acrossLanes(product, f32x4.add)),
      // At least 1, so that a block of zeros does not divide by zero.
      ...square.set(f32x4.pmax(floats(1), acrossLanes(square, f32x4.add))),
      ...square.set(f32x4.div(product.get, square.get)),
      ...score.set(f32x4.mul(product.get, square.get)),
      ...high.set(f32x4.greater(score.get, bestScore.get)),
      ...bestScore.set(v128.choose(score.get, bestScore.get, high.get)),
      ...bestRatio.set(v128.choose(square.get, bestRatio.get, high.get)),
      ...best.set(v128.choose(fine.get, best.get, high.get)),
    ]),
    ...f32.store(
      scales.get,
      select(f32.mul(f32x4.first(unit.get), f32x4.first(bestRatio.get)), f32.const(0), usable.get),
    ),
    ...clear(error),
    ...x.flatMap((lane, k) => {
      const target = q[k] as Local;
      return [
        ...target.set(rounded(lane, best.get)),
        ...high.set(f32x4.sub(lane.get, f32x4.mul(target.get, bestRatio.get))),
        ...error.set(f32x4.add(error.get, f32x4.mul(high.get, high.get))),
        ...target.set(v128.and(f32x4.add(target.get, bias.get), mask.get)),
      ];
    }),
    ...v128.store(values.get, 0, nibblesOf(bytesOf(q, 0), bytesOf(q, 1), low, high)),
    ...addSums(unit, error, norm),
    ...advance(source, 128),
    ...advance(values, 16),
    ...advance(scales, 4),
    ...advance(count, -1),
  ];
  return [
    ...seven.set(floats(7)),
    ...bias.set(floats(roundingBias + 8)),
    ...mask.set(i32x4.splat(i32.const(15))),
    ...fines.flatMap((fine, i) => fine.set(floats(fineness[i] as number))),
    ...repeatWhile(count.get, body),
  ];
});
