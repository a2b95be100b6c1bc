import { at } from '../../contract';
import {
  access,
  assemble,
  type Code,
  call,
  doWhile,
  type FunctionSource,
  i32,
  op,
  splat,
  type Variable,
  when,
} from '../../wasm/assembler';
import type { KernelSource } from './threads';

/*
 * Kernels for the CPU, made for the images that they read: how far neighbouring pixels lie apart is a constant of the
 * instructions. An image is [H, W, C] in f32, with channels filled up to whole groups and a border of zeros.
 */

/** Filters that a tile computes together: two vectors. Channels of images are multiples of it. */
export const groupSize = 8;

/** Columns, or rows, in whole groups. */
export const fill = (count: number) => groupSize * Math.ceil(count / groupSize);

/** Pixels of tiles. Larger ones would need more than the 16 registers of x86. */
const tilesOf = { fused: [6, 4, 2, 1], plain: [4, 2, 1] } as const;

/** Whether products are added without rounding between; it changes the last bits. */
export type Arithmetic = keyof typeof tilesOf;

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

/** What a product of rows and filters is called with, in bytes: addresses, and how far things lie apart. */
const productNames = [
  /** Addresses of runs of neighbouring values that a row is made of, from the offset on. */
  'segments',
  'count',
  /** Fours of values of a run. */
  'length',
  'offset',
  /** Filters of groups, [values, 8], and what is added to their sums. */
  'weights',
  'weightStep',
  'groups',
  'bias',
  'output',
  'outputStep',
  /** What is added to each row in the end, and how far the rows and the groups of it lie apart. */
  'side',
  'sideStep',
  'sideGroup',
  'rows',
  /** Least and largest result. */
  'floor',
  'ceiling',
  /** What sums are multiplied by before; all groups share it where the step is 0. */
  'factors',
  'factorStep',
] as const;
export type ProductName = (typeof productNames)[number];
const productTypes = productNames.map((name) =>
  name === 'floor' || name === 'ceiling' ? 'f32' : 'i32',
);

/**
 * `y = min(max((bias + Σ runs·weights)·factors + side, floor), ceiling)` of rows that lie so many bytes apart.
 *
 * @param first place of the first function in the module; the product is the last one
 */
export function product(step: number, first = 0): KernelSource<ProductName> {
  const sizes = tilesOf[usualArithmetic()];
  const driver: FunctionSource = {
    name: `product ${first}`,
    parameters: productTypes,
    body: (parameters, local) => {
      const of = (name: ProductName) => at(parameters, productNames.indexOf(name));
      const add = (variable: Variable, by: Code) => variable.set(op('i32.add', variable.get, by));
      const times = (a: Code, b: Code) => op('i32.mul', a, b);
      const [x, y, z, left] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const count = local('i32');
      const given = (...names: ProductName[]) => names.map((name) => of(name).get);
      const run = (size: number, index: number) =>
        when(count.tee(op('i32.div_u', left.get, i32(size))), [
          call(
            first + index,
            ...[...given('segments', 'count', 'length'), x.get, ...given('weights', 'bias')],
            ...[y.get, ...given('outputStep'), z.get, ...given('sideStep')],
            ...[count.get, ...given('floor', 'ceiling', 'factors')],
          ),
          count.set(times(count.get, i32(size))),
          left.set(op('i32.sub', left.get, count.get)),
          add(x, times(count.get, i32(step))),
          add(y, times(count.get, of('outputStep').get)),
          add(z, times(count.get, of('sideStep').get)),
        ]);
      const group = [
        ...[x.set(of('offset').get), y.set(of('output').get), z.set(of('side').get)],
        ...[left.set(of('rows').get), ...sizes.map(run)],
        add(of('weights'), of('weightStep').get),
        add(of('factors'), of('factorStep').get),
        add(of('side'), of('sideGroup').get),
        ...[of('bias').increase(groupBytes), of('output').increase(groupBytes)],
      ];
      return [doWhile(group, next(of('groups')))];
    },
  };
  const functions = [...sizes.map((rows) => tiles(rows, step, first)), driver];
  return { functions, names: productNames };
}

const vectors = [0, 1] as const;
/** Bytes of the filters of a group that read one value, and of its results. */
const groupBytes = 4 * groupSize;
/** Counts down; the count is left as an operand. */
export const next = (variable: Variable) => variable.tee(op('i32.sub', variable.get, i32(1)));

/** `a·b + c` of vectors. */
export function multiplyAdd(a: Code, b: Code, c: Code): Code {
  return usualArithmetic() === 'fused'
    ? op('f32x4.relaxed_madd', a, b, c)
    : op('f32x4.add', op('f32x4.mul', a, b), c);
}

/** A vector between a least and a largest value. */
function between(value: Code, least: Variable, most: Variable): Code {
  return op('f32x4.pmin', op('f32x4.pmax', value, least.get), most.get);
}

/** What a filter of channels is called with, in bytes. */
const filterNames = [
  /** The first pixel that the first filter sees, how far its rows lie apart, and the pixels of neighbouring filters. */
  'x',
  'line',
  'step',
  /** [9, C], and what is added to each channel. */
  'weights',
  'bias',
  'output',
  'rows',
  'floor',
  'ceiling',
] as const;

