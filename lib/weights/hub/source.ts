import type { ByteSource } from '../byte-source';
import { checkRange } from '../source';
import type { HubClient, RemoteFile } from './client';
import { RangeReader } from './range-reader';

/** How a file is fetched. */
export interface ByteSourceOptions {
  /** Bytes of one range; memory is bounded by `parallel` of them. */
  readonly rangeBytes: number;
  /** Ranges in flight at once. */
  readonly parallel: number;
}

const standardOptions: ByteSourceOptions = { rangeBytes: 8 * 2 ** 20, parallel: 4 };

/**
 * A file of the hub, or of another web server, that is read while it is fetched. Its content goes
 * through `parallel` ranges at a time; each goes on at the byte where it was cut, and what comes is
 * handed on in order.
 */
export function hubByteSource(
  client: HubClient,
  file: RemoteFile,
  options: Partial<ByteSourceOptions> = {},
): ByteSource {
  const { rangeBytes, parallel } = { ...standardOptions, ...options };
  const etags = new Set<string>();

  async function* stream(start: number, end: number, signal: AbortSignal) {
    checkRange(file.name, file.size, start, end);
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    const readers: RangeReader[] = [];
    let next = start;
    try {
      for (;;) {
        while (next < end && readers.length < parallel) {
          const until = Math.min(end, next + rangeBytes);
          const reader = new RangeReader(client, file, etags, next, until, end, rangeBytes);
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
    stream,
    async read(start, end) {
      checkRange(file.name, file.size, start, end);
      const whole = new Uint8Array(end - start);
      let at = 0;
      for await (const bytes of stream(start, end, new AbortController().signal)) {
        whole.set(bytes, at);
        at += bytes.length;
      }
      return whole;
    },
  };
}
