import { type Backend, Scope } from '../../backend';
import { attention } from '../../reference';
import type { DeviceTensor } from '../../tensor';
import { type AttentionRun, attentionDispatch, type HeadView } from '../attention';
import { fastAttentionDispatch } from '../attention-dp4a';
import { matrixAttentionDispatch } from '../attention-matrix';
import {
  packedValues,
  packedWidth,
  type QuantisedHeads,
  quantiseRows,
  quantiseValues,
} from '../attention-quantise';
import type { AttentionShape, AttentionVariant, MatrixAttentionVariant } from '../choice';
import { type Dispatch, rowView } from '../compute';
import { fromHalf, toHalf } from '../half';
import type { Storage } from '../kernel';
import { storageBytes } from '../text';

/** A call of attention with its numbers, heads interleaved. */
export interface Attended {
  readonly heads: number;
  readonly size: number;
  readonly q: Float32Array<ArrayBuffer>;
  readonly k: Float32Array<ArrayBuffer>;
  readonly v: Float32Array<ArrayBuffer>;
  /** [rows, keys], shared by the heads. */
  readonly bias?: Float32Array<ArrayBuffer>;
  readonly lastBias?: number;
}

/** Pseudo-random numbers of a normal distribution. */
export function normal(count: number, salt: number): Float32Array<ArrayBuffer> {
  let state = Math.imul(salt + 1, 0x9e3779b1) >>> 0;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  return Float32Array.from(
    { length: count },
    () => Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next()),
  );
}

/** A call with normally distributed numbers. */
export function randomCall(rows: number, keys: number, heads: number, size: number): Attended {
  const [q, k, v] = [rows, keys, keys].map((count, i) => normal(count * heads * size, i));
  return { heads, size, q, k, v } as Attended;
}

/** Rows and keys of a call. */
export function sizesOf({ q, k, heads, size }: Attended): { rows: number; keys: number } {
  return { rows: q.length / heads / size, keys: k.length / heads / size };
}

/** The result in double precision, of operands as they are stored. */
export function expectedOf(call: Attended, { q, kv }: Pick<AttentionShape, 'q' | 'kv'>) {
  const { rows, keys } = sizesOf(call);
  const bias = Float64Array.from({ length: rows * keys }, (_, i) => call.bias?.[i] ?? 0);
  if (call.lastBias !== undefined) {
    for (let row = 0; row < rows; row++) bias[row * keys + keys - 1] = call.lastBias;
  }
  return attention(asStored(call.q, q), asStored(call.k, kv), asStored(call.v, kv), bias, {
    rows,
    keys,
    heads: call.heads,
    size: call.size,
  });
}

/** Numbers as a storage rounds them. */
export function asStored(values: Float32Array<ArrayBuffer>, storage: Storage) {
  return storage === 'f32' ? values : fromHalf(toHalf(values));
}

/** How a test runs a call: in parts of `chunk` rows, each tensor with `before` rows in front of its own. */
export interface Manner {
  readonly headMajor?: boolean;
  readonly chunk?: number;
  readonly before?: number;
  /** With products of 8-bit integers. */
  readonly fast?: boolean;
}

