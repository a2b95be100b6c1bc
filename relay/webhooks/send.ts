import { createHmac } from 'node:crypto';
import type { Readable } from 'node:stream';
import { retryAfterMs } from '../../lib/contract/retry-after';
import type { Keys } from '../access/keys';
import { GuardError } from '../guard/errors';
import type { Guard } from '../guard/guard';
import type { DeliveryRow } from '../store/schema';

/** How an attempt ended. */
export interface Attempt {
  /** HTTP status of the answer; null where there was none. */
  readonly status: number | null;
  /** The beginning of the answer, or why there was none, in one sentence. */
  readonly answer: string;
  /** Seconds, as the receiver asked for. */
  readonly retryAfter: number | null;
}

/** Most of an answer that is read, so that its connection can be used again; in bytes. */
const maxRead = 65_536;
/** Most of it that is kept, in bytes. */
const maxKept = 1024;

/**
 * Makes one attempt. It counts as received once the status has arrived: an answer that is long, slow or cut
 * off after that changes nothing.
 *
 * @param totalMs time limit of the attempt, in milliseconds
 * @param stop ends the attempt, which then is null and does not count
 * @throws what the look-up of the secret throws; nothing else
 */
export async function sendWebhook(
  delivery: Pick<DeliveryRow, 'id' | 'owner' | 'url' | 'body'>,
  { guard, keys }: { guard: Guard; keys: Pick<Keys, 'webhookSecret'> },
  totalMs: number,
  stop: AbortSignal,
): Promise<Attempt | null> {
  const { owner, url, body } = delivery;
  const secret = await keys.webhookSecret(owner);
  try {
    const answer = await guard.fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Kinora-Webhooks/1',
        ...signatureHeaders(secret, delivery),
      },
      body,
      redirects: 0,
      // A long answer is cut here, and is no error.
      maxBytes: Number.POSITIVE_INFINITY,
      totalMs,
      signal: stop,
    });
    const retryMs = retryAfterMs(answer.headers['retry-after'] ?? null, Date.now());
    return {
      status: answer.status,
      answer: await beginningOf(answer.body),
      retryAfter: retryMs === null ? null : retryMs / 1000,
    };
  } catch (thrown) {
    if (stop.aborted) return null;
    const answer = thrown instanceof GuardError ? thrown.message : 'The webhook could not be sent.';
    return { status: null, answer, retryAfter: null };
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
    // The part that arrived is kept.
  }
  // `stream` leaves out a character that was cut in two. PostgreSQL's text holds no NUL.
  const decoder = new TextDecoder();
  return decoder.decode(Buffer.concat(kept), { stream: true }).replaceAll('\0', '');
}

const prefix = 'whsec_';

/** The headers of both schemes (README.md). @param secret `whsec_` + base64 of 32 bytes */
function signatureHeaders(
  secret: string,
  { id, body }: Pick<DeliveryRow, 'id' | 'body'>,
): Readonly<Record<string, string>> {
  const timestamp = Math.floor(Date.now() / 1000);
  const key = secret.startsWith(prefix) ? secret.slice(prefix.length) : secret;
  const message = `${id}.${timestamp}.${body}`;
  const hex = createHmac('sha256', key).update(message).digest('hex');
  const base64 = createHmac('sha256', Buffer.from(key, 'base64')).update(message).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v3,${hex}`,
    'svix-id': id,
    'svix-timestamp': String(timestamp),
    'svix-signature': `v1,${base64}`,
  };
}
