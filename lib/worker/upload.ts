import { ApiError } from '../contract/v3/errors';
import type { UploadAnswer } from '../contract/v3/worker';
import type { WorkerClient } from './client';
import { Backoff, isTransient, retryAfterOf } from './retry';
import { isLeaseLost } from './transport-error';

/** Where a video goes. */
export interface UploadTarget {
  readonly id: string;
  readonly leaseToken: string;
  /** Of the whole file, hex. */
  readonly sha256: string;
}

/** What sends the requests of an upload. */
export type UploadClient = Pick<WorkerClient, 'output' | 'clock'>;

/** How often in a row the relay may disagree about how much it has. */
const disagreements = 3;
/**
 * After what a request that sends nothing counts as stalled, in milliseconds. `fetch` does not tell how
 * much it has sent.
 */
const shortMs = 30_000;
/** What the slowest line carries, in bytes in a millisecond. */
const slowest = 16;
/** Most times that the limit doubles. */
const doublings = 6;

/**
 * Sends a video whole; after a cut it asks how much is there and sends the rest. It is tried until
 * the signal ends it: as long as the lease stands, the work is not lost. A request that stalls counts as
 * cut.
 *
 * @throws ApiError `LEASE_LOST` and other refusals
 * @throws the signal's reason
 */
export async function uploadVideo(
  client: UploadClient,
  target: UploadTarget,
  file: Blob,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff(1000, 15_000, client.clock.random);
  let offset = 0;
  let conflicts = 0;
  for (let tried = 0; ; tried++) {
    let askedMs = 0;
    // Longer each time: a slow line, or a relay that keeps no parts, gets it through as well.
    const fullMs = shortMs + (file.size - offset) / slowest;
    const limitMs = Math.round(fullMs * 2 ** Math.min(tried, doublings));
    try {
      const { received, complete } = await send(client, target, file, offset, signal, limitMs);
      if (complete) return;
      if (received > offset) backoff.reset();
    } catch (thrown) {
      signal.throwIfAborted();
      const conflict = thrown instanceof ApiError && thrown.code === 'CONFLICT';
      if (!isTransient(thrown) && !conflict) throw thrown;
      if (conflict && ++conflicts > disagreements) throw thrown;
      askedMs = retryAfterOf(thrown);
    }
    await client.clock.sleep(Math.max(backoff.next(), askedMs), signal);
    offset = await receivedSoFar(client, target, file.size, signal);
  }
}

async function send(
  client: UploadClient,
  target: UploadTarget,
  file: Blob,
  offset: number,
  signal: AbortSignal,
  limitMs: number,
): Promise<UploadAnswer> {
  const { size } = file;
  const range = { 'Content-Range': `bytes ${offset}-${size - 1}/${size}` };
  const headers = { 'Content-Type': 'video/mp4', ...(offset > 0 && range) };
  const body = offset > 0 ? file.slice(offset) : file;
  const response = await client.output(target, { method: 'PUT', headers, body }, signal, limitMs);
  const answer = (await response.json()) as UploadAnswer | { readonly data: UploadAnswer };
  return 'data' in answer ? answer.data : answer;
}

/** Bytes that the relay has; all of it, or no answer, means to send the whole again, which is no error. */
async function receivedSoFar(
  client: UploadClient,
  target: UploadTarget,
  size: number,
  signal: AbortSignal,
): Promise<number> {
  try {
    const response = await client.output(target, { method: 'HEAD' }, signal, shortMs);
    const offset = Number(response.headers.get('Upload-Offset') ?? 0);
    return Number.isInteger(offset) && offset > 0 && offset < size ? offset : 0;
  } catch (thrown) {
    signal.throwIfAborted();
    if (isLeaseLost(thrown)) throw thrown;
    return 0;
  }
}
