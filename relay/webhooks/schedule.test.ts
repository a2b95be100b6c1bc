import { describe, expect, test } from 'vitest';
import { readRetryAfter, retryDelay } from './schedule';

const delays = [0, 10, 60, 360];

describe('the schedule', () => {
  test('spreads each delay by a fifth, and ends after the last attempt', () => {
    expect(retryDelay(delays, 1, null, 0)).toBe(8000);
    expect(retryDelay(delays, 1, null, 0.5)).toBe(10_000);
    expect(retryDelay(delays, 2, null, 1)).toBe(72_000);
    expect(retryDelay(delays, 3, null, 0.5)).toBe(360_000);
    expect(retryDelay(delays, 4, null, 0.5)).toBeNull();
  });

  test('waits as long as it was asked to, and never less than scheduled', () => {
    expect(retryDelay(delays, 1, 900, 0.5)).toBe(900_000);
    expect(retryDelay(delays, 2, 1, 0.5)).toBe(60_000);
    expect(retryDelay(delays, 4, 1, 0.5)).toBeNull();
  });

  const now = Date.parse('2030-01-01T00:00:00Z');
  test.each([
    [undefined, null],
    ['0', 0],
    [' 120 ', 120],
    ['900', 900],
    ['901', null],
    ['-1', null],
    ['1.5', null],
    ['soon', null],
    ['', null],
    ['Tue, 01 Jan 2030 00:05:00 GMT', 300],
    ['Tue, 01 Jan 2030 01:00:00 GMT', null],
    ['Mon, 31 Dec 2029 23:00:00 GMT', null],
  ])('Retry-After: %s', (header, seconds) => {
    expect(readRetryAfter(header, now)).toBe(seconds);
  });
});
