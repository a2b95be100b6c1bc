import { ApiError } from '../contract/v3/errors';
import { retryAfterMs } from '../weights/hub/retry';

/** Longest wait that a relay may ask for, in milliseconds. */
const longestAskedMs = 60_000;

/** Whether the same call may be answered otherwise later: no answer, 429, and 500 or more. */
export function isPassing(thrown: unknown): boolean {
  return !(thrown instanceof ApiError) || thrown.status === 429 || thrown.status >= 500;
}

/** `Retry-After` of a refusal in milliseconds, at most a minute; 0 without one. */
export function askedWaitMs(thrown: unknown): number {
  if (!(thrown instanceof ApiError)) return 0;
  const asked = retryAfterMs(thrown.headers['Retry-After'] ?? null, Date.now());
  return Math.min(asked ?? 0, longestAskedMs);
}
