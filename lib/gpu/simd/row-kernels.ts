import { at } from '../../contract';
import {
  access,
  type Code,
  doWhile,
  extractLane,
  type FunctionSource,
  i32,
  op,
  shuffle,
  splat,
  type ValueType,
  type Variable,
} from '../../wasm/assembler';
import { type Four, multiplyAdd, next } from './kernels';
import type { KernelSource } from './threads';

/*
 * Functions over rows that follow one another, whose columns are filled up with zeros to whole groups. Addresses and
 * steps are in bytes; a row has so many fours of values.
 */

type Local = (type: ValueType) => Variable;
const f = (value: number) => splat('f32', value);
const times = (a: Code, b: Code) => op('f32x4.mul', a, b);
const plus = (a: Code, b: Code) => op('f32x4.add', a, b);
const load = (address: Variable, bytes = 0) => access('v128.load', [address.get], bytes);
const store = (address: Variable, value: Code, bytes = 0) =>
  access('v128.store', [address.get, value], bytes);
const add = (variable: Variable, by: Variable) => variable.set(op('i32.add', variable.get, by.get));
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

/** 2^x of a vector, which is replaced; x is kept within ±126. */
function power(x: Variable, local: Local): Code[] {
  const [shifted, result] = [local('v128'), local('v128')];
  return [
    x.set(op('f32x4.pmin', op('f32x4.pmax', x.get, f(-126)), f(126))),
    shifted.set(plus(x.get, f(rounding))),
    x.set(op('f32x4.sub', x.get, op('f32x4.sub', shifted.get, f(rounding)))),
    result.set(f(at(powers, 0))),
    ...powers.slice(1).map((term) => result.set(multiplyAdd(result.get, x.get, f(term)))),
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

/** Passes over the fours of a row: `from` is each in turn, and the row's end afterwards. */
function overRow(x: Variable, fours: Variable, local: Local) {
  const [from, left] = [local('i32'), local('i32')];
  const over = (...code: Code[]) => [
    ...[from.set(x.get), left.set(fours.get)],
    doWhile([...code, from.increase(16)], next(left)),
  ];
  return { from, over };
}

const normNames = ['x', 'y', 'rows', 'fours', 'factors', 'added', 'share', 'epsilon'] as const;
export type NormName = (typeof normNames)[number];

/**
 * `(x − mean) / √(variance + ε) · factors + added`, where ‘share’ is that of one value in a mean; for an RMS norm
 * `x / √(mean of x² + ε) · factors`, or SiLU of that. Columns that fill a row up have factors of zero, and a layer norm
 * takes rows without them.
 */
export function norm(name: 'layerNorm' | 'rmsNorm' | 'rmsNormSilu'): KernelSource<NormName> {
  const isCentred = name === 'layerNorm';
  const source: FunctionSource = {
    name,
    parameters: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'f32', 'f32'],
    body: (parameters, local) => {
      const [x, y, rows, fours] = [0, 1, 2, 3].map((i) => at(parameters, i)) as Four;
      const [factors, added, share, epsilon] = [4, 5, 6, 7].map((i) => at(parameters, i)) as Four;
      const [factor, shift] = [local('i32'), local('i32')];
      const [value, total, mean, scale] = [0, 1, 2, 3].map(() => local('v128')) as Four;
      const { from, over } = overRow(x, fours, local);
      const centred = isCentred ? op('f32x4.sub', load(from), mean.get) : load(from);
      const ofRow = (variable: Variable) =>
        times(folded('f32.add', variable), op('f32x4.splat', share.get));
      const normed = times(times(centred, scale.get), load(factor));
      const silu = gated(value, times(value.get, f(-Math.LOG2E)), local);
      const variance = plus(ofRow(total), op('f32x4.splat', epsilon.get));
      const ofMean = [
        mean.set(f(0)),
        ...over(mean.set(plus(mean.get, load(from)))),
        mean.set(ofRow(mean)),
      ];
      const squared = multiplyAdd(value.get, value.get, total.get);
      const row = [
        ...(isCentred ? ofMean : []),
        ...[total.set(f(0)), ...over(value.set(centred), total.set(squared))],
        scale.set(op('f32x4.div', f(1), op('f32x4.sqrt', variance))),
        ...[factor.set(factors.get), shift.set(added.get)],
        ...over(
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
  return { functions: [source], names: normNames };
}

/** Softmax of each row, in its place. */
export function softmax(): FunctionSource {
  return {
    name: 'softmax',
    parameters: ['i32', 'i32', 'i32'],
    body: (parameters, local) => {
      const [x, rows, fours] = parameters as Four;
      const [value, most, total] = [local('v128'), local('v128'), local('v128')];
      const { from, over } = overRow(x, fours, local);
      const exponent = multiplyAdd(load(from), f(Math.LOG2E), most.get);
      const row = [
        most.set(load(x)),
        ...over(most.set(op('f32x4.pmax', most.get, load(from)))),
        ...[most.set(times(folded('f32.max', most), f(-Math.LOG2E))), total.set(f(0))],
        ...over(
          ...[value.set(exponent), ...power(value, local)],
          ...[store(from, value.get), total.set(plus(total.get, value.get))],
        ),
        total.set(op('f32x4.div', f(1), folded('f32.add', total))),
        ...over(store(from, times(load(from), total.get))),
        x.set(from.get),
      ];
      return [doWhile(row, next(rows))];
    },
  };
}

/** GELU in its tanh form, of fours in place. */
export function gelu(): KernelSource<'x' | 'rows'> {
  const source: FunctionSource = {
    name: 'gelu',
    parameters: ['i32', 'i32'],
    body: (parameters, local) => {
      const [x, fours] = parameters as Four;
      const value = local('v128');
      // 0.5·(1 + tanh(u)) is 1 / (1 + e^(−2u)), with u = √(2/π)·(x + 0.044715·x³).
      const square = times(value.get, value.get);
      const cubic = multiplyAdd(square, f(0.044715), f(1));
      const factor = f(-2 * Math.LOG2E * Math.sqrt(2 / Math.PI));
      const { code, result } = gated(value, times(times(value.get, factor), cubic), local);
      const four = [value.set(load(x)), ...code, store(x, result), x.increase(16)];
      return [doWhile(four, next(fours))];
    },
  };
  return { functions: [source], names: ['x', 'rows'] };
}

/** Rotates the pairs of each head in place; a row of the tables has the factors of a head, those of sines with signs. */
export function rotary(): KernelSource<'x' | 'rows' | 'heads' | 'fours' | 'cosines' | 'sines'> {
  const source: FunctionSource = {
    name: 'rotary',
    parameters: ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'],
    body: (parameters, local) => {
      const [x, rows, heads, fours] = [0, 1, 2, 3].map((i) => at(parameters, i)) as Four;
      const [cosines, sines] = [at(parameters, 4), at(parameters, 5)];
      const [cosine, sine, head, left] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const value = local('v128');
      const crossed = times(shuffle(value.get, value.get, [1, 0, 3, 2]), load(sine));
      const pairs = [
        value.set(load(x)),
        store(x, multiplyAdd(value.get, load(cosine), crossed)),
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
  return { functions: [source], names: ['x', 'rows', 'heads', 'fours', 'cosines', 'sines'] };
}

/** Rows as filters: groups of 8 of them become [values, 8] each. */
export function filters(): KernelSource<'x' | 'step' | 'y' | 'fours' | 'groups'> {
  const source: FunctionSource = {
    name: 'filters',
    parameters: ['i32', 'i32', 'i32', 'i32', 'i32'],
    body: (parameters, local) => {
      const [x, step, y, fours] = [0, 1, 2, 3].map((i) => at(parameters, i)) as Four;
      const groups = at(parameters, 4);
      const [from, row, left] = [local('i32'), local('i32'), local('i32')];
      const values = [0, 1, 2, 3].map(() => local('v128')) as Four;
      const [a, b, c, d] = values.map(({ get }) => get) as [Code, Code, Code, Code];
      const [low, high] = [[0, 1, 4, 5] as const, [2, 3, 6, 7] as const];
      const transposed = (
        [
          [0, 4, 1, 5],
          [2, 6, 3, 7],
        ] as const
      ).flatMap((lanes) =>
        [low, high].map((side) => shuffle(shuffle(a, b, lanes), shuffle(c, d, lanes), side)),
      );
      const half = (index: number) => [
        ...values.flatMap((value) => [value.set(load(row)), add(row, step)]),
        ...transposed.map((vector, k) => store(y, vector, 32 * k + 16 * index)),
      ];
      const four = [row.set(from.get), ...half(0), ...half(1), from.increase(16), y.increase(128)];
      const group = [
        ...[from.set(x.get), left.set(fours.get), doWhile(four, next(left))],
        x.set(op('i32.add', x.get, op('i32.shl', step.get, i32(3)))),
      ];
      return [doWhile(group, next(groups))];
    },
  };
  return { functions: [source], names: ['x', 'step', 'y', 'fours', 'groups'] };
}

/** 8 columns of rows, one row after another. */
export function columns(): KernelSource<'x' | 'step' | 'y' | 'rows'> {
  const source: FunctionSource = {
    name: 'columns',
    parameters: ['i32', 'i32', 'i32', 'i32'],
    body: (parameters) => {
      const [x, step, y, rows] = parameters as Four;
      const row = [store(y, load(x)), store(y, load(x, 16), 16), add(x, step), y.increase(32)];
      return [doWhile(row, next(rows))];
    },
  };
  return { functions: [source], names: ['x', 'step', 'y', 'rows'] };
}
