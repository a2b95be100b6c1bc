import { retryAfterMs } from '../contract';
import { ApiError } from '../contract/v3';

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
