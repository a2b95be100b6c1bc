import type { LocalFile } from '../../contract';
import { type ByteSource, blobFile, checkRange, gathered } from '../formats/source';
import type { HubClient, RemoteFile } from './client';
import { RangeReader } from './range-reader';

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
  let size = Math.min(firstBytes, rangeBytes);

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
          const until = Math.min(end, next + size);
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
        size = nextSize(size, rangeBytes, reader.bytes, reader.elapsedMs);
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
    read: (start, end, signal) => gathered(stream(start, end, signal), end - start),
  };
}

/** How long one range should take: what a pause or a lost page throws away is a few of them. */
const aimMs = 1000;
/** Below this the requests themselves would cost more than what they bring. */
const leastBytes = 256 * 1024;
const firstBytes = 512 * 1024;

/**
 * How large the next range of a file should be, after one of so many bytes took so long beside the others that were in
 * flight with it.
 *
 * @param size that of the ranges so far
 */
function nextSize(size: number, most: number, bytes: number, elapsedMs: number): number {
  const fitting = elapsedMs > 0 ? (bytes * aimMs) / elapsedMs : Number.POSITIVE_INFINITY;
  // The last range of a stream may be short: it shows the speed, but must not shrink the size.
  const grown = Math.min(fitting, size * 2);
  return Math.floor(Math.min(most, Math.max(leastBytes, grown)));
}

/** Bytes read at a time: as large as the pieces that are written. */
const pieceBytes = 8 * 2 ** 20;

/** A picked or dropped file. It is the same as long as its name, size and date are. */
export function localByteSource({ path, file }: LocalFile): ByteSource {
  const whole = blobFile(path, file);
  return {
    ...whole,
    identity: `${path}:${file.size}:${file.lastModified}`,
    sha256: null,
    async *stream(start, end, signal) {
      checkRange(path, file.size, start, end);
      for (let at = start; at < end; at += pieceBytes) {
        signal.throwIfAborted();
        yield await whole.read(at, Math.min(end, at + pieceBytes));
      }
    },
  };
}
