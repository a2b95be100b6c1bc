import { describe, expect, test } from 'vitest';
import { type Attempt, afterAttempt } from './webhooks';

const delays = [0, 10, 60, 360];
const fresh = { attempts: 0, attemptsBefore: 0 };
const answered = (status: number | null, retryAfter: number | null = null): Attempt => ({
  status,
  answer: `said ${status}`,
  retryAfter,
});
const next = (row: { attempts: number }, attempt: Attempt, random = 0.5) =>
  afterAttempt({ attemptsBefore: 0, ...row }, attempt, delays, random);

describe('a delivery', () => {
  test.each([200, 201, 204, 299])('with %i is delivered', (status) => {
    expect(next(fresh, answered(status))).toEqual({
      status: 'delivered',
      attempts: 1,
      lastStatus: status,
      lastAnswer: `said ${status}`,
      delayMs: null,
    });
  });

  test.each([199, 300, 301, 304, 308, 400, 404, 429, 500, 503])('with %i is retried', (status) => {
    expect(next(fresh, answered(status))).toMatchObject({ status: 'due', delayMs: 10_000 });
  });

  test('with 410 is exhausted at once', () => {
    expect(next(fresh, answered(410))).toMatchObject({ status: 'exhausted', delayMs: null });
  });

  test.each([
    { random: 0, retryAfter: null, delayMs: 8000 },
    { random: 1, retryAfter: null, delayMs: 12_000 },
    { random: 0.5, retryAfter: 1, delayMs: 10_000 },
    { random: 0.5, retryAfter: 900, delayMs: 900_000 },
    { random: 0.5, retryAfter: 901, delayMs: 10_000 },
  ])(
    'waits for its delay ± 20 %, or longer where asked to: %o',
    ({ random, retryAfter, ...wait }) => {
      expect(next(fresh, answered(500, retryAfter), random)).toMatchObject(wait);
    },
  );

  test('is exhausted after four attempts', () => {
    let state = next(fresh, answered(500));
    expect(state.delayMs).toBe(10_000);
    state = next(state, answered(503, 120));
    expect(state.delayMs).toBe(120_000);
    state = next(state, answered(null));
    expect(state).toMatchObject({ delayMs: 360_000, lastStatus: null, attempts: 3 });
    state = next(state, answered(500));
    expect(state).toMatchObject({ status: 'exhausted', attempts: 4, delayMs: null });
    const replayed = { attempts: 4, attemptsBefore: 4 };
    expect(next(replayed, answered(500))).toMatchObject({ status: 'due', delayMs: 10_000 });
  });
});
