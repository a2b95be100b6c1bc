import { columns, type Value } from '../../graph';
import {
  type Formula,
  gatherHeadsDispatch,
  geluErfFormula,
  type HeadRowsShape,
  headRowsDispatch,
  layerNormDispatch,
  offsetAlignment,
  pointwiseDispatch,
  siluFormula,
  storageBytes,
  sumDispatch,
  weightedSumFormula,
} from '../kernels';
import { attentionOf, operandOf } from './patterns';
import {
  headLayout,
  headRanges,
  headView,
  type Listing,
  type Place,
  rowsOf,
  slotOperand,
  slotsOf,
  viewOf,
} from './places';
import type { GraphScope } from './scope';

/** A layer norm with its modulation. */
export function layerNormStep(scope: GraphScope, value: Value, norm: Value): void {
  if (norm.call.op !== 'layerNorm' || value.call.op !== 'modulate') {
    throw new TypeError(`${value.call.op} is no modulated norm`);
  }
  const { epsilon } = norm.call;
  const { one } = value.call;
  const [x, scale, shift] = [operandOf(norm, 0), operandOf(value, 1), operandOf(value, 2)];
  const [from, scalePlace, shiftPlace] = [scope.at(x), scope.at(scale), scope.at(shift)];
  requireF32(scope, value, from, scalePlace, shiftPlace);
  const y = scope.make(value);
  const reads = [from, scalePlace, shiftPlace].flatMap(slotsOf);
  scope.step(value, reads, slotsOf(y), (listing) => [
    layerNormDispatch(
      { width: columns(x), epsilon, output: y.storage },
      {
        x: viewOf(x, from, listing),
        y: viewOf(value, y, listing),
        rows: rowsOf(x, listing),
        scale: viewOf(scale, scalePlace, listing).operand,
        shift: viewOf(shift, shiftPlace, listing).operand,
        one,
      },
    ),
  ]);
}

/**
 * RMS norm and rotary embedding of rows where they are, or into the clip's heads where a later pass reads all rows;
 * without a norm they are only copied there.
 */
export function headRowsStep(
  scope: GraphScope,
  value: Value,
  norm: Value | null,
  rotary: Value | null,
): void {
  const x = norm ? operandOf(norm, 0) : value;
  const from = scope.at(x);
  if (from.kind !== 'rows' || scope.isOutput(value)) {
    scope.refuse(value, 'has a result that no call reads');
  }
  const attention = attentionOf(scope.graph, value);
  const rotaryHeads = rotary?.call.op === 'rotary' ? rotary.call.heads : 1;
  const heads = attention?.heads ?? rotaryHeads;
  const headSize = columns(value) / heads;
  const { storage } = scope.kernels;
  const layout = attention?.whole ? headLayout(scope.tokens, heads, headSize) : null;
  const to: Place = layout
    ? {
        kind: 'heads',
        slots: [scope.lifetimes.take(heads * layout.headStride * storageBytes(storage))],
        storage,
        layout,
      }
    : from;
  scope.put(value, to);
  const shape: HeadRowsShape = {
    width: columns(value),
    headSize,
    input: from.storage,
    output: layout ? storage : null,
    norm: norm?.call.op === 'rmsNorm' ? { epsilon: norm.call.epsilon } : null,
    rotary: rotary !== null,
  };
  const ranges = layout && headRanges(layout, storage, scope.options.limits);
  scope.step(value, layout ? slotsOf(from) : [], slotsOf(to), (listing) => {
    const common = {
      x: viewOf(x, from, listing),
      rows: rowsOf(x, listing),
      ...(norm && { weight: wholeOf(scope, operandOf(norm, 1), listing) }),
      ...(rotary && { angles: anglesOf(scope, rotary, listing) }),
    };
    if (!layout || !ranges) return [headRowsDispatch(shape, common)];
    const { headStride, rowStride } = layout;
    return ranges.map((range) => {
      const y = headView(value, to, headSize, range, listing).operand;
      const firstRow = listing.chunk.start;
      return headRowsDispatch(shape, {
        ...common,
        to: { y, firstRow, headStride, rowStride, heads: range },
      });
    });
  });
}

/** The tables of a rotary embedding with all rows of tokens, and the first row of the chunk. */
function anglesOf(scope: GraphScope, rotary: Value, listing: Listing) {
  const [cos, sin] = [operandOf(rotary, 1), operandOf(rotary, 2)];
  return {
    cos: wholeOf(scope, cos, listing),
    sin: wholeOf(scope, sin, listing),
    first: listing.chunk.start,
  };
}

/** An input of the graph as a whole. */
function wholeOf(scope: GraphScope, input: Value, { bindings, chunk }: Listing) {
  if (input.call.op !== 'input') return scope.refuse(input, 'is computed; kernels want an input');
  return bindings.tensor(input.call.name, chunk.class);
}

