import { at } from '../../contract';
import {
  access,
  assemble,
  type Code,
  call,
  doWhile,
  extractLane,
  type FunctionSource,
  f32,
  i32,
  op,
  splat,
  type Variable,
  when,
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

/**
 * Words of a job that convolves rows of pixels, in bytes: addresses, and how far things lie apart. A part is a row; each
 * group of filters passes over it.
 */
const rowWords = [
  /** Addresses of runs of neighbouring values that a pixel is made of, for the first pixel of the first row. */
  'segments',
  'count',
  /** Fours of values of a run. */
  'length',
  /** From a row to the next, of what is read, written and added. */
  'row',
  'outputRow',
  'sideRow',
  /** Filters of groups, [values, 8], and what is added to them. */
  'weights',
  'group',
  'groups',
  'bias',
  'output',
  'outputStep',
  /** What is added to each pixel, and how far the pixels and the groups of it lie apart. */
  'side',
  'sideStep',
  'sideGroup',
  'pixels',
  /** Least and largest result, as bits. */
  'floor',
  'ceiling',
] as const;
export type Rows = Readonly<Record<(typeof rowWords)[number], number>>;

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

/** A job of a {@link convolutionKernel}. */
export const wordsOf = (rows: Rows): readonly number[] => rowWords.map((name) => rows[name]);

/** Convolves rows of pixels that lie so many bytes apart. */
export function convolutionKernel(step: number, arithmetic: Arithmetic): readonly FunctionSource[] {
  const sizes = tilesOf[arithmetic];
  return [...sizes.map((pixels) => tiles(pixels, step, arithmetic)), rowOfTiles(sizes, step)];
}

/** A row of pixels by each group of filters, in tiles as large as possible. The functions of tiles come before it. */
function rowOfTiles(sizes: readonly number[], step: number): FunctionSource {
  return {
    name: 'part',
    parameters: ['i32', 'i32'],
    body: ([job, line], local) => {
      if (!job || !line) throw new TypeError('A part has two parameters.');
      const given = (name: keyof Rows) => access('i32.load', [job.get], 4 * rowWords.indexOf(name));
      const limit = (name: keyof Rows) => access('f32.load', [job.get], 4 * rowWords.indexOf(name));
      const add = (a: Code, b: Code) => op('i32.add', a, b);
      const times = (a: Code, b: Code) => op('i32.mul', a, b);
      const [group, weights, bias, offset] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const [output, side, x, y] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const [z, left, count] = [local('i32'), local('i32'), local('i32')];
      const run = (index: number, size: number) =>
        when(count.tee(op('i32.div_u', left.get, i32(size))), [
          call(
            index,
            ...[given('segments'), given('count'), given('length'), x.get],
            ...[weights.get, bias.get, y.get, given('outputStep'), z.get, given('sideStep')],
            ...[count.get, limit('floor'), limit('ceiling')],
          ),
          count.set(times(count.get, i32(size))),
          left.set(op('i32.sub', left.get, count.get)),
          x.set(add(x.get, times(count.get, i32(step)))),
          y.set(add(y.get, times(count.get, given('outputStep')))),
          z.set(add(z.get, times(count.get, given('sideStep')))),
        ]);
      return [
        offset.set(times(line.get, given('row'))),
        output.set(add(given('output'), times(line.get, given('outputRow')))),
        side.set(add(given('side'), times(line.get, given('sideRow')))),
        ...[weights.set(given('weights')), bias.set(given('bias')), group.set(given('groups'))],
        doWhile(
          [
            ...[left.set(given('pixels')), x.set(offset.get), y.set(output.get), z.set(side.get)],
            ...sizes.map((size, index) => run(index, size)),
            weights.set(add(weights.get, given('group'))),
            side.set(add(side.get, given('sideGroup'))),
            ...[bias.increase(4 * groupSize), output.increase(4 * groupSize)],
          ],
          next(group),
        ),
      ];
    },
  };
}

/** `a·b + c` of vectors. */
function multiplyAdd(arithmetic: Arithmetic, a: Code, b: Code, c: Code): Code {
  if (arithmetic === 'fused') return op('f32x4.relaxed_madd', a, b, c);
  return op('f32x4.add', op('f32x4.mul', a, b), c);
}

/** A vector between a least and a largest value. */
const between = (value: Code, least: Variable, most: Variable) =>
  op('f32x4.min', op('f32x4.max', value, least.get), most.get);

const vectors = [0, 1] as const;
/** Counts down; the count is left as an operand. */
const next = (variable: Variable) => variable.tee(op('i32.sub', variable.get, i32(1)));

/** `y = min(max(bias + side + Σ runs·weights, floor), ceiling)` of tiles of neighbouring pixels, 8 filters each. */
function tiles(pixels: number, step: number, arithmetic: Arithmetic): FunctionSource {
  return {
    name: `tiles${pixels}`,
    parameters: [...Array.from({ length: 11 }, () => 'i32' as const), 'f32', 'f32'],
    body: (parameters, local) => {
      const parameter = (index: number) => at(parameters, index);
      const [segments, count, length, offset] = [0, 1, 2, 3].map(parameter) as Four;
      const [weights, bias, output, outputStep] = [4, 5, 6, 7].map(parameter) as Four;
      const [side, sideStep, left, floor] = [8, 9, 10, 11].map(parameter) as Four;
      const ceiling = parameter(12);
      const [weight, segment, runs, x] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const values = local('i32');
      const filters = vectors.map(() => local('v128'));
      const [value, least, most] = [local('v128'), local('v128'), local('v128')];
      const sums = Array.from({ length: pixels }, () => vectors.map(() => local('v128')));
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
          ...pair.map((sum, v) =>
            sum.set(multiplyAdd(arithmetic, value.get, at(filters, v).get, sum.get)),
          ),
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
          access('v128.store', [output.get, between(sum.get, least, most)], 16 * v),
        ),
        offset.increase(pixels * step),
      ];
      return [
        least.set(op('f32x4.splat', floor.get)),
        most.set(op('f32x4.splat', ceiling.get)),
        doWhile(tile, next(left)),
      ];
    },
  };
}
type Four = [Variable, Variable, Variable, Variable];

