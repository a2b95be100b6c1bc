/**
 * What a `Retry-After` header asks for, a number of seconds or an HTTP date (RFC 9110, 10.2.3), in milliseconds.
 *
 * @param now milliseconds since the epoch
 * @returns null where there is none, it cannot be read, or it names a time in the past
 */
export function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1000;
  const left = Date.parse(header) - now;
  return left >= 0 ? left : null;
}
