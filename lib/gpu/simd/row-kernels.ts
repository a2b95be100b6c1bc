import { at } from '../../contract';
import {
  access,
  type Code,
  doWhile,
  extractLane,
  type FunctionSource,
  i32,
  instantiate,
  op,
  shuffle,
  splat,
  type ValueType,
  type Variable,
} from '../../wasm/assembler';
import { type Arithmetic, type Four, multiplyAdd, next } from './kernels';

/**
 * A norm of rows that follow one another: its factors, what is added (by layer norms), the share of one value in a
 * mean, and ε. Columns that only fill a row up have factors of zero; layer norms take rows without such columns.
 */
type Norm = (
  x: number,
  y: number,
  rows: number,
  fours: number,
  factors: number,
  added: number,
  share: number,
  epsilon: number,
) => void;

/** Functions over rows in a memory. Addresses and steps in bytes; rows follow one another where no step is given. */
export interface RowKernels {
  /** `(x − mean) / √(variance + ε) · factors + added`. */
  readonly layerNorm: Norm;
  /** `x / √(mean of x² + ε) · factors`. */
  readonly rmsNorm: Norm;
  /** SiLU of that. */
  readonly rmsNormSilu: Norm;
  /** Softmax of each row, in its place. */
  softmax(x: number, rows: number, fours: number): void;
  /** GELU in its tanh form, in place. */
  gelu(x: number, fours: number): void;
  /** Rotates the pairs of each head in place; a row of the tables has the factors of a head, those of sines with signs. */
  rotary(
    x: number,
    rows: number,
    heads: number,
    fours: number,
    cosines: number,
    sines: number,
  ): void;
  /** Rows as filters: groups of 8 become [values, 8] each. */
  filters(rows: number, step: number, filters: number, fours: number, groups: number): void;
  /** 8 columns of rows, one after another. */
  columns(x: number, step: number, y: number, rows: number): void;
}

type Local = (type: ValueType) => Variable;
const f = (value: number) => splat('f32', value);
const times = (a: Code, b: Code) => op('f32x4.mul', a, b);
const plus = (a: Code, b: Code) => op('f32x4.add', a, b);
const load = (address: Variable, bytes = 0) => access('v128.load', [address.get], bytes);
const store = (address: Variable, value: Code, bytes = 0) =>
  access('v128.store', [address.get, value], bytes);
const step = (variable: Variable, by: Variable) =>
  variable.set(op('i32.add', variable.get, by.get));
/** A vector of the four lanes taken together. */
const folded = (name: 'f32.add' | 'f32.max', { get }: Variable) =>
  op(
    'f32x4.splat',
    [0, 1, 2, 3].map((lane) => extractLane(get, lane)).reduce((a, b) => op(name, a, b)),
  );

/** 2^r for |r| ≤ 1/2, 7.5e-8 off at most: the polynomial of the least largest error. The highest power first. */
const powers = [
  0.0013276471737, 0.00967554154, 0.055507132761, 0.2402211972, 0.693146967062, 1.000000071655,
];
/** A number that is added to it rounds x to an integer, which the last bits of the sum are. */
const rounding = 1.5 * 2 ** 23;

