import type { Readable } from 'node:stream';
import { type Guard, GuardError, type Keys } from '../relay';
import type { DeliveryRow } from '../store/schema';
import type { DeliveryEvent } from './delivery';
import { readRetryAfter } from './schedule';
import { signatureHeaders } from './signature';

/** How long an attempt may take. */
export interface SendLimits {
  readonly connectMs: number;
  readonly totalMs: number;
}

/** Most of an answer that is read, so that its connection can be used again; in bytes. */
const maxRead = 65_536;
/** Most of it that is kept, in bytes. */
const maxKept = 1024;

/**
 * Makes one attempt and says what came of it. A receiver has the webhook when its status has come: an
 * answer that is long, slow or broken off after that changes nothing.
 *
 * @param stop ends the attempt, which then does not count
 * @throws what the look-up of the secret throws; nothing else
 */
export async function sendWebhook(
  delivery: Pick<DeliveryRow, 'id' | 'owner' | 'url' | 'body'>,
  { guard, keys }: { guard: Guard; keys: Pick<Keys, 'webhookSecret'> },
  limits: SendLimits,
  stop: AbortSignal,
): Promise<DeliveryEvent> {
  const { id, owner, url, body } = delivery;
  const secret = await keys.webhookSecret(owner);
  const timestamp = Math.floor(Date.now() / 1000);
  try {
    const answer = await guard.fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Kinora-Webhooks/1',
        ...signatureHeaders({ secret, id, timestamp, body }),
      },
      body,
      redirects: 0,
      // A long answer is cut here, and is no error.
      maxBytes: Number.POSITIVE_INFINITY,
      ...limits,
      signal: stop,
    });
    return {
      type: 'answered',
      status: answer.status,
      answer: await beginningOf(answer.body),
      retryAfter: readRetryAfter(answer.headers['retry-after'], Date.now()),
    };
  } catch (thrown) {
    if (stop.aborted) return { type: 'interrupted' };
    const reason = thrown instanceof GuardError ? thrown.message : 'The webhook could not be sent.';
    return { type: 'unanswered', reason };
  }
}

async function beginningOf(body: Readable): Promise<string> {
  const kept: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body) {
      if (!(chunk instanceof Uint8Array)) continue;
      if (bytes < maxKept) kept.push(chunk.subarray(0, maxKept - bytes));
      bytes += chunk.byteLength;
      if (bytes >= maxRead) break;
    }
  } catch {
    // What came so far is shown.
  }
  // `stream` leaves out a character that was cut in two. PostgreSQL's text holds no NUL.
  const decoder = new TextDecoder();
  return decoder.decode(Buffer.concat(kept), { stream: true }).replaceAll('\0', '');
}
