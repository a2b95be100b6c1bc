import { columns, type Value } from '../../graph';
import { pointwiseDispatch } from '../kernels';
import { type Listing, rowsOf, slotsOf, viewOf } from './places';
import type { GraphScope } from './scope';

interface Formula {
  /** Of four elements, see `PointwiseShape`. */
  readonly expression: string;
  /** Its numbers, or the names under which they are bound. */
  readonly numbers: readonly (number | string)[];
}

/** What has no place behind a linear layer: one dispatch over rows of f32. */
export function pointwiseStep(scope: GraphScope, value: Value): void {
  const { operands, call } = value;
  const { expression, numbers } = formulaOf(value);
  const places = operands.map((operand) => scope.at(operand));
  if (places.some(({ storage }) => storage !== 'f32')) {
    scope.refuse(value, 'reads rows that are not f32');
  }
  const y = scope.make(value, 'f32');
  const inputs = operands.map((operand, index) => ({ operand, place: scope.at(operand), index }));
  scope.step(value, places.flatMap(slotsOf), slotsOf(y), (listing) => [
    pointwiseDispatch(
      { name: nameOf(call.op), width: columns(value), expression },
      {
        inputs: inputs.map(({ operand, place }) => viewOf(operand, place, listing)),
        y: viewOf(value, y, listing),
        rows: rowsOf(value, listing),
        numbers: numbers.map((number) => numberOf(number, listing)),
      },
    ),
  ]);
}

function formulaOf({ call }: Value): Formula {
  switch (call.op) {
    case 'silu':
      return {
        expression: 'v0 / (1.0 + exp(-clamp(v0, vec4<f32>(-80.0), vec4<f32>(80.0))))',
        numbers: [],
      };
    case 'weightedSum':
      return {
        expression: call.coefficients.map((_, i) => `uniforms.c${i} * v${i}`).join(' + '),
        numbers: call.coefficients,
      };
    default:
      throw new TypeError(`${call.op} has no formula`);
  }
}

function nameOf(op: string): string {
  return op === 'weightedSum' ? 'weighted sum' : op;
}

function numberOf(number: number | string, { bindings }: Listing): number {
  return typeof number === 'number' ? number : bindings.number(number);
}