/** Functions over rows of a memory. */
export function rowKernels(memory: WebAssembly.Memory, arithmetic: Arithmetic): RowKernels {
  const sum = multiplyAdd(arithmetic);

  /** 2^x of a vector, which is replaced; x is kept within ±126. */
  function power(x: Variable, local: Local): Code[] {
    const [shifted, result] = [local('v128'), local('v128')];
    return [
      x.set(op('f32x4.pmin', op('f32x4.pmax', x.get, f(-126)), f(126))),
      shifted.set(plus(x.get, f(rounding))),
      x.set(op('f32x4.sub', x.get, op('f32x4.sub', shifted.get, f(rounding)))),
      result.set(f(at(powers, 0))),
      ...powers.slice(1).map((term) => result.set(sum(result.get, x.get, f(term)))),
      // Times 2ⁿ: n is added to the exponent's bits.
      x.set(op('i32x4.add', result.get, op('i32x4.shl', shifted.get, i32(23)))),
    ];
  }

  /** `value / (1 + 2^exponent)`, as the operand behind the code. */
  function gated(value: Variable, exponent: Code, local: Local) {
    const divisor = local('v128');
    const code = [divisor.set(exponent), ...power(divisor, local)];
    return { code, result: op('f32x4.div', value.get, plus(f(1), divisor.get)) };
  }

  function norm(name: keyof RowKernels): FunctionSource {
    const isCentred = name === 'layerNorm';
    return {
      name,
      parameters: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'f32', 'f32'],
      body: (parameters, local) => {
        const [x, y, rows, fours] = [0, 1, 2, 3].map((i) => at(parameters, i)) as Four;
        const [factors, added, share, epsilon] = [4, 5, 6, 7].map((i) => at(parameters, i)) as Four;
        const [from, left] = [local('i32'), local('i32')];
        const [factor, shift] = [local('i32'), local('i32')];
        const [value, total, mean, scale] = [0, 1, 2, 3].map(() => local('v128')) as Four;
        const centred = isCentred ? op('f32x4.sub', load(from), mean.get) : load(from);
        const overRow = (...code: Code[]) => [
          ...[from.set(x.get), left.set(fours.get)],
          doWhile([...code, from.increase(16)], next(left)),
        ];
        const ofRow = (variable: Variable) =>
          times(folded('f32.add', variable), op('f32x4.splat', share.get));
        const normed = times(times(centred, scale.get), load(factor));
        const silu = gated(value, times(value.get, f(-Math.LOG2E)), local);
        const variance = plus(ofRow(total), op('f32x4.splat', epsilon.get));
        const row = [
          ...(isCentred
            ? [
                mean.set(f(0)),
                ...overRow(mean.set(plus(mean.get, load(from)))),
                mean.set(ofRow(mean)),
              ]
            : []),
          total.set(f(0)),
          ...overRow(value.set(centred), total.set(sum(value.get, value.get, total.get))),
          scale.set(op('f32x4.div', f(1), op('f32x4.sqrt', variance))),
          ...[factor.set(factors.get), shift.set(added.get)],
          ...overRow(
            value.set(isCentred ? plus(normed, load(shift)) : normed),
            ...(name === 'rmsNormSilu'
              ? [...silu.code, store(y, silu.result)]
              : [store(y, value.get)]),
            ...[factor.increase(16), shift.increase(16), y.increase(16)],
          ),
          x.set(from.get),
        ];
        return [doWhile(row, next(rows))];
      },
    };
  }

  const softmax: FunctionSource = {
    name: 'softmax',
    parameters: ['i32', 'i32', 'i32'],
    body: (parameters, local) => {
      const [x, rows, fours] = parameters as Four;
      const [from, left] = [local('i32'), local('i32')];
      const [value, most, total] = [local('v128'), local('v128'), local('v128')];
      const overRow = (...code: Code[]) => [
        ...[from.set(x.get), left.set(fours.get)],
        doWhile([...code, from.increase(16)], next(left)),
      ];
      const row = [
        most.set(load(x)),
        ...overRow(most.set(op('f32x4.pmax', most.get, load(from)))),
        ...[most.set(times(folded('f32.max', most), f(-Math.LOG2E))), total.set(f(0))],
        ...overRow(
          value.set(sum(load(from), f(Math.LOG2E), most.get)),
          ...power(value, local),
          store(from, value.get),
          total.set(plus(total.get, value.get)),
        ),
        total.set(op('f32x4.div', f(1), folded('f32.add', total))),
        ...overRow(store(from, times(load(from), total.get))),
        x.set(from.get),
      ];
      return [doWhile(row, next(rows))];
    },
  };

  const gelu: FunctionSource = {
    name: 'gelu',
    parameters: ['i32', 'i32'],
    body: (parameters, local) => {
      const [x, fours] = parameters as Four;
      const value = local('v128');
      // 0.5·(1 + tanh(u)) is 1 / (1 + e^(−2u)), with u = √(2/π)·(x + 0.044715·x³).
      const cubic = sum(times(value.get, value.get), f(0.044715), f(1));
      const exponent = times(times(value.get, f(-2 * Math.LOG2E * Math.sqrt(2 / Math.PI))), cubic);
      const { code, result } = gated(value, exponent, local);
      return [
        doWhile([value.set(load(x)), ...code, store(x, result), x.increase(16)], next(fours)),
      ];
    },
  };

  const rotary: FunctionSource = {
    name: 'rotary',
    parameters: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'],
    body: (parameters, local) => {
      const [x, rows, heads, fours] = [0, 1, 2, 3].map((i) => at(parameters, i)) as Four;
      const [cosines, sines] = [at(parameters, 4), at(parameters, 5)];
      const [cosine, sine, head, left] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const value = local('v128');
      const swapped = shuffle(value.get, value.get, [1, 0, 3, 2]);
      const pairs = [
        value.set(load(x)),
        store(x, sum(value.get, load(cosine), times(swapped, load(sine)))),
        ...[x, cosine, sine].map((address) => address.increase(16)),
      ];
      const oneHead = [
        ...[cosine.set(cosines.get), sine.set(sines.get), left.set(fours.get)],
        doWhile(pairs, next(left)),
      ];
      const row = [
        ...[head.set(heads.get), doWhile(oneHead, next(head))],
        ...[cosines.set(cosine.get), sines.set(sine.get)],
      ];
      return [doWhile(row, next(rows))];
    },
  };

  const filters: FunctionSource = {
    name: 'filters',
    parameters: ['i32', 'i32', 'i32', 'i32', 'i32'],
    body: (parameters, local) => {
      const [rows, stride, to, fours] = [0, 1, 2, 3].map((i) => at(parameters, i)) as Four;
      const groups = at(parameters, 4);
      const [from, row, left] = [local('i32'), local('i32'), local('i32')];
      const values = [0, 1, 2, 3].map(() => local('v128')) as Four;
      const [a, b, c, d] = values.map(({ get }) => get) as [Code, Code, Code, Code];
      const [firsts, lasts] = [[0, 4, 1, 5] as const, [2, 6, 3, 7] as const];
      const [low, high] = [[0, 1, 4, 5] as const, [2, 3, 6, 7] as const];
      const half = (index: number) => [
        ...values.flatMap((value) => [value.set(load(row)), step(row, stride)]),
        ...[firsts, lasts].flatMap((lanes, pair) =>
          [low, high].map((side, k) =>
            store(
              to,
              shuffle(shuffle(a, b, lanes), shuffle(c, d, lanes), side),
              32 * (2 * pair + k) + 16 * index,
            ),
          ),
        ),
      ];
      const four = [row.set(from.get), ...half(0), ...half(1), from.increase(16), to.increase(128)];
      const group = [
        ...[from.set(rows.get), left.set(fours.get), doWhile(four, next(left))],
        rows.set(op('i32.add', rows.get, op('i32.shl', stride.get, i32(3)))),
      ];
      return [doWhile(group, next(groups))];
    },
  };

  const columns: FunctionSource = {
    name: 'columns',
    parameters: ['i32', 'i32', 'i32', 'i32'],
    body: (parameters) => {
      const [x, stride, y, rows] = parameters as Four;
      const row = [store(y, load(x)), store(y, load(x, 16), 16), step(x, stride), y.increase(32)];
      return [doWhile(row, next(rows))];
    },
  };

  const norms = (['layerNorm', 'rmsNorm', 'rmsNormSilu'] as const).map(norm);
  return instantiate([...norms, softmax, gelu, rotary, filters, columns], memory);
}
