/** GGUF files for tests, right or wrong. */
import type { WeightFile } from '../formats/source';

/** A metadata value with its GGUF type: u8 0, i32 5, u32 4, f32 6, bool 7, text 8, list 9, u64 10. */
export interface GgufTestValue {
  readonly type: number;
  readonly value: number | bigint | string | readonly GgufTestValue[];
  /** Type of the items of a list. */
  readonly items?: number;
}

export interface GgufTestTensor {
  readonly name: string;
  /** Slowest first, as PyTorch has it. */
  readonly shape: readonly number[];
  /** Number of the GGML type. */
  readonly type: number;
  /** Bytes that it takes. */
  readonly bytes: number;
  /** Where its bytes begin in the data; behind the tensor before it when absent. */
  readonly offset?: bigint;
}

export interface GgufTestFile {
  readonly version?: number;
  readonly metadata?: Readonly<Record<string, GgufTestValue>>;
  readonly tensors?: readonly GgufTestTensor[];
  readonly alignment?: number;
  /** What the header announces, where it shall lie. */
  readonly counts?: { readonly tensors?: bigint; readonly values?: bigint };
}

export const text = (value: string): GgufTestValue => ({ type: 8, value });
export const u32 = (value: number): GgufTestValue => ({ type: 4, value });
export const list = (
  items: number,
  values: readonly (number | bigint | string)[],
): GgufTestValue => ({
  type: 9,
  items,
  value: values.map((value) => ({ type: items, value })),
});

/** The bytes of a header, padded to where the data begins. */
export function ggufHeader(file: GgufTestFile): Uint8Array<ArrayBuffer> {
  const { version = 3, metadata = {}, tensors = [], alignment = 32, counts } = file;
  const parts: Uint8Array[] = [];
  function push(...bytes: (Uint8Array | readonly Uint8Array[])[]): void {
    for (const part of bytes.flat()) parts.push(part);
  }
  push(new TextEncoder().encode('GGUF'), number(4, version));
  push(number(10, counts?.tensors ?? BigInt(tensors.length)));
  push(number(10, counts?.values ?? BigInt(Object.keys(metadata).length)));
  for (const [key, value] of Object.entries(metadata)) {
    push(string(key), number(4, value.type));
    for (const part of valueBytes(value)) push(part);
  }
  let offset = 0n;
  for (const tensor of tensors) {
    push(string(tensor.name), number(4, tensor.shape.length));
    for (const n of tensor.shape.toReversed()) push(number(10, BigInt(n)));
    push(number(4, tensor.type), number(10, tensor.offset ?? offset));
    offset += BigInt(Math.ceil(tensor.bytes / alignment) * alignment);
  }
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = new Uint8Array(Math.ceil(length / alignment) * alignment);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** A header with as many zeros behind it as its tensors take. */
export function ggufBytes(file: GgufTestFile): Uint8Array<ArrayBuffer> {
  const header = ggufHeader(file);
  const bytes = new Uint8Array(header.length + dataBytes(file));
  bytes.set(header);
  return bytes;
}

/** Bytes that the tensors of a file take, padding between them included. */
export function dataBytes({ tensors = [], alignment = 32 }: GgufTestFile): number {
  return tensors.reduce((sum, { bytes }) => Math.ceil((sum + bytes) / alignment) * alignment, 0);
}

/** A file of any size of which only the beginning exists; the rest reads as zeros. */
export function virtualFile(name: string, head: Uint8Array, size: number): WeightFile {
  return {
    name,
    size,
    async read(start, end) {
      if (end > size) throw new RangeError(`${name} was read to ${end} of ${size}.`);
      const bytes = new Uint8Array(end - start);
      if (start < head.length) bytes.set(head.subarray(start, Math.min(end, head.length)));
      return bytes;
    },
  };
}

/** A file that counts what is read of it. */
export function countedFile(file: WeightFile): WeightFile & { bytesRead: number; reads: number } {
  const counted = {
    name: file.name,
    size: file.size,
    bytesRead: 0,
    reads: 0,
    read(start: number, end: number) {
      counted.bytesRead += end - start;
      counted.reads += 1;
      return file.read(start, end);
    },
  };
  return counted;
}

function string(value: string): Uint8Array[] {
  const bytes = new TextEncoder().encode(value);
  return [number(10, BigInt(bytes.length)), bytes];
}

function valueBytes({ type, value, items = 0 }: GgufTestValue): Uint8Array[] {
  if (typeof value === 'string') return string(value);
  if (typeof value !== 'object') return [number(type, value)];
  return [number(4, items), number(10, BigInt(value.length)), ...value.flatMap(valueBytes)];
}

function number(type: number, value: number | bigint): Uint8Array {
  const bytes = new Uint8Array([1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8][type] ?? 1);
  const view = new DataView(bytes.buffer);
  if (type === 6) view.setFloat32(0, Number(value), true);
  else if (type === 12) view.setFloat64(0, Number(value), true);
  else if (bytes.length === 8) view.setBigUint64(0, BigInt.asUintN(64, BigInt(value)), true);
  else if (bytes.length === 4) view.setUint32(0, Number(value) >>> 0, true);
  else if (bytes.length === 2) view.setUint16(0, Number(value) & 0xffff, true);
  else view.setUint8(0, Number(value) & 0xff);
  return bytes;
}
