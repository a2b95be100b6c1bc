import type { WorkerClient } from './client';
import { Backoff, isTransient, retryAfterOf } from './transport-error';

/** Target of a video. */
export interface UploadTarget {
  readonly id: string;
  readonly leaseToken: string;
  /** SHA-256 of the whole file, hex. */
  readonly sha256: string;
}

/** Client that sends the requests of an upload. */
export type UploadClient = Pick<WorkerClient, 'output' | 'clock'>;

/** After what a request that sends nothing counts as stalled, in milliseconds: `fetch` tells no progress. */
const shortMs = 30_000;
/** Rate of the slowest line, in bytes per millisecond. */
const slowest = 16;
/** Most times that the limit doubles. */
const doublings = 6;

/**
 * Sends a video, and sends it again after a cut, until the signal ends it: as long as the lease stands, the work is
 * not lost. A request that stalls counts as cut.
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
  for (let tried = 0; ; tried++) {
    // Longer each time: a slow line gets it through as well.
    const fullMs = shortMs + file.size / slowest;
    const limitMs = Math.round(fullMs * 2 ** Math.min(tried, doublings));
    try {
      await client.output(target, file, signal, limitMs);
      return;
    } catch (thrown) {
      signal.throwIfAborted();
      if (!isTransient(thrown)) throw thrown;
      await client.clock.sleep(Math.max(backoff.next(), retryAfterOf(thrown)), signal);
    }
  }
}
