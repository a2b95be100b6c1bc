/** Files of weights made in memory, for tests in Node and in browsers. */

/** A tensor to be written. */
export interface TestTensor {
  readonly dtype?: string;
  readonly shape: readonly number[];
  readonly data: Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;
}

/** A tensor of f32 zeros, or of given values. */
export function f32(shape: readonly number[], values?: readonly number[]): TestTensor {
  const count = shape.reduce((all, n) => all * n, 1);
  return { shape, data: values ? Float32Array.from(values) : new Float32Array(count) };
}

/** The bytes of a safetensors file. */
export function safetensorsBytes(
  tensors: Readonly<Record<string, TestTensor>>,
  metadata?: Readonly<Record<string, string>>,
): Uint8Array<ArrayBuffer> {
  let offset = 0;
  const header: Record<string, unknown> = metadata ? { __metadata__: metadata } : {};
  for (const [name, { dtype = 'F32', shape, data }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
  }
  return safetensorsFrom(
    header,
    Object.values(tensors).map(({ data }) => data),
  );
}

/** The bytes of a safetensors file with any header, right or wrong. */
export function safetensorsFrom(
  header: unknown,
  data: readonly ArrayBufferView<ArrayBuffer>[],
): Uint8Array<ArrayBuffer> {
  const json = new TextEncoder().encode(
    typeof header === 'string' ? header : JSON.stringify(header),
  );
  const total = data.reduce((sum, view) => sum + view.byteLength, 8 + json.length);
  const bytes = new Uint8Array(total);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  let at = 8 + json.length;
  for (const view of data) {
    bytes.set(new Uint8Array(view.buffer, view.byteOffset, view.byteLength), at);
    at += view.byteLength;
  }
  return bytes;
}
