/** Longest `Retry-After` that is honoured, in seconds. */
const longestRetryAfter = 900;
/** Attempts are spread by ±20 %, so that a receiver that was down is not met by all at once. */
const jitter = 0.2;

/**
 * How long to wait before the next attempt, in milliseconds; null when there is none left.
 *
 * @param delays seconds before each attempt, the first too
 * @param failed attempts of this round so far, at least 1
 * @param retryAfter what the receiver asked for, in seconds; never makes it sooner than scheduled
 * @param random from 0 up to 1
 */
export function retryDelay(
  delays: readonly number[],
  failed: number,
  retryAfter: number | null,
  random: number,
): number | null {
  const delay = delays[failed];
  if (delay === undefined) return null;
  const spread = delay * (1 + jitter * (2 * random - 1));
  return Math.round(Math.max(spread, retryAfter ?? 0) * 1000);
}

/**
 * Seconds that a `Retry-After` header asks for: a number or an HTTP date (RFC 9110 §10.2.3).
 *
 * @param now milliseconds since 1970
 * @returns null where there is none, it cannot be read, or it asks for more than 15 minutes
 */
export function readRetryAfter(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  const text = header.trim();
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - now) / 1000;
  return seconds >= 0 && seconds <= longestRetryAfter ? seconds : null;
}