/** Runs a call on the GPU. @returns the result, heads interleaved */
export async function attend(
  backend: Backend,
  variant: AttentionVariant | MatrixAttentionVariant,
  shape: AttentionShape,
  call: Attended,
  manner: Manner = {},
): Promise<Float32Array> {
  const { headMajor = false, chunk = Number.POSITIVE_INFINITY, before = 0, fast } = manner;
  const { compute } = backend;
  if (!compute) throw new Error('the GPU runs no kernels');
  const { heads, size, bias, lastBias } = call;
  const { rows, keys } = sizesOf(call);
  const scope = new Scope(backend);
  const width = heads * size;
  /** Where (row, head) begins in a tensor with `count` rows. */
  const placeOf = (row: number, head: number, count: number) =>
    headMajor
      ? (head * (before + count) + before + row) * size
      : (before + row) * width + head * size;
  const tensorOf = (values: Float32Array, count: number, storage: Storage): DeviceTensor => {
    const laid = new Float32Array((before + count) * width);
    for (let row = 0; row < count; row++) {
      for (let head = 0; head < heads; head++) {
        const start = row * width + head * size;
        laid.set(values.subarray(start, start + size), placeOf(row, head, count));
      }
    }
    return storage === 'f32'
      ? scope.float32([laid.length], 'activations', laid)
      : scope.tensor('float16', [laid.length], 'activations', toHalf(laid));
  };
  const viewOf = (
    tensor: DeviceTensor,
    storage: Storage,
    first: number,
    count: number,
    of: number,
  ): HeadView =>
    headMajor
      ? {
          operand: { tensor },
          firstRow: before + first,
          headStride: (before + of) * size,
          rowStride: size,
        }
      : {
          ...rowView(tensor, before + first, count, width * storageBytes(storage)),
          headStride: size,
          rowStride: width,
        };
  try {
    const q = tensorOf(call.q, rows, shape.q);
    const [k, v] = [tensorOf(call.k, keys, shape.kv), tensorOf(call.v, keys, shape.kv)];
    const out = tensorOf(new Float32Array(rows * width), rows, shape.out);
    const added = bias && scope.float32([rows, keys], 'activations', bias);
    const jobs: Dispatch[] = [];
    const inBytes = (x: HeadView, storage: Storage, count: number, mean?: DeviceTensor) => {
      const words = [heads, count, packedWidth(size)];
      const y: QuantisedHeads = {
        values: scope.tensor('int32', words, 'activations'),
        scales: scope.float32([heads, count], 'activations'),
      };
      jobs.push(
        ...quantiseRows({
          x,
          storage,
          headSize: size,
          heads,
          rows: count,
          y,
          ...(mean && { mean }),
        }),
      );
      return y;
    };
    const keyView = viewOf(k, shape.kv, 0, keys, keys);
    const mean = fast && scope.float32([heads, size], 'activations');
    const fastKeys = mean && inBytes(keyView, shape.kv, keys, mean);
    const fastValues = fast && {
      values: scope.tensor('int32', [heads, packedValues(keys, size)], 'activations'),
      ranges: scope.float32([heads, 2, size], 'activations'),
    };
    if (fastValues) {
      const x = viewOf(v, shape.kv, 0, keys, keys);
      const rounded = { x, storage: shape.kv, headSize: size, heads, rows: keys, y: fastValues };
      jobs.push(...quantiseValues(rounded));
    }
    for (let first = 0; first < rows; first += chunk) {
      const count = Math.min(chunk, rows - first);
      const query = viewOf(q, shape.q, first, count, rows);
      const run: AttentionRun = {
        q: query,
        k: keyView,
        v: viewOf(v, shape.kv, 0, keys, keys),
        out: viewOf(out, shape.out, first, count, rows),
        heads,
        rows: count,
        keys,
        scale: 1 / Math.sqrt(size),
        ...(lastBias !== undefined && { lastBias }),
        ...(added && { bias: { tensor: added, headStride: 0 } }),
      };
      if ('parts' in variant) {
        jobs.push(matrixAttentionDispatch(variant, shape, run));
        continue;
      }
      jobs.push(
        fastKeys && fastValues
          ? fastAttentionDispatch(variant, shape, {
              ...run,
              q: inBytes(query, shape.q, count),
              k: fastKeys,
              v: fastValues,
            })
          : attentionDispatch(variant, shape, run),
      );
    }
    await compute.dispatch(jobs);
    const laid = await backend.read(out as Parameters<Backend['read']>[0]);
    const result = new Float32Array(rows * width);
    for (let row = 0; row < rows; row++) {
      for (let head = 0; head < heads; head++) {
        const start = placeOf(row, head, rows);
        result.set(laid.subarray(start, start + size), row * width + head * size);
      }
    }
    return result;
  } finally {
    scope.dispose();
  }
}