/** Words of a job that filters each channel of rows of pixels; addresses as of {@link Rows}. */
const filterWords = [
  /** The first pixel that the filter of the first pixel sees, and from a row of the result's to the next. */
  'x',
  'row',
  /** Between the rows of the image, and the pixels that filters of neighbouring pixels begin at. */
  'line',
  'step',
  /** [9, C], and what is added to each channel. */
  'weights',
  'bias',
  'output',
  'outputRow',
  'pixels',
  'floor',
  'ceiling',
] as const;
export type FilterRows = Readonly<Record<(typeof filterWords)[number], number>>;

/** A job of a {@link depthwiseKernel}. */
export const filterWordsOf = (rows: FilterRows): readonly number[] =>
  filterWords.map((name) => rows[name]);

/** A 3×3 filter for each channel of images with pixels of so many bytes. */
export function depthwiseKernel(size: number, arithmetic: Arithmetic): FunctionSource {
  return {
    name: 'part',
    parameters: ['i32', 'i32'],
    body: ([job, index], local) => {
      if (!job || !index) throw new TypeError('A part has two parameters.');
      const place = (name: keyof FilterRows) => 4 * filterWords.indexOf(name);
      const word = (name: keyof FilterRows) => access('i32.load', [job.get], place(name));
      const add = (a: Code, b: Code) => op('i32.add', a, b);
      const offset = (name: keyof FilterRows) => op('i32.mul', index.get, word(name));
      const [x, y, pixels, fours] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const [from, row, weights, bias] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const [sum, least, most] = [local('v128'), local('v128'), local('v128')];
      const load = (address: Variable, bytes = 0) => access('v128.load', [address.get], bytes);
      const taps = [0, 1, 2].flatMap((line) => [
        ...[0, 1, 2].map((column) =>
          sum.set(
            multiplyAdd(
              arithmetic,
              load(row, column * size),
              load(weights, (3 * line + column) * size),
              sum.get,
            ),
          ),
        ),
        row.set(add(row.get, word('line'))),
      ]);
      const channels = doWhile(
        [
          ...[sum.set(load(bias)), row.set(from.get), ...taps],
          access('v128.store', [y.get, between(sum.get, least, most)]),
          ...[from, weights, bias, y].map((address) => address.increase(16)),
        ],
        next(fours),
      );
      return [
        least.set(op('f32x4.splat', access('f32.load', [job.get], place('floor')))),
        most.set(op('f32x4.splat', access('f32.load', [job.get], place('ceiling')))),
        x.set(add(word('x'), offset('row'))),
        y.set(add(word('output'), offset('outputRow'))),
        pixels.set(word('pixels')),
        doWhile(
          [
            ...[weights.set(word('weights')), bias.set(word('bias')), from.set(x.get)],
            ...[fours.set(i32(size / 16)), channels],
            x.set(add(x.get, word('step'))),
          ],
          next(pixels),
        ),
      ];
    },
  };
}

/** Words of a job that norms rows of pixels: where a row of the image and of the result begins, as {@link Rows}. */
const normWords = [
  'x',
  'y',
  'row',
  'pixels',
  /** Fours of channels. */
  'fours',
  'gamma',
  /** 1 / C, as bits. */
  'share',
] as const;
export type NormRows = Readonly<Record<(typeof normWords)[number], number>>;

/** A job of a {@link normKernel}. */
export const normWordsOf = (rows: NormRows): readonly number[] =>
  normWords.map((name) => rows[name]);

/** `silu(x / max(‖x‖₂, 1e-12) · √C · γ)` of pixels that follow one another; γ is zero where channels are filled up. */
export function normKernel(): FunctionSource {
  return {
    name: 'part',
    parameters: ['i32', 'i32'],
    body: ([job, line], local) => {
      if (!job || !line) throw new TypeError('A part has two parameters.');
      const word = (name: keyof NormRows) =>
        access('i32.load', [job.get], 4 * normWords.indexOf(name));
      const [x, y, pixels, from] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const [factors, left, offset] = [local('i32'), local('i32'), local('i32')];
      const [value, squares, scale] = [local('v128'), local('v128'), local('v128')];
      const load = (address: Variable) => access('v128.load', [address.get]);
      const lanes = [0, 1, 2, 3].map((lane) => extractLane(squares.get, lane));
      const total = lanes.reduce((a, b) => op('f32.add', a, b));
      const mean = op(
        'f32.add',
        op('f32.mul', total, access('f32.load', [job.get], 4 * normWords.indexOf('share'))),
        f32(1e-24),
      );
      const { code, result } = silu(value, local);
      return [
        offset.set(op('i32.mul', line.get, word('row'))),
        x.set(op('i32.add', word('x'), offset.get)),
        y.set(op('i32.add', word('y'), offset.get)),
        pixels.set(word('pixels')),
        doWhile(
          [
            ...[from.set(x.get), left.set(word('fours')), squares.set(splat('f32', 0))],
            doWhile(
              [
                value.set(load(from)),
                squares.set(op('f32x4.add', squares.get, op('f32x4.mul', value.get, value.get))),
                from.increase(16),
              ],
              next(left),
            ),
            scale.set(op('f32x4.splat', op('f32.div', f32(1), op('f32.sqrt', mean)))),
            ...[factors.set(word('gamma')), left.set(word('fours'))],
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
