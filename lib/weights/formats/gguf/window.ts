import { KinoraError } from '../../../contract';
import { truncated, type WeightFile } from '../source';

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
    throw new KinoraError(
      'MODEL_FILE_INVALID',
      `${this.file.name} is damaged: its header announces ${count} ${what}.`,
    );
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
