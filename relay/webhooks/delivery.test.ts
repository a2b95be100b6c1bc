import { describe, expect, test } from 'vitest';
import { type DeliveryEvent, reduceDelivery } from './delivery';

const delays = [0, 10, 60, 360];
const fresh = {
  status: 'due',
  attempts: 0,
  attemptsBefore: 0,
  lastStatus: null,
  lastAnswer: '',
} as const;
const answered = (status: number, retryAfter: number | null = null): DeliveryEvent => ({
  type: 'answered',
  status,
  answer: `said ${status}`,
  retryAfter,
});
const next = (state: Parameters<typeof reduceDelivery>[0], event: DeliveryEvent, random = 0.5) =>
  reduceDelivery(state, event, delays, random);

describe('a delivery', () => {
  test.each([200, 201, 204, 299])('with %i is delivered', (status) => {
    expect(next(fresh, answered(status))).toEqual({
      status: 'delivered',
      attempts: 1,
      attemptsBefore: 0,
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
    state = next(state, { type: 'unanswered', reason: 'a.example refused the connection.' });
    expect(state).toMatchObject({ delayMs: 360_000, lastStatus: null, attempts: 3 });
    state = next(state, answered(500));
    expect(state).toMatchObject({ status: 'exhausted', attempts: 4, delayMs: null });
  });

  test('that is replayed has a new set of attempts', () => {
    const exhausted = { ...fresh, status: 'exhausted', attempts: 4, lastStatus: 500 } as const;
    const replayed = next(exhausted, { type: 'replayed' });
    expect(replayed).toMatchObject({ status: 'due', attempts: 4, attemptsBefore: 4, delayMs: 0 });
    const failed = next(replayed, answered(500));
    expect(failed).toMatchObject({ status: 'due', attempts: 5, delayMs: 10_000 });
    expect(next({ ...failed, attempts: 7 }, answered(500)).status).toBe('exhausted');
  });

  test('that a stop interrupted keeps its attempts', () => {
    const waiting = { ...fresh, attempts: 2, lastStatus: 500 };
    expect(next(waiting, { type: 'interrupted' })).toEqual({ ...waiting, delayMs: 0 });
  });
});
