import { columns, hasTokenRows, type LinearLayer, type Value } from '../../graph';
import {
  fastLinearDispatch,
  type LinearOperands,
  type LinearShape,
  linearDispatch,
  type Operand,
  offsetAlignment,
  productShape,
  quantiseDispatch,
  storageBytes,
} from '../kernels';
import type { DeviceTensor } from '../tensor';
import type { Slot } from './arena';
import { operandOf } from './patterns';
import { type Listing, type Place, rowsOf, slotRows, slotsOf, viewOf } from './places';
import type { GraphScope, RoundedRows } from './scope';

/** What becomes of a linear layer's result. */
export interface LinearTarget {
  readonly value: Value;
  readonly place: Place;
  readonly epilogue: LinearShape['epilogue'];
  /** With the epilogue `gated`. */
  readonly gate: Value | null;
}

/** Linear layers compute one dispatch, and one before it for a LoRA's `x·downᵀ`. */
export function linearSteps(
  scope: GraphScope,
  linear: Value,
  { value, place, epilogue, gate }: LinearTarget,
): void {
  const layer = layerOf(linear);
  const { kernels } = scope;
  const x = operandOf(linear, 0);
  const source = scope.at(x);
  const weight: LinearShape['weight'] = layer.bits === null ? 'f32' : `q${layer.bits}`;
  const counted = epilogue === 'gelu' && place.storage === 'f16';
  const shapeOf = (rank: number): LinearShape => ({
    k: layer.inFeatures,
    n: layer.outFeatures,
    weight,
    input: source.storage,
    output: place.storage,
    bias: layer.bias,
    rank,
    epilogue,
    ...(layer.lora === 'bf16' && { up: layer.lora }),
    ...(counted && { counted }),
  });
  const fast = hasTokenRows(x) && weight !== 'f32' ? kernels.fastLinear : null;
  const rounded = fast && roundedRows(scope, x, source);
  const t = layer.lora ? lowRankStep(scope, linear, source) : null;
  const gatePlace = gate && scope.at(gate);
  const reads = [
    ...(rounded ? [rounded.x, rounded.xScales] : slotsOf(source)),
    ...(t ? [t] : []),
    ...(gatePlace ? slotsOf(gatePlace) : []),
  ];
  scope.step(linear, reads, slotsOf(place), (listing) => {
    const rows = rowsOf(x, listing);
    const { down, ...tensors } = weightsOf(layer, listing);
    const rank = down?.dims[0] ?? 0;
    const operands = {
      rows,
      x: viewOf(x, source, listing),
      y: viewOf(value, place, listing),
      ...tensors,
      ...(t && { t: slotRows(t, listing, 4 * rows * rank) }),
      ...(gate && gatePlace && { gate: viewOf(gate, gatePlace, listing) }),
      ...(counted && { overflows: listing.overflows }),
    };
    const shape = shapeOf(rank);
    if (!fast || !rounded || (shape.weight !== 'q8' && shape.weight !== 'q4')) {
      return partsOf(scope, x, layer).map((part) => {
        const n = { ...shape, n: part.count };
        return linearDispatch(kernels.linear, n, operandsOf(operands, layer, place, rank, part));
      });
    }
    const bytes = roundedViews(rounded, rows, layer.inFeatures, listing);
    return [
      fastLinearDispatch(fast, { ...shape, weight: shape.weight }, { ...operands, ...bytes }),
    ];
  });
}

/** Some of the N columns of a result. */
interface Columns {
  readonly first: number;
  readonly count: number;
}

/** Columns between two parts: every operand of a part starts at an aligned offset. */
const columnStep = offsetAlignment / 2;

function weightBytes({ bits, inFeatures }: LinearLayer): number {
  return ((bits ?? 32) * inFeatures) / 8;
}

/** The columns that one dispatch computes: all of them, but for one row whose weight is larger than a binding. */
function partsOf({ options }: GraphScope, x: Value, layer: LinearLayer): readonly Columns[] {
  const { outFeatures: n } = layer;
  const fitting = Math.floor(options.limits.bindingBytes / weightBytes(layer));
  if (n <= fitting || x.dims[0] !== 1 || fitting < columnStep) return [{ first: 0, count: n }];
  const most = fitting - (fitting % columnStep);
  const parts = Math.ceil(n / most);
  const size = Math.ceil(n / parts / columnStep) * columnStep;
  return Array.from({ length: Math.ceil(n / size) }, (_, index) => {
    return { first: index * size, count: Math.min(size, n - index * size) };
  });
}

