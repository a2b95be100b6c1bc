import { at } from '../../contract';
import {
  access,
  assemble,
  type Code,
  doWhile,
  type FunctionSource,
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
    factors: number,
    groups: number,
    weightStep: number,
    factorStep: number,
    sideGroup: number,
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
  /** What the sums of a group are multiplied by, before the side is added; all groups share it where the step is 0. */
  readonly factors: number;
  readonly factorStep: number;
  /** Groups of 8 filters that lie side by side in the output, the step between their weights and their sides. */
  readonly groups: number;
  readonly weightStep: number;
  readonly sideGroup: number;
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

  /** Groups of filters of a row. */
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
        row.factors,
        row.groups,
        row.weightStep,
        row.factorStep,
        row.sideGroup,
      );
      done += count * size;
    }
  }
}

const vectors = [0, 1] as const;
/** Bytes of the filters of a group that read one value, and of its results. */
const groupBytes = 4 * groupSize;
/** Counts down; the count is left as an operand. */
export const next = (variable: Variable) => variable.tee(op('i32.sub', variable.get, i32(1)));

/** `a·b + c` of vectors. */
export function multiplyAdd(arithmetic: Arithmetic): (a: Code, b: Code, c: Code) => Code {
  return arithmetic === 'fused'
    ? (a, b, c) => op('f32x4.relaxed_madd', a, b, c)
    : (a, b, c) => op('f32x4.add', op('f32x4.mul', a, b), c);
}

/** `y = max((bias + Σ runs·weights)·factors + side, floor)` of tiles of neighbouring pixels, 8 filters each. */
function tiles(pixels: number, step: number, arithmetic: Arithmetic): FunctionSource {
  const sum = multiplyAdd(arithmetic);
  return {
    name: `tiles${pixels}`,
    parameters: Array.from({ length: 17 }, (_, i) => (i === 11 ? 'f32' : 'i32')),
    body: (parameters, local) => {
      const parameter = (index: number) => at(parameters, index);
      const [segments, count, length, offset] = [0, 1, 2, 3].map(parameter) as Four;
      const [weights, bias, output, outputStep] = [4, 5, 6, 7].map(parameter) as Four;
      const [side, sideStep, tileCount, floor] = [8, 9, 10, 11].map(parameter) as Four;
      const [factors, groups, weightStep, factorStep] = [12, 13, 14, 15].map(parameter) as Four;
      const sideGroup = parameter(16);
      const [weight, segment, runs, x] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const [start, from, to, left] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const values = local('i32');
      const filters = vectors.map(() => local('v128'));
      const [value, least] = [local('v128'), local('v128')];
      const sums = Array.from({ length: pixels }, () => vectors.map(() => local('v128')));
      const load = (address: Variable, bytes: number) => access('v128.load', [address.get], bytes);
      const add = (variable: Variable, by: Variable) =>
        variable.set(op('i32.add', variable.get, by.get));
      const multiply = (k: number) => [
        ...filters.map((filter, v) => filter.set(load(weight, groupBytes * k + 16 * v))),
        ...sums.flatMap((pair, pixel) => [
          value.set(access('v128.load32_splat', [x.get], pixel * step + 4 * k)),
          ...pair.map((total, v) => total.set(sum(value.get, at(filters, v).get, total.get))),
        ]),
      ];
      const run = doWhile(
        [...[0, 1, 2, 3].flatMap(multiply), weight.increase(4 * groupBytes), x.increase(16)],
        next(values),
      );
      const result = (total: Variable, v: number) =>
        op('f32x4.pmax', sum(total.get, at(filters, v).get, load(from, 16 * v)), least.get);
      const tile = [
        ...filters.map((filter, v) => filter.set(load(bias, 16 * v))),
        ...sums.flatMap((pair) => pair.map((total, v) => total.set(at(filters, v).get))),
        ...[weight.set(weights.get), segment.set(segments.get), runs.set(count.get)],
        doWhile(
          [
            x.set(op('i32.add', access('i32.load', [segment.get]), start.get)),
            ...[values.set(length.get), run, segment.increase(4)],
          ],
          next(runs),
        ),
        ...filters.map((filter, v) => filter.set(load(factors, 16 * v))),
        ...sums.flatMap((pair) => [
          ...pair.map((total, v) => access('v128.store', [to.get, result(total, v)], 16 * v)),
          ...[add(from, sideStep), add(to, outputStep)],
        ]),
        start.increase(pixels * step),
      ];
      const group = [
        ...[start.set(offset.get), from.set(side.get), to.set(output.get)],
        ...[left.set(tileCount.get), doWhile(tile, next(left))],
        ...[add(weights, weightStep), add(factors, factorStep), add(side, sideGroup)],
        ...[bias.increase(groupBytes), output.increase(groupBytes)],
      ];
      return [least.set(op('f32x4.splat', floor.get)), doWhile(group, next(groups))];
    },
  };
}
export type Four = [Variable, Variable, Variable, Variable];
