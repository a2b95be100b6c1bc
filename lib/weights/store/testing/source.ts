/** Byte sources for tests: bytes in memory that count what is read of them. */
import { createHash } from 'node:crypto';
import { type ByteSource, checkRange, SourceChanged } from '../../formats/source';
import type { StoreFolder, StoreWriter } from '../folder';

export interface TestSource extends ByteSource {
  /** How often each byte was given out. */
  readonly reads: Uint16Array;
}

export interface TestSourceOptions {
  readonly identity?: string;
  readonly sha256?: string | null;
  /** Bytes per piece of the stream. */
  readonly chunk?: number;
  /** The stream ends here, without a word. */
  readonly endsAt?: number;
  /** From here on the file is another one. */
  readonly changesAt?: number;
}

/** A source that announces its right SHA-256, unless the options have another one. */
export function testSource(
  name: string,
  bytes: Uint8Array,
  options: TestSourceOptions = {},
): TestSource {
  const reads = new Uint16Array(bytes.length);
  const { identity = 'first', chunk = 1000, endsAt = Infinity, changesAt = Infinity } = options;
  const { sha256 = createHash('sha256').update(bytes).digest('hex') } = options;
  function give(start: number, end: number): Uint8Array {
    for (let i = start; i < end; i++) reads[i] = (reads[i] ?? 0) + 1;
    return bytes.slice(start, end);
  }
  return {
    name,
    size: bytes.length,
    identity,
    sha256,
    reads,
    async read(start, end) {
      checkRange(name, bytes.length, start, end);
      return give(start, end);
    },
    async *stream(start, end, signal) {
      for (let at = start; at < end && at < endsAt; at += chunk) {
        signal.throwIfAborted();
        if (at >= changesAt) throw new SourceChanged(name);
        yield give(at, Math.min(end, endsAt, at + chunk));
      }
    },
  };
}

/** A folder whose files stop to be writable after so many bytes; the last write is cut in the middle. */
export function failingFolder(folder: StoreFolder, bytes: number, fail: () => Error): StoreFolder {
  let left = bytes;
  async function wrap(writer: StoreWriter): Promise<StoreWriter> {
    return {
      get size() {
        return writer.size;
      },
      async write(at, data) {
        if (data.length > left) {
          await writer.write(at, data.subarray(0, left));
          left = 0;
          throw fail();
        }
        left -= data.length;
        await writer.write(at, data);
      },
      truncate: (size) => writer.truncate(size),
      flush: () => writer.flush(),
      close: () => writer.close(),
    };
  }
  return { ...folder, write: async (path) => wrap(await folder.write(path)) };
}