/** The operands of a part of a row. */
function operandsOf(
  operands: LinearOperands,
  layer: LinearLayer,
  { storage }: Place,
  rank: number,
  { first, count }: Columns,
): LinearOperands {
  if (count === layer.outFeatures) return operands;
  const part = (whole: DeviceTensor | Operand, bytes: number): Operand => {
    const { tensor, byteOffset = 0 } = 'tensor' in whole ? whole : { tensor: whole };
    return { tensor, byteOffset: byteOffset + first * bytes, byteSize: count * bytes };
  };
  const { inFeatures } = layer;
  const bytesOf = {
    weight: weightBytes(layer),
    values: weightBytes(layer),
    scales: inFeatures / 8,
    bias: 4,
    up: (layer.lora === 'bf16' ? 2 : 4) * rank,
  };
  const parts = Object.entries(bytesOf).flatMap(([name, bytes]) => {
    const whole = operands[name as keyof typeof bytesOf];
    return whole ? [[name, part(whole, bytes)] as const] : [];
  });
  const y = { operand: part(operands.y.operand, storageBytes(storage)), firstRow: 0 };
  return { ...operands, ...Object.fromEntries(parts), y };
}

function layerOf({ call }: Value): LinearLayer {
  if (call.op !== 'linear') throw new TypeError(`${call.op} is no linear layer`);
  return call.layer;
}

/** The layer's tensors, by the names that dispatches have for them. */
function weightsOf({ name, bits, bias, lora }: LinearLayer, { bindings }: Listing) {
  const tensor = (role: string): DeviceTensor => bindings.tensor(`${name}.${role}`, 0);
  return {
    ...(bits === null
      ? { weight: tensor('weight') }
      : { values: tensor('values'), scales: tensor('scales') }),
    ...(bias && { bias: tensor('bias') }),
    ...(lora && { down: tensor('down'), up: tensor('up') }),
  };
}

/** `x·downᵀ` of a LoRA's branch, [R, rank]; it reads x as it is, also where the layer reads 8 bits. */
function lowRankStep(scope: GraphScope, linear: Value, source: Place): Slot {
  const { name, inFeatures, lora } = layerOf(linear);
  const x = operandOf(linear, 0);
  const ranks = scope.options.ranks.get(name);
  if (!ranks) return scope.refuse(linear, 'has a LoRA of an unknown rank');
  const t = scope.lifetimes.take(4 * scope.mostRows(x) * Math.max(...ranks));
  scope.step(linear, slotsOf(source), [t], (listing) => {
    const rows = rowsOf(x, listing);
    const down = listing.bindings.tensor(`${name}.down`, 0);
    const [rank = 0] = down.dims;
    const input = source.storage;
    const shape = productShape({ k: inFeatures, n: rank, weight: lora || 'f32', input });
    const y = slotRows(t, listing, 4 * rows * rank);
    const operands = { rows, x: viewOf(x, source, listing), y, weight: down };
    return [linearDispatch(scope.kernels.linear, shape, operands)];
  });
  return t;
}

/** Rows in 8 bits, for the first fast layer of a pass that reads them and for those behind it. */
function roundedRows(scope: GraphScope, x: Value, source: Place): RoundedRows {
  const k = columns(x);
  return scope.rounded(x, () => {
    const bytes = scope.mostRows(x) * k;
    const rounded = { x: scope.lifetimes.take(bytes), xScales: scope.lifetimes.take(bytes / 8) };
    scope.step(x, slotsOf(source), [rounded.x, rounded.xScales], (listing) => {
      const rows = rowsOf(x, listing);
      const operands = {
        source: viewOf(x, source, listing),
        ...roundedViews(rounded, rows, k, listing),
      };
      return [quantiseDispatch(k, source.storage, { rows, ...operands })];
    });
    return rounded;
  });
}

function roundedViews({ x, xScales }: RoundedRows, rows: number, k: number, listing: Listing) {
  return {
    x: slotRows(x, listing, rows * k),
    xScales: slotRows(xScales, listing, (rows * k) / 8),
  };
}
