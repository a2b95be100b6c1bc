import { at } from '../../contract';
import {
  access,
  assemble,
  type Code,
  doWhile,
  extractLane,
  type FunctionSource,
  f32,
  i32,
  instantiate,
  op,
  splat,
  type Variable,
} from '../../wasm/assembler';

/*
 * Kernels for the CPU, made for the images that they read: how far neighbouring pixels lie apart is a constant of the
 * instructions. An image is [H, W, C] in f32, with channels filled up to whole groups and a border of zeros.
 */

/** Filters that a tile computes together: two vectors. Channels of images are multiples of it. */
export const groupSize = 8;

/** Pixels of tiles. Larger ones would need more than the 16 registers of x86. */
const tilesOf = { fused: [6, 4, 2, 1], plain: [4, 2, 1] } as const;

/** Whether products are added without rounding between; it changes the last bits. */
export type Arithmetic = keyof typeof tilesOf;

/** What the compiled module of {@link compileKernels} does. All addresses are in bytes. */
interface Exports {
  readonly [tiles: `tiles${number}`]: (
    segments: number,
    count: number,
    length: number,
    offset: number,
    weights: number,
    bias: number,
    output: number,
    outputStep: number,
    side: number,
    sideStep: number,
    tiles: number,
    floor: number,
  ) => void;
}

/** Rows of pixels that are convolved. Addresses and steps in bytes. */
export interface Row {
  /** Addresses of runs of neighbouring values that a pixel is made of, for the first pixel of the first row. */
  readonly segments: number;
  readonly count: number;
  /** Fours of values of a run. */
  readonly length: number;
  /** Of the first pixel of this row from that of the first one. */
  readonly offset: number;
  /** Filters of a group, [values, 8], and what is added to them. */
  readonly weights: number;
  readonly bias: number;
  readonly output: number;
  readonly outputStep: number;
  /** What is added to each pixel. */
  readonly side: number;
  readonly sideStep: number;
  readonly pixels: number;
  /** Least result. */
  readonly floor: number;
}

/** A module that validates only where the engine has `f32x4.relaxed_madd`. */
function relaxedProbe(): Uint8Array<ArrayBuffer> {
  const zero = splat('f32', 0);
  const product = op('f32x4.relaxed_madd', zero, zero, zero);
  const body: FunctionSource['body'] = (_, local) => [local('v128').set(product)];
  return assemble([{ name: 'probe', parameters: [], body }]);
}

let known: Arithmetic | undefined;

/** What this engine computes with. */
export function usualArithmetic(): Arithmetic {
  known ??= WebAssembly.validate(relaxedProbe()) ? 'fused' : 'plain';
  return known;
}

/** Kernels that read pixels which lie so many bytes apart. */
export class ConvolutionKernels {
  readonly #exports: Exports;
  readonly #tiles: readonly number[];
  readonly #step: number;

  constructor(memory: WebAssembly.Memory, step: number, arithmetic: Arithmetic) {
    this.#step = step;
    this.#tiles = tilesOf[arithmetic];
    const functions = this.#tiles.map((pixels) => tiles(pixels, step, arithmetic));
    this.#exports = instantiate(functions, memory);
  }

  /** One group of filters of a row. */
  run({ pixels, offset, output, side, ...row }: Row): void {
    let done = 0;
    for (const size of this.#tiles) {
      const count = Math.floor((pixels - done) / size);
      if (count === 0) continue;
      this.#exports[`tiles${size}`]?.(
        row.segments,
        row.count,
        row.length,
        offset + done * this.#step,
        row.weights,
        row.bias,
        output + done * row.outputStep,
        row.outputStep,
        side + done * row.sideStep,
        row.sideStep,
        count,
        row.floor,
      );
      done += count * size;
    }
  }
}

const vectors = [0, 1] as const;
/** Counts down; the count is left as an operand. */
const next = (variable: Variable) => variable.tee(op('i32.sub', variable.get, i32(1)));

