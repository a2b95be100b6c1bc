import { type Backend, Scope } from '../../backend';
import * as reference from '../../reference';
import { numbers } from '../../reference';
import type { LinearShape, LinearVariant } from '../choice';
import { rowView } from '../compute';
import { fromBF16, fromHalf, toBF16, toHalf } from '../half';
import type { Storage } from '../kernel';
import { linearDispatch } from '../linear';
import { storageBytes } from '../text';

/** Content of the tensors of a linear call. */
export interface LinearNumbers {
  readonly rows: number;
  readonly x: Float32Array<ArrayBuffer>;
  readonly y: Float32Array<ArrayBuffer>;
  readonly weight: Float32Array<ArrayBuffer>;
  readonly values: Uint8Array<ArrayBuffer>;
  readonly scales: Float32Array<ArrayBuffer>;
  readonly bias: Float32Array<ArrayBuffer>;
  readonly gate: Float32Array<ArrayBuffer>;
  readonly t: Float32Array<ArrayBuffer>;
  readonly up: Float32Array<ArrayBuffer>;
}

/** Operands of a shape; an x that is stored in f16 is rounded already. */
export function linearOperands(shape: LinearShape, rows: number): LinearNumbers {
  const { k, n, rank } = shape;
  const x = numbers(rows * k, 0);
  return {
    rows,
    x: shape.input === 'f16' ? fromHalf(toHalf(x)) : x,
    y: numbers(rows * n, 1),
    weight: rounded(numbers(n * k, 2), shape.weight),
    values: Uint8Array.from(numbers(n * k, 3), (value) => 128 + Math.floor(value * 128)),
    scales: numbers(Math.ceil((n * k) / 32), 4).map((value) => (1 + value) / 64),
    bias: numbers(n, 5),
    gate: numbers(n, 6),
    t: numbers(rows * rank, 7),
    up: rounded(numbers(n * rank, 8), shape.up),
  };
}

function rounded(values: Float32Array<ArrayBuffer>, type: string | undefined) {
  return type === 'bf16' ? fromBF16(toBF16(values)) : values;
}

/** The weight's bytes. */
export function packedWeight(
  shape: LinearShape,
  { values }: LinearNumbers,
): Uint8Array<ArrayBuffer> {
  return shape.weight === 'q4' ? values.slice(0, values.length / 2) : values;
}

/** The result in double precision, of all rows. */
export function expectedLinear(shape: LinearShape, numbers: LinearNumbers): Float64Array {
  const { k, n, rank, weight, epilogue } = shape;
  const { rows, x, y, gate, t, up } = numbers;
  const w =
    weight === 'f32' || weight === 'bf16'
      ? numbers.weight
      : reference.dequantise(packedWeight(shape, numbers), numbers.scales, weight === 'q8' ? 8 : 4);
  const bias = shape.bias ? numbers.bias : new Float32Array(n);
  const sums = reference.linear(x, w, bias, { rows, inner: k, columns: n });
  const branch = reference.linear(t, up, new Float32Array(n), { rows, inner: rank, columns: n });
  return sums.map((sum, i) => {
    const v = sum + (branch[i] ?? 0);
    const before = y[i] ?? 0;
    if (epilogue === 'gelu') {
      return 0.5 * v * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3)));
    }
    if (epilogue === 'added') return before + v;
    return epilogue === 'gated' ? before + (gate[i % n] ?? 0) * v : v;
  });
}

/** How {@link runLinear} places and cuts a call. */
export interface LinearPlacement {
  /** Rows of x and y in front of the call's rows in their tensors. */
  readonly first?: number;
  /** The part of the rows that is computed; all of them when absent. */
  readonly start?: number;
  readonly count?: number;
  /** Receives the number of clamped results. */
  readonly overflows?: { count: number };
}

/**
 * Runs a linear kernel on a device.
 *
 * @returns the computed rows
 * @throws Error when a row beside them was changed
 */
export async function runLinear(
  backend: Backend,
  variant: LinearVariant,
  shape: LinearShape,
  numbers: LinearNumbers,
  placement: LinearPlacement = {},
): Promise<Float32Array<ArrayBuffer>> {
  const { k, n, rank } = shape;
  const { first = 0, start = 0, count = numbers.rows } = placement;
  const scope = new Scope(backend);
  const stored = (storage: Storage, values: Float32Array<ArrayBuffer>, width: number) => {
    const all = new Float32Array((first + numbers.rows + 1) * width).fill(7);
    all.set(values, first * width);
    return storage === 'f32'
      ? scope.tensor('float32', [all.length / width, width], 'activations', all)
      : scope.tensor('float16', [all.length / width, width], 'activations', toHalf(all));
  };
  const float = (values: Float32Array<ArrayBuffer>, type = 'f32') => {
    if (type !== 'bf16') return scope.tensor('float32', [values.length], 'weights', values);
    const bytes = new Uint8Array(toBF16(values).buffer);
    return scope.tensor('uint8', [bytes.length], 'weights', bytes);
  };
  try {
    const y = stored(shape.output, numbers.y, n);
    const view = (tensor: typeof y, width: number, storage: Storage) =>
      rowView(tensor, first + start, count, width * storageBytes(storage));
    const bytes = packedWeight(shape, numbers);
    const overflows = scope.tensor('int32', [1], 'activations');
    const job = linearDispatch(variant, shape, {
      rows: count,
      x: view(stored(shape.input, numbers.x, k), k, shape.input),
      y: view(y, n, shape.output),
      ...(shape.weight === 'f32' || shape.weight === 'bf16'
        ? { weight: float(numbers.weight, shape.weight) }
        : {
            values: scope.tensor('uint8', [bytes.length], 'weights', bytes),
            scales: float(numbers.scales),
          }),
      ...(shape.bias && { bias: float(numbers.bias) }),
      ...(shape.epilogue === 'gated' && {
        gate: rowView(stored('f32', numbers.gate, n), first, 1, n * 4),
      }),
      ...(rank > 0 && {
        t: view(stored('f32', numbers.t, rank), rank, 'f32'),
        up: float(numbers.up, shape.up),
      }),
      ...(shape.counted && { overflows }),
    });
    if (!backend.compute) throw new Error('the backend runs no kernels');
    await backend.compute.dispatch([job]);
    const [from, to] = [(first + start) * n, (first + start + count) * n];
    const all = await backend.read(y);
    const beside = [...all.subarray(0, first * n), ...all.subarray((first + numbers.rows) * n)];
    if (beside.some((value) => value !== 7)) throw new Error('a row beside the call was changed');
    if (placement.overflows) {
      const bits = scope.tensor('float32', [1], 'activations');
      // Copied as they are: a small count is a subnormal.
      backend.copy(overflows, 0, bits, 0, 1);
      placement.overflows.count = new Int32Array((await backend.read(bits)).buffer)[0] ?? 0;
    }
    return all.slice(from, to);
  } finally {
    scope.dispose();
  }
}