/** A 3×3 filter for each channel of images with pixels of so many bytes. */
export function channelFilter(size: number): KernelSource<(typeof filterNames)[number]> {
  const filter: FunctionSource = {
    name: 'filter',
    parameters: filterNames.map((_, i) => (i < 7 ? 'i32' : 'f32')),
    body: (parameters, local) => {
      const [x, line, step, weights] = [0, 1, 2, 3].map((i) => at(parameters, i)) as Four;
      const [bias, y, pixels, floor] = [4, 5, 6, 7].map((i) => at(parameters, i)) as Four;
      const [from, row, weight, added] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const [fours, sum] = [local('i32'), local('v128')];
      const [least, most] = [local('v128'), local('v128')];
      const load = (address: Variable, bytes = 0) => access('v128.load', [address.get], bytes);
      const taps = [0, 1, 2].flatMap((line) =>
        [0, 1, 2].map((column) => {
          const tap = load(weight, (3 * line + column) * size);
          return sum.set(multiplyAdd(load(row, column * size), tap, sum.get));
        }),
      );
      const rows = [0, 1, 2].flatMap((index) => [
        ...taps.slice(3 * index, 3 * index + 3),
        row.set(op('i32.add', row.get, line.get)),
      ]);
      const channels = [
        ...[sum.set(load(added)), row.set(from.get), ...rows],
        access('v128.store', [y.get, between(sum.get, least, most)]),
        ...[from, weight, added, y].map((address) => address.increase(16)),
      ];
      const pixel = [
        ...[from.set(x.get), weight.set(weights.get), added.set(bias.get)],
        ...[fours.set(i32(size / 16)), doWhile(channels, next(fours))],
        x.set(op('i32.add', x.get, step.get)),
      ];
      return [
        least.set(op('f32x4.splat', floor.get)),
        most.set(op('f32x4.splat', at(parameters, 8).get)),
        doWhile(pixel, next(pixels)),
      ];
    },
  };
  return { functions: [filter], names: filterNames };
}

/** Tiles of neighbouring rows by 8 filters. */
function tiles(rows: number, step: number, first: number): FunctionSource {
  return {
    // Names differ in a module of several products.
    name: `tiles ${rows} ${first}`,
    parameters: Array.from({ length: 14 }, (_, i) => (i === 11 || i === 12 ? 'f32' : 'i32')),
    body: (parameters, local) => {
      const parameter = (index: number) => at(parameters, index);
      const [segments, count, length, offset] = [0, 1, 2, 3].map(parameter) as Four;
      const [weights, bias, output, outputStep] = [4, 5, 6, 7].map(parameter) as Four;
      const [side, sideStep, left, floor] = [8, 9, 10, 11].map(parameter) as Four;
      const [ceiling, factors] = [parameter(12), parameter(13)];
      const [weight, segment, runs, x] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const values = local('i32');
      const filters = vectors.map(() => local('v128'));
      const [value, least, most] = [local('v128'), local('v128'), local('v128')];
      const sums = Array.from({ length: rows }, () => vectors.map(() => local('v128')));
      const load = (address: Variable, bytes: number) => access('v128.load', [address.get], bytes);
      const add = (variable: Variable, by: Variable) =>
        variable.set(op('i32.add', variable.get, by.get));
      const multiply = (k: number) => [
        ...filters.map((filter, v) => filter.set(load(weight, groupBytes * k + 16 * v))),
        ...sums.flatMap((pair, row) => [
          value.set(access('v128.load32_splat', [x.get], row * step + 4 * k)),
          ...pair.map((total, v) =>
            total.set(multiplyAdd(value.get, at(filters, v).get, total.get)),
          ),
        ]),
      ];
      const run = doWhile(
        [...[0, 1, 2, 3].flatMap(multiply), weight.increase(4 * groupBytes), x.increase(16)],
        next(values),
      );
      const start = op('i32.add', access('i32.load', [segment.get]), offset.get);
      const result = (total: Variable, v: number) =>
        between(multiplyAdd(total.get, at(filters, v).get, load(side, 16 * v)), least, most);
      const tile = [
        ...filters.map((filter, v) => filter.set(load(bias, 16 * v))),
        ...sums.flatMap((pair) => pair.map((total, v) => total.set(at(filters, v).get))),
        ...[weight.set(weights.get), segment.set(segments.get), runs.set(count.get)],
        doWhile([x.set(start), values.set(length.get), run, segment.increase(4)], next(runs)),
        ...filters.map((filter, v) => filter.set(load(factors, 16 * v))),
        ...sums.flatMap((pair) => [
          ...pair.map((total, v) => access('v128.store', [output.get, result(total, v)], 16 * v)),
          ...[add(side, sideStep), add(output, outputStep)],
        ]),
        offset.increase(rows * step),
      ];
      return [
        least.set(op('f32x4.splat', floor.get)),
        most.set(op('f32x4.splat', ceiling.get)),
        doWhile(tile, next(left)),
      ];
    },
  };
}
export type Four = [Variable, Variable, Variable, Variable];
