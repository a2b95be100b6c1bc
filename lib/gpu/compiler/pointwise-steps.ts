import { columns, type Value } from '../../graph';
import {
  type Formula,
  gatherHeadsDispatch,
  geluErfFormula,
  type HeadRowsShape,
  headRowsDispatch,
  pointwiseDispatch,
  siluFormula,
  weightedSumFormula,
} from '../kernels';
import { operandOf } from './patterns';
import { type Listing, rowsOf, slotOperand, slotsOf, viewOf } from './places';
import type { GraphScope } from './scope';

/** What has no place behind a linear layer: one dispatch over rows of f32. */
export function pointwiseStep(scope: GraphScope, value: Value): void {
  const { operands } = value;
  const [formula, numbers] = formulaOf(value);
  const inputs = operands.map((operand) => ({ operand, place: scope.at(operand) }));
  if (inputs.some(({ place }) => place.storage !== 'f32')) {
    scope.refuse(value, 'reads rows that are not f32');
  }
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
