import { damaged, truncated, type WeightFile } from '../source';

/** Headers beyond this are refused; the largest known, with 256,384 tokens, takes about 6 MB. */
export const maxHeaderBytes = 64 * 2 ** 20;
const firstRead = 64 * 2 ** 10;
const largestRead = 4 * 2 ** 20;

/**
 * A little-endian header, read front to back. Every byte is fetched once, in pieces that grow, and
 * dropped when it has been read. A header that announces more than the file or a header can hold is
 * refused before anything is fetched or allocated for it.
 */
export class HeaderWindow {
  #bytes: Uint8Array = new Uint8Array(0);
  #view = new DataView(new ArrayBuffer(0));
  /** Where `#bytes` begins in the file. */
  #origin = 0;
  #at = 0;
  #nextRead = firstRead;

  constructor(readonly file: WeightFile) {}

  /** Bytes of the header that were read so far. */
  get position(): number {
    return this.#origin + this.#at;
  }

  /** Whether the next `count` bytes can be taken without {@link fetch}. */
  has(count: number): boolean {
    return this.#bytes.length - this.#at >= count;
  }

  /**
   * Refuses what cannot be there.
   *
   * @param count announced items
   * @param bytesEach the least that one of them takes
   * @throws KinoraError `MODEL_FILE_TRUNCATED` past the file's end, `MODEL_FILE_INVALID` past any header
   */
  expect(count: number, bytesEach: number, what: string): void {
    const end = this.position + count * bytesEach;
    if (end <= Math.min(this.file.size, maxHeaderBytes)) return;
    if (end <= maxHeaderBytes) throw truncated(this.file.name, end, this.file.size);
    throw damaged(this.file, `its header announces ${count} ${what}`);
  }

