import { ApiError } from '../contract/v3/errors';
import type { UploadAnswer } from '../contract/v3/worker';
import { Backoff } from './backoff';
import type { WorkerClient } from './client';

/** Where a video goes. */
export interface UploadTarget {
  readonly id: string;
  readonly leaseToken: string;
  /** Of the whole file, hex. */
  readonly sha256: string;
}

/** How often in a row the relay may disagree about how much it has. */
const disagreements = 3;

/**
 * Sends a video whole; after a cut it asks how much is there and sends the rest. It is tried until
 * the signal ends it: as long as the lease stands, the work is not lost.
 *
 * @throws ApiError `LEASE_LOST` and other refusals
 * @throws the signal's reason
 */
export async function uploadVideo(
  client: WorkerClient,
  target: UploadTarget,
  file: Blob,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff(1000, 15_000, client.clock.random);
  let offset = 0;
  let conflicts = 0;
  for (;;) {
    try {
      const { received, complete } = await send(client, target, file, offset, signal);
      if (complete) return;
      if (received > offset) backoff.reset();
    } catch (thrown) {
      signal.throwIfAborted();
      const refused = thrown instanceof ApiError && thrown.status < 500;
      if (refused && thrown.code !== 'CONFLICT') throw thrown;
      if (refused && ++conflicts > disagreements) throw thrown;
    }
    await client.clock.sleep(backoff.next(), signal);
    offset = await receivedSoFar(client, target, file.size, signal);
  }
}

async function send(
  client: WorkerClient,
  target: UploadTarget,
  file: Blob,
  offset: number,
  signal: AbortSignal,
): Promise<UploadAnswer> {
  const { size } = file;
  const range = { 'Content-Range': `bytes ${offset}-${size - 1}/${size}` };
  const headers = { 'Content-Type': 'video/mp4', ...(offset > 0 && range) };
  const body = offset > 0 ? file.slice(offset) : file;
  const response = await client.output(target, { method: 'PUT', headers, body }, signal);
  const answer = (await response.json()) as UploadAnswer | { readonly data: UploadAnswer };
  return 'data' in answer ? answer.data : answer;
}

/** Bytes that the relay has; all of it, or no answer, means to send the whole again, which is no error. */
async function receivedSoFar(
  client: WorkerClient,
  target: UploadTarget,
  size: number,
  signal: AbortSignal,
): Promise<number> {
  try {
    const response = await client.output(target, { method: 'HEAD' }, signal);
    const offset = Number(response.headers.get('Upload-Offset') ?? 0);
    return Number.isInteger(offset) && offset > 0 && offset < size ? offset : 0;
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof ApiError && thrown.code === 'LEASE_LOST') throw thrown;
    return 0;
  }
}