/** A sum or a difference of tables or rows of f32; in the place of the second operand, or in a new one. */
export function sumStep(scope: GraphScope, value: Value, inPlace: boolean): void {
  const [a, b] = [operandOf(value, 0), operandOf(value, 1)];
  const [aPlace, bPlace] = [scope.at(a), scope.at(b)];
  requireF32(scope, value, aPlace, bPlace);
  const y = inPlace ? scope.put(value, bPlace) : scope.make(value, 'f32');
  const repeated = (b.dims.length < 2 || b.dims[0] === 1) && a.dims[0] !== 1;
  const factor = value.call.op === 'sub' ? -1 : 1;
  const reads = [...slotsOf(aPlace), ...(inPlace ? [] : slotsOf(bPlace))];
  scope.step(value, reads, slotsOf(y), (listing) => [
    sumDispatch(columns(value), {
      a: viewOf(a, aPlace, listing),
      b: viewOf(b, bPlace, listing),
      ...(!inPlace && { y: viewOf(value, y, listing) }),
      rows: rowsOf(a, listing),
      factor,
      repeated,
    }),
  ]);
}

/** A row of a table that was computed: a view. */
export function rowView(scope: GraphScope, value: Value): void {
  const table = operandOf(value, 0);
  const place = scope.at(table);
  if (value.call.op !== 'row' || place.kind !== 'rows') {
    scope.refuse(value, 'is of a table that is not computed');
  }
  if ((columns(table) * storageBytes(place.storage)) % offsetAlignment !== 0) {
    scope.refuse(value, `of ${columns(table)} elements starts at no aligned offset`);
  }
  scope.put(value, { ...place, row: value.call.index });
}

/** What has no place behind a linear layer: one dispatch over rows of f32. */
export function pointwiseStep(scope: GraphScope, value: Value): void {
  const { operands } = value;
  const [formula, numbers] = formulaOf(value);
  const inputs = operands.map((operand) => ({ operand, place: scope.at(operand) }));
  requireF32(scope, value, ...inputs.map(({ place }) => place));
  const y = scope.make(value, 'f32');
  const reads = inputs.flatMap(({ place }) => slotsOf(place));
  scope.step(value, reads, slotsOf(y), (listing) => [
    pointwiseDispatch(
      { ...formula, width: columns(value) },
      {
        inputs: inputs.map(({ operand, place }) => viewOf(operand, place, listing)),
        y: viewOf(value, y, listing),
        rows: rowsOf(value, listing),
        numbers: numbers.map((number) => numberOf(number, listing)),
      },
    ),
  ]);
}

/** The formula of a call, and its numbers or the names under which they are bound. */
function formulaOf({ call }: Value): readonly [Formula, readonly (number | string)[]] {
  switch (call.op) {
    case 'geluErf':
      return [geluErfFormula, []];
    case 'silu':
      return [siluFormula, []];
    case 'weightedSum':
      return [weightedSumFormula(call.coefficients.length), call.coefficients];
    default:
      throw new TypeError(`${call.op} has no formula`);
  }
}

function numberOf(number: number | string, { bindings }: Listing): number {
  return typeof number === 'number' ? number : bindings.number(number);
}

/** RMS norm of rows, which stay as they are. */
export function rmsNormStep(scope: GraphScope, value: Value): void {
  const [x, weight] = [operandOf(value, 0), operandOf(value, 1)];
  const { call } = value;
  if (call.op !== 'rmsNorm') throw new TypeError(`${call.op} is no RMS norm`);
  const [from, weightPlace] = [scope.at(x), scope.at(weight)];
  const y = scope.make(value);
  const width = columns(value);
  const shape: HeadRowsShape = {
    width,
    headSize: width,
    input: from.storage,
    output: y.storage,
    norm: { epsilon: call.epsilon },
    rotary: false,
  };
  scope.step(value, [from, weightPlace].flatMap(slotsOf), slotsOf(y), (listing) => {
    const to = viewOf(value, y, listing);
    return [
      headRowsDispatch(shape, {
        x: viewOf(x, from, listing),
        rows: rowsOf(x, listing),
        weight: viewOf(weight, weightPlace, listing).operand,
        to: { y: to.operand, firstRow: to.firstRow, rowStride: width, headStride: width },
      }),
    ];
  });
}

/** A number for each head and pair of rows, f32 [heads, R, R′] without gaps. */
export function gatherHeadsStep(scope: GraphScope, value: Value): void {
  const [table, indices] = [operandOf(value, 0), operandOf(value, 1)];
  if (table.call.op !== 'input' || indices.call.op !== 'input') {
    scope.refuse(value, 'reads what is no input');
  }
  const names = { table: table.call.name, indices: indices.call.name };
  const heads = columns(table);
  const most = indices.dims.reduce<number>((product, dim) => product * scope.mostOf(dim), 1);
  const slot = scope.lifetimes.take(4 * heads * most);
  scope.put(value, { kind: 'rows', slots: [slot], storage: 'f32', row: 0 });
  scope.step(value, [], [slot], (listing) => {
    const { bindings, chunk } = listing;
    const count = indices.dims.reduce<number>((product, dim) => product * bindings.size(dim), 1);
    return [
      gatherHeadsDispatch(heads, {
        table: bindings.tensor(names.table, chunk.class),
        indices: bindings.tensor(names.indices, chunk.class),
        y: slotOperand(slot, listing, 4 * heads * count),
        count,
      }),
    ];
  });
}

function requireF32(scope: GraphScope, value: Value, ...places: readonly Place[]): void {
  if (places.some(({ storage }) => storage !== 'f32')) {
    scope.refuse(value, 'reads rows that are not f32');
  }
}
