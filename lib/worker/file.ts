import { servedName } from '../contract/lora-files';
import { untilStalled } from '../contract/until-stalled';
import type { Clock } from '../weights/hub/retry';
import { Backoff, isTransient, retryAfterOf } from './retry';
import { checkResponse, TransportError, toTransportError } from './transport-error';

/** How often and how long a file is tried, in milliseconds. */
export interface FileTimeouts {
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
  /** How long an answer may bring nothing. */
  readonly stallMs: number;
  /** After so long without anything there is no further attempt. */
  readonly giveUpMs: number;
}

/** For inputs, which are waited for with the GPU's lock: about twenty seconds without a byte. */
export const inputTimeouts: FileTimeouts = {
  firstDelayMs: 500,
  longestDelayMs: 4000,
  stallMs: 10_000,
  giveUpMs: 15_000,
};

/**
 * Fetches a file whole. It is tried for a short time only; what still comes may take as long as it takes.
 *
 * @throws ApiError what the relay refuses with; TransportError where nothing came; the signal's reason
 */
export async function fetchFile(
  send: typeof fetch,
  clock: Clock,
  url: string,
  timeouts: FileTimeouts,
  signal?: AbortSignal,
): Promise<File> {
  const { firstDelayMs, longestDelayMs, stallMs, giveUpMs } = timeouts;
  const backoff = new Backoff(firstDelayMs, longestDelayMs, clock.random);
  let last = clock.now();
  let furthest = 0;
  for (;;) {
    try {
      const stall = new TransportError('the server sends nothing more');
      return await untilStalled(stallMs, stall, signal, async (abort, { came }) => {
        const response = await send(url, { signal: abort });
        await checkResponse(response);
        return bodyOf(response, (bytes) => {
          came();
          // Every attempt begins anew: only what none has had before is progress.
          if (bytes > furthest) last = clock.now();
          furthest = Math.max(furthest, bytes);
        });
      });
    } catch (thrown) {
      signal?.throwIfAborted();
      const waitMs = Math.max(backoff.next(), retryAfterOf(thrown));
      const late = clock.now() + waitMs - last > giveUpMs;
      if (!isTransient(thrown) || late) throw toTransportError(thrown);
      await clock.sleep(waitMs, signal);
    }
  }
}

/** The body of an answer, named as the server says; tells with each piece how many bytes there are. */
async function bodyOf(response: Response, came: (bytes: number) => void): Promise<File> {
  const reader = response.body?.getReader();
  const parts: Blob[] = [];
  let bytes = 0;
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    bytes += piece.value.length;
    came(bytes);
    // The browser may move the bytes of a blob to its disk.
    parts.push(new Blob([new Uint8Array(piece.value)]));
  }
  const { headers } = response;
  const name = servedName(headers.get('content-disposition'), []) ?? '';
  return new File(parts, name, { type: headers.get('content-type') ?? '' });
}
