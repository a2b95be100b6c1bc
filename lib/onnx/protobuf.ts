/**
 * The part of Protocol Buffers that an ONNX model needs: varints, floats and length-delimited fields.
 * Field numbers of `onnx.proto` never change.
 */
const text = new TextEncoder();

/** Appends protobuf fields to a growing byte list. */
export class ProtoWriter {
  #bytes = new Uint8Array(256);
  #length = 0;

  /** Field of wire type 0. Negative values are written as 64-bit two's complement. */
  int(field: number, value: number | bigint): this {
    this.#varint(BigInt(field) << 3n);
    this.#varint(BigInt.asUintN(64, BigInt(value)));
    return this;
  }

  /** Field of wire type 5, little-endian IEEE 754. */
  float(field: number, value: number): this {
    this.#varint((BigInt(field) << 3n) | 5n);
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setFloat32(0, value, true);
    this.#append(bytes);
    return this;
  }

  /** Field of wire type 2. */
  bytes(field: number, value: Uint8Array): this {
    this.#varint((BigInt(field) << 3n) | 2n);
    this.#varint(BigInt(value.length));
    this.#append(value);
    return this;
  }

  string(field: number, value: string): this {
    return this.bytes(field, text.encode(value));
  }

  message(field: number, write: (writer: ProtoWriter) => void): this {
    const inner = new ProtoWriter();
    write(inner);
    return this.bytes(field, inner.finish());
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }

  #varint(value: bigint): void {
    const bytes: number[] = [];
    let rest = value;
    do {
      const low = Number(rest & 0x7fn);
      rest >>= 7n;
      bytes.push(rest === 0n ? low : low | 0x80);
    } while (rest !== 0n);
    this.#append(bytes);
  }

  #append(bytes: ArrayLike<number>): void {
    const needed = this.#length + bytes.length;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = needed;
  }
}
