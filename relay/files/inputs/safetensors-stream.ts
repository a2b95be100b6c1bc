import type { Readable } from 'node:stream';
import { KinoraError } from '../../../lib/contract';
import { readSafetensorsHeader } from '../../../lib/weights/formats/safetensors';
import { truncated, type WeightFile } from '../../../lib/weights/formats/source';

/** Largest accepted header, which is kept in memory; that of a LoRA is well under 1 MB. */
const maxHeaderBytes = 16_000_000;

/**
 * Checks the header of a safetensors stream before any byte is sent on. Only the header is kept in memory.
 *
 * @param name for messages
 * @param announced length of the stream; null where its sender does not give it
 * @returns the length that the header gives, and exactly so many bytes, or an error at their end
 * @throws KinoraError `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`; what the source throws
 */
export async function checkedSafetensors(
  name: string,
  source: Readable,
  announced: number | null,
): Promise<{ bytes: number; body: AsyncGenerator<Uint8Array> }> {
  const pieces = source[Symbol.asyncIterator]();
  let head = new Uint8Array();
  const readUpTo = async (length: number) => {
    const collected = [head];
    let bytes = head.length;
    while (bytes < length) {
      const next = await pieces.next();
      if (next.done) throw truncated(name, length, bytes);
      collected.push(next.value);
      bytes += next.value.length;
    }
    head = Buffer.concat(collected);
  };
  try {
    await readUpTo(9);
    const headerBytes = new DataView(head.buffer, head.byteOffset).getBigUint64(0, true);
    // A web page begins with "<", which reads as a length of many exabytes.
    if (headerBytes > maxHeaderBytes || head[8] !== 0x7b) {
      throw new KinoraError('MODEL_FILE_INVALID', `${name} is not a safetensors file.`);
    }
    await readUpTo(8 + Number(headerBytes));
    const bytes = announced ?? lengthByHeader(head, Number(headerBytes));
    await readSafetensorsHeader(headOf(name, head, bytes));
    return { bytes, body: withHead(name, head, pieces, bytes) };
  } catch (thrown) {
    source.destroy();
    throw thrown;
  }
}

/** The beginning of a file as a whole file, of which only the header is read. */
function headOf(name: string, head: Uint8Array, size: number): WeightFile {
  return {
    name,
    size,
    async read(start, end) {
      if (end > head.length) throw truncated(name, end, head.length);
      return head.subarray(start, end);
    },
  };
}

/** Where the last tensor ends. A malformed header is reported by {@link readSafetensorsHeader}. */
function lengthByHeader(head: Uint8Array, headerBytes: number): number {
  const start = 8 + headerBytes;
  try {
    const table: unknown = JSON.parse(new TextDecoder().decode(head.subarray(8, start)));
    const ends = Object.values(table ?? {}).map((entry: { data_offsets?: unknown } | null) => {
      const offsets = Array.isArray(entry?.data_offsets) ? entry.data_offsets : [];
      return Number(offsets[1] ?? 0);
    });
    return start + ends.reduce((last, end) => Math.max(last, end), 0);
  } catch {
    return start;
  }
}

async function* withHead(
  name: string,
  head: Uint8Array,
  rest: AsyncIterator<Uint8Array>,
  bytes: number,
): AsyncGenerator<Uint8Array> {
  let passed = 0;
  try {
    for (let piece = head; ; ) {
      passed += piece.length;
      if (passed > bytes) {
        throw new KinoraError('MODEL_FILE_INVALID', `${name} is longer than its table says.`);
      }
      yield piece;
      const next = await rest.next();
      if (next.done) break;
      piece = next.value;
    }
    if (passed < bytes) throw truncated(name, bytes, passed);
  } finally {
    await rest.return?.();
  }
}
