import type { ByteSource } from '../formats/byte-source';
import { checkRange } from '../formats/source';
import type { HubClient, RemoteFile } from './client';
import { RangeReader } from './range-reader';
import { RangeSize } from './range-size';

/** How a file is fetched. */
export interface ByteSourceOptions {
  /** Most bytes of one range; memory is bounded by `parallel` of them. */
  readonly rangeBytes: number;
  /** Ranges in flight at once. */
  readonly parallel: number;
  /** Called with the length of each piece as it arrives, long before it is handed on in order. */
  readonly onBytes?: (bytes: number) => void;
}

const standardOptions: ByteSourceOptions = { rangeBytes: 8 * 2 ** 20, parallel: 4 };

/**
 * A file of the hub, or of another web server, that is read while it is fetched. Its content goes
 * through `parallel` ranges at a time, as large as the line is fast; each goes on at the byte where it
 * was cut, and what comes is handed on in order.
 */
export function hubByteSource(
  client: HubClient,
  file: RemoteFile,
  options: Partial<ByteSourceOptions> = {},
): ByteSource {
  const { rangeBytes, parallel, onBytes } = { ...standardOptions, ...options };
  const etags = new Set<string>();
  const size = new RangeSize(rangeBytes);

  async function* stream(start: number, end: number, signal?: AbortSignal) {
    checkRange(file.name, file.size, start, end);
    const stop = new AbortController();
    const either = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
    const readers: RangeReader[] = [];
    const common = { client, file, etags, streamEnd: end, mostQueued: rangeBytes, onBytes };
    let next = start;
    try {
      for (;;) {
        while (next < end && readers.length < parallel) {
          const until = Math.min(end, next + size.bytes);
          const reader = new RangeReader({ ...common, start: next, end: until });
          reader.leading = readers.push(reader) === 1;
          reader.start(either);
          next = until;
        }
        const reader = readers[0];
        if (!reader) return;
        reader.leading = true;
        yield* reader;
        // A server that knows no ranges has sent everything through this one.
        if (reader.end === end) return;
        size.learn(reader.bytes, reader.elapsedMs);
        readers.shift();
      }
    } finally {
      stop.abort();
    }
  }

  return {
    name: file.name,
    size: file.size,
    identity: file.identity,
    sha256: file.sha256,
    gitSha1: file.gitSha1,
    stream,
    async read(start, end, signal) {
      checkRange(file.name, file.size, start, end);
      const whole = new Uint8Array(end - start);
      let at = 0;
      for await (const bytes of stream(start, end, signal)) {
        whole.set(bytes, at);
        at += bytes.length;
      }
      return whole;
    },
  };
}