/** `y = max(bias + side + Σ runs·weights, floor)` of tiles of neighbouring pixels, 8 filters each. */
function tiles(pixels: number, step: number, arithmetic: Arithmetic): FunctionSource {
  return {
    name: `tiles${pixels}`,
    parameters: [...Array.from({ length: 11 }, () => 'i32' as const), 'f32'],
    body: (parameters, local) => {
      const parameter = (index: number) => at(parameters, index);
      const [segments, count, length, offset] = [0, 1, 2, 3].map(parameter) as Four;
      const [weights, bias, output, outputStep] = [4, 5, 6, 7].map(parameter) as Four;
      const [side, sideStep, left, floor] = [8, 9, 10, 11].map(parameter) as Four;
      const [weight, segment, runs, x] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const values = local('i32');
      const filters = vectors.map(() => local('v128'));
      const [value, least] = [local('v128'), local('v128')];
      const sums = Array.from({ length: pixels }, () => vectors.map(() => local('v128')));
      const product = (sum: Variable, filter: Variable) =>
        arithmetic === 'fused'
          ? op('f32x4.relaxed_madd', value.get, filter.get, sum.get)
          : op('f32x4.add', op('f32x4.mul', value.get, filter.get), sum.get);
      const each = (address: Variable, step: Variable, code: (sum: Variable, v: number) => Code) =>
        sums.flatMap((pair) => [
          ...pair.map(code),
          address.set(op('i32.add', address.get, step.get)),
        ]);
      const load = (address: Variable, bytes: number) => access('v128.load', [address.get], bytes);
      const multiply = (k: number) => [
        ...filters.map((filter, v) => filter.set(load(weight, 32 * k + 16 * v))),
        ...sums.flatMap((pair, pixel) => [
          value.set(access('v128.load32_splat', [x.get], pixel * step + 4 * k)),
          ...pair.map((sum, v) => sum.set(product(sum, at(filters, v)))),
        ]),
      ];
      const run = doWhile(
        [...[0, 1, 2, 3].flatMap(multiply), weight.increase(128), x.increase(16)],
        next(values),
      );
      const start = op('i32.add', access('i32.load', [segment.get]), offset.get);
      const tile = [
        ...filters.map((filter, v) => filter.set(load(bias, 16 * v))),
        ...each(side, sideStep, (sum, v) =>
          sum.set(op('f32x4.add', at(filters, v).get, load(side, 16 * v))),
        ),
        ...[weight.set(weights.get), segment.set(segments.get), runs.set(count.get)],
        doWhile([x.set(start), values.set(length.get), run, segment.increase(4)], next(runs)),
        ...each(output, outputStep, (sum, v) =>
          access('v128.store', [output.get, op('f32x4.max', sum.get, least.get)], 16 * v),
        ),
        offset.increase(pixels * step),
      ];
      return [least.set(op('f32x4.splat', floor.get)), doWhile(tile, next(left))];
    },
  };
}
type Four = [Variable, Variable, Variable, Variable];

/** `silu(x / max(‖x‖₂, 1e-12) · √C · γ)` of pixels that follow one another; γ is zero where channels are filled up. */
export function normKernel(
  memory: WebAssembly.Memory,
): (x: number, y: number, pixels: number, fours: number, gamma: number, share: number) => void {
  const source: FunctionSource = {
    name: 'norm',
    parameters: ['i32', 'i32', 'i32', 'i32', 'i32', 'f32'],
    body: (parameters, local) => {
      const [x, y, pixels, fours] = [0, 1, 2, 3].map((i) => at(parameters, i)) as Four;
      const [gamma, share] = [at(parameters, 4), at(parameters, 5)];
      const [from, factors, left] = [local('i32'), local('i32'), local('i32')];
      const [value, squares, scale] = [local('v128'), local('v128'), local('v128')];
      const load = (address: Variable) => access('v128.load', [address.get]);
      const lanes = [0, 1, 2, 3].map((lane) => extractLane(squares.get, lane));
      const total = lanes.reduce((a, b) => op('f32.add', a, b));
      const mean = op('f32.add', op('f32.mul', total, share.get), f32(1e-24));
      const { code, result } = silu(value, local);
      return [
        doWhile(
          [
            ...[from.set(x.get), left.set(fours.get), squares.set(splat('f32', 0))],
            doWhile(
              [
                value.set(load(from)),
                squares.set(op('f32x4.add', squares.get, op('f32x4.mul', value.get, value.get))),
                from.increase(16),
              ],
              next(left),
            ),
            scale.set(op('f32x4.splat', op('f32.div', f32(1), op('f32.sqrt', mean)))),
            ...[factors.set(gamma.get), left.set(fours.get)],
            doWhile(
              [
                value.set(op('f32x4.mul', op('f32x4.mul', load(x), scale.get), load(factors))),
                ...code,
                access('v128.store', [y.get, result]),
                ...[x.increase(16), y.increase(16), factors.increase(16)],
              ],
              next(left),
            ),
          ],
          next(pixels),
        ),
      ];
    },
  };
  return instantiate<{ readonly norm: ReturnType<typeof normKernel> }>([source], memory).norm;
}

/** e^r for |r| ≤ ln 2 / 2, as its series: the error is below 2⁻²⁴. The highest power first. */
const series = [1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1, 1];
/** ln 2 in two parts, the first of which has few bits: products with small integers are exact. */
const ln2 = [0.693359375, -2.1219444005469e-4] as const;

/** `x / (1 + e^-x)` of a vector. */
function silu(x: Variable, local: (type: 'v128') => Variable) {
  const [exponent, whole, power] = [local('v128'), local('v128'), local('v128')];
  const [f, times, minus] = [
    (value: number) => splat('f32', value),
    (a: Code, b: Code) => op('f32x4.mul', a, b),
    (a: Code, b: Code) => op('f32x4.sub', a, b),
  ];
  const clamped = op('f32x4.min', op('f32x4.max', op('f32x4.neg', x.get), f(-87)), f(87));
  const rest = minus(minus(exponent.get, times(whole.get, f(ln2[0]))), times(whole.get, f(ln2[1])));
  // 2ⁿ as bits.
  const biased = op('i32x4.add', op('i32x4.trunc_sat_f32x4_s', whole.get), splat('i32', 127));
  const code = [
    exponent.set(clamped),
    whole.set(op('f32x4.nearest', times(exponent.get, f(Math.LOG2E)))),
    exponent.set(rest),
    power.set(f(at(series, 0))),
    ...series
      .slice(1)
      .map((term) => power.set(op('f32x4.add', times(power.get, exponent.get), f(term)))),
    power.set(times(power.get, op('i32x4.shl', biased, i32(23)))),
  ];
  return { code, result: op('f32x4.div', x.get, op('f32x4.add', f(1), power.get)) };
}