  /** Makes the next `count` bytes takeable. */
  async fetch(count: number, what: string): Promise<void> {
    if (this.has(count)) return;
    this.expect(count, 1, `bytes of ${what}`);
    const rest = this.#bytes.subarray(this.#at);
    const start = this.#origin + this.#bytes.length;
    const readLength = Math.max(count - rest.length, this.#nextRead);
    const end = Math.min(start + readLength, this.file.size, maxHeaderBytes);
    const next = await this.file.read(start, end);
    this.#nextRead = Math.min(this.#nextRead * 4, largestRead);
    const joined = new Uint8Array(rest.length + next.length);
    joined.set(rest);
    joined.set(next, rest.length);
    this.#origin = this.position;
    this.#at = 0;
    this.#bytes = joined;
    this.#view = new DataView(joined.buffer);
  }

  /** The next bytes, which must have been fetched. They are a copy. */
  take(count: number): Uint8Array<ArrayBuffer> {
    const bytes = this.#bytes.slice(this.#at, this.#at + count) as Uint8Array<ArrayBuffer>;
    this.#at += count;
    return bytes;
  }

  /** Text of the next bytes, which must have been fetched. */
  text(length: number, decoder: TextDecoder): string {
    const text = decoder.decode(this.#bytes.subarray(this.#at, this.#at + length));
    this.#at += length;
    return text;
  }

  u32(): number {
    const value = this.#view.getUint32(this.#at, true);
    this.#at += 4;
    return value;
  }

  u64(): bigint {
    const value = this.#view.getBigUint64(this.#at, true);
    this.#at += 8;
    return value;
  }

  /** The next 8 bytes as a length or count: above 2^53 it is no exact number, but never small. */
  length(): number {
    return Number(this.u64());
  }
}

/** Numbers of an array, in the file's own element type. Truth values are bytes. */
export type GgufNumbers =
  | Uint8Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Int16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>
  | BigUint64Array<ArrayBuffer>
  | BigInt64Array<ArrayBuffer>;

/** A metadata value. Integers of 64 bits are numbers where that is exact. */
export type GgufValue = number | bigint | boolean | string | readonly string[] | GgufNumbers;

/** GGUF's value types by number, those of a fixed size. */
const numberTypes: Readonly<
  Record<number, { readonly BYTES_PER_ELEMENT: number; new (buffer: ArrayBuffer): GgufNumbers }>
> = {
  0: Uint8Array,
  1: Int8Array,
  2: Uint16Array,
  3: Int16Array,
  4: Uint32Array,
  5: Int32Array,
  6: Float32Array,
  7: Uint8Array,
  10: BigUint64Array,
  11: BigInt64Array,
  12: Float64Array,
};
const boolType = 7;
const stringType = 8;
const arrayType = 9;
/** Far beyond any known key or tensor name, and short enough for a message. */
const maxNameBytes = 1024;
/** Arrays of arrays are in the format, though no known file has one. */
const maxDepth = 4;

const strictText = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** Tokens of byte-level vocabularies need not be whole characters. */
const lenientText = new TextDecoder('utf-8', { ignoreBOM: true });

/** A key or a tensor's name. @throws KinoraError `MODEL_FILE_INVALID` where it is no UTF-8 */
export async function readName(window: HeaderWindow, what: string): Promise<string> {
  const length = await readLength(window, what);
  if (length > maxNameBytes) throw damaged(window.file, `${what} is ${length} bytes long`);
  await window.fetch(length, what);
  try {
    return window.text(length, strictText);
  } catch (cause) {
    throw damaged(window.file, `${what} is not valid UTF-8`, cause);
  }
}

/**
 * A metadata value of the given type; null for an array of arrays, which is passed over.
 *
 * @throws KinoraError `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`
 */
export async function readValue(
  window: HeaderWindow,
  type: number,
  key: string,
): Promise<GgufValue | null> {
  if (type === stringType) return readString(window, key);
  if (type === arrayType) return readArray(window, key, 1);
  const [value] = await readNumbers(window, type, 1, key);
  if (type === boolType) return value !== 0;
  if (value === undefined) throw damaged(window.file, `${key} has no value`);
  if (typeof value !== 'bigint') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

async function readLength(window: HeaderWindow, what: string): Promise<number> {
  if (!window.has(8)) await window.fetch(8, what);
  return window.length();
}

async function readString(window: HeaderWindow, key: string): Promise<string> {
  const length = await readLength(window, key);
  // A vocabulary is a quarter of a million strings: no await for what is already here.
  if (!window.has(length)) await window.fetch(length, key);
  return window.text(length, lenientText);
}

async function readArray(
  window: HeaderWindow,
  key: string,
  depth: number,
): Promise<GgufValue | null> {
  if (depth > maxDepth) throw damaged(window.file, `${key} is nested too deeply`);
  await window.fetch(12, key);
  const type = window.u32();
  const count = window.length();
  if (type === arrayType) {
    window.expect(count, 12, `arrays in ${key}`);
    for (let i = 0; i < count; i++) await readArray(window, key, depth + 1);
    return null;
  }
  if (type !== stringType) return readNumbers(window, type, count, key);
  window.expect(count, 8, `texts in ${key}`);
  const texts: string[] = [];
  for (let i = 0; i < count; i++) {
    const length = window.has(8) ? window.length() : await readLength(window, key);
    if (!window.has(length)) await window.fetch(length, key);
    texts.push(window.text(length, lenientText));
  }
  return texts;
}

async function readNumbers(
  window: HeaderWindow,
  type: number,
  count: number,
  key: string,
): Promise<GgufNumbers> {
  const Numbers = numberTypes[type];
  if (!Numbers) throw damaged(window.file, `${key} has the unknown value type ${type}`);
  window.expect(count, Numbers.BYTES_PER_ELEMENT, `numbers in ${key}`);
  const bytes = count * Numbers.BYTES_PER_ELEMENT;
  await window.fetch(bytes, key);
  return new Numbers(window.take(bytes).buffer);
}
