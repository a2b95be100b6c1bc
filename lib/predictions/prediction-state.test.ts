import { describe, expect, test } from 'vitest';
import { safetySchema } from '../contract/safety';
import { advancePrediction, isTerminal, type PredictionEvent } from './prediction-state';
import { newPrediction, resultOf } from './testing/prediction';

const created = newPrediction();
const result = resultOf(created.id);
const started: PredictionEvent = { type: 'started', at: '2025-01-01T00:00:01.000Z' };
const completed: PredictionEvent = { type: 'completed', at: '2025-01-01T00:00:02.000Z', result };
const failed: PredictionEvent = {
  type: 'failed',
  at: '2025-01-01T00:00:03.000Z',
  error: { code: 'CANCELLED', message: 'The generation was cancelled.', remedy: 'Run it again.' },
};

describe('valid events', () => {
  test('created → processing → completed', () => {
    const processing = advancePrediction(created, started);
    expect(processing).toEqual({ ...created, status: 'processing', startedAt: started.at });
    expect(advancePrediction(processing, completed)).toEqual({
      ...created,
      status: 'completed',
      startedAt: started.at,
      completedAt: completed.at,
      result,
    });
  });

  test('processing → failed keeps no fields of other states', () => {
    const end = advancePrediction(advancePrediction(created, started), failed);
    expect(end).toEqual({
      ...created,
      status: 'failed',
      completedAt: failed.at,
      error: failed.error,
    });
  });

  test('created → failed', () => {
    expect(advancePrediction(created, failed).status).toBe('failed');
  });
});

test('a check changes the safety record of a completed prediction, and of no other', () => {
  const safety = safetySchema.parse({ status: 'clear', score: 0.1 });
  const processing = advancePrediction({ ...created, safetyChecker: true }, started);
  const end = advancePrediction(processing, completed);
  expect(end).toMatchObject({ safetyChecker: true });
  const checked: PredictionEvent = { type: 'checked', safety };
  expect(advancePrediction(end, checked)).toEqual({ ...end, result: { ...result, safety } });
  expect(advancePrediction(processing, checked)).toBe(processing);
});

describe('invalid events', () => {
  const processing = advancePrediction(created, started);
  const ends = [advancePrediction(processing, completed), advancePrediction(processing, failed)];

  test('a final state never changes', () => {
    for (const end of ends) {
      expect(isTerminal(end)).toBe(true);
      for (const event of [started, completed, failed])
        expect(advancePrediction(end, event)).toBe(end);
    }
  });

  test('a prediction does not complete before it starts, and does not start twice', () => {
    expect(advancePrediction(created, completed)).toBe(created);
    expect(advancePrediction(processing, started)).toBe(processing);
    expect(isTerminal(created) || isTerminal(processing)).toBe(false);
  });
});
