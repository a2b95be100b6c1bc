import { type ErrorRecord, KinoraError, retryAfterMs } from '../contract';
import { ApiError, type ApiErrorCode, apiErrorSchema, describeApiError } from '../contract/v3';

/** The relay could not be reached, or something before it answered: a later try may succeed. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
}

/**
 * Passes a success.
 *
 * @throws ApiError the relay's own; TransportError for anything else that is no success
 */
export async function checkResponse(response: Response): Promise<void> {
  if (response.ok) return;
  const text = await response.text().catch(() => '');
  const known = apiErrorSchema.safeParse(parseJson(text));
  if (known.success) throw toApiError(known.data.error_code, known.data.message, response);
  if (response.status === 401) throw new ApiError('UNAUTHORIZED');
  if (response.status === 403) throw new ApiError('FORBIDDEN');
  if (response.status === 404 || response.status === 410) throw new ApiError('NOT_FOUND');
  throw new TransportError(`the server answers ${response.status}`);
}

/** Why a call failed: what the relay said, or that it did not answer. */
export function toTransportError(thrown: unknown): Error {
  if (thrown instanceof TransportError || thrown instanceof ApiError) return thrown;
  return new TransportError('the server cannot be reached', { cause: thrown });
}

/** Whether the job is no longer this worker's: cancelled, ended, deleted, or given to another. */
export function isLeaseLost(thrown: unknown): boolean {
  return (
    thrown instanceof ApiError && (thrown.code === 'LEASE_LOST' || thrown.code === 'NOT_FOUND')
  );
}

/** Whether the relay does not accept this worker's token. */
export function isUnauthorized(thrown: unknown): boolean {
  return (
    thrown instanceof ApiError && (thrown.code === 'UNAUTHORIZED' || thrown.code === 'FORBIDDEN')
  );
}

/**
 * The message for a token that is not accepted: only another token helps. A token of another kind, such as an API
 * key, is named by the relay itself.
 */
export function unauthorizedRecord(thrown: unknown): ErrorRecord {
  const isOfOtherKind = thrown instanceof ApiError && thrown.code === 'FORBIDDEN';
  const sentence = isOfOtherKind ? thrown.message : 'The server does not take this token.';
  return new KinoraError('REQUEST_INVALID', sentence, {
    remedy:
      'Use a worker token of this server: its Keys page makes one, and so does “npm run keys”.',
  }).toRecord();
}

/** Why a connection ended, as a sentence; null for an error that is none of the connection. */
export function disconnectReason(thrown: unknown): string | null {
  if (thrown instanceof ApiError) return thrown.message;
  if (!(thrown instanceof TransportError)) return null;
  return `${thrown.message.charAt(0).toUpperCase()}${thrown.message.slice(1)}.`;
}

/** The relay writes sentence and remedy into one message; here they are two again. */
function toApiError(code: ApiErrorCode, message: string, response: Response): ApiError {
  const { remedy } = describeApiError(code);
  const wait = response.headers.get('retry-after');
  const headers = wait === null ? {} : { 'Retry-After': wait };
  // Another remedy than the usual one stays in the sentence.
  if (!message.endsWith(` ${remedy}`)) return new ApiError(code, message, { headers, remedy: '' });
  return new ApiError(code, message.slice(0, -remedy.length - 1), { headers });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A proxy may answer with a page of its own.
    return null;
  }
}

/** Longest wait that a relay may ask for, in milliseconds. */
const longestAskedMs = 60_000;

/** Whether the same call may be answered otherwise later: no answer, 429, and 500 or more. */
export function isTransient(thrown: unknown): boolean {
  return !(thrown instanceof ApiError) || thrown.status === 429 || thrown.status >= 500;
}

/** `Retry-After` of a refusal in milliseconds, at most a minute; 0 without one. */
export function retryAfterOf(thrown: unknown): number {
  if (!(thrown instanceof ApiError)) return 0;
  const waitMs = retryAfterMs(thrown.headers['Retry-After'] ?? null, Date.now());
  return Math.min(waitMs ?? 0, longestAskedMs);
}

/** Growing waits between attempts, half of each by chance so that many workers do not come at once. */
export class Backoff {
  #failures = 0;

  /** @param random from 0 to 1, exclusive */
  constructor(
    readonly firstMs: number,
    readonly longestMs: number,
    readonly random: () => number = Math.random,
  ) {}

  /** How long to wait before the next attempt, in milliseconds; each time longer, up to the longest. */
  next(): number {
    const full = Math.min(this.longestMs, this.firstMs * 2 ** this.#failures);
    this.#failures += 1;
    return Math.round(full / 2 + (full / 2) * this.random());
  }

  /** It worked: the next wait is a short one again. */
  reset(): void {
    this.#failures = 0;
  }
}
