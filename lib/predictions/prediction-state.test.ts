import { describe, expect, test } from 'vitest';
import { type Created, type ErrorCode, type Prediction, safetySchema } from '../contract';
import { advancePrediction, endingWith, isAtRest, type PredictionEvent } from './prediction-state';
import { newPrediction, resultOf, started } from './testing/prediction';

const created = newPrediction() as Created;
const result = resultOf(created.id);
/** What the row of a run has of one that waits. */
const { position: _, device: _device, ...rest } = created;
const run = { ...rest, createdAt: started.at };
const completed: PredictionEvent = { type: 'completed', at: '2025-01-01T00:00:02.000Z', result };
const failed: PredictionEvent = {
  type: 'failed',
  at: '2025-01-01T00:00:03.000Z',
  error: { code: 'CANCELLED', message: 'The generation was cancelled.', remedy: 'Run it again.' },
};

test('what was asked for besides the parameters stays to the end', () => {
  const asked = {
    options: {
      framing: { x: 0.2, y: 0.5, zoom: 1.5, background: 'blur' },
      safetyChecker: true,
      promptOptimizer: true,
      decoder: 'full',
      cache: true,
    },
    favourite: true,
    tags: ['sea'],
    continues: 'a'.repeat(32),
  } as const;
  const end = advancePrediction(advancePrediction({ ...created, ...asked }, started), completed);
  expect(end).toMatchObject(asked);
});

test('tags are added once each, and removed, in every state', () => {
  const tag = (on: boolean, ...tags: string[]) =>
    tags.map((one) => ({ type: 'tagged', tag: one, on }) as const);
  const tagged = tag(true, 'sea', 'Ada', 'sea').reduce(advancePrediction, created);
  expect(tagged).toEqual({ ...created, tags: ['Ada', 'sea'] });
  const end = [started, completed, ...tag(false, 'Ada', 'none')].reduce(advancePrediction, tagged);
  expect(end).toMatchObject({ status: 'completed', tags: ['sea'] });
  expect(tag(false, 'sea', 'Ada').reduce(advancePrediction, tagged)).toEqual(created);
});

describe('valid events', () => {
  test('created → processing → completed', () => {
    const processing = advancePrediction(created, started);
    expect(processing).toEqual({ ...run, status: 'processing' });
    expect(advancePrediction(processing, completed)).toEqual({
      ...run,
      status: 'completed',
      completedAt: completed.at,
      result,
    });
  });

  test('processing → failed keeps no fields of other states', () => {
    const end = advancePrediction(advancePrediction(created, started), failed);
    expect(end).toEqual({
      ...run,
      status: 'failed',
      completedAt: failed.at,
      error: failed.error,
    });
  });

  test('one that waits is moved, and says that the queue pauses after it; a random seed is set when it starts', () => {
    const waiting = { ...created, parameters: { ...created.parameters, seed: -1 } };
    const events = [
      { type: 'moved', position: 0.5 },
      { type: 'pauseAfter', on: true },
    ] as const;
    const changed = events.reduce<Prediction>(advancePrediction, waiting);
    expect(changed).toEqual({ ...waiting, position: 0.5, pauseAfter: true });
    expect(advancePrediction(changed, { type: 'pauseAfter', on: false })).toEqual({
      ...waiting,
      position: 0.5,
    });
    expect(advancePrediction(changed, started)).toEqual({ ...run, status: 'processing' });
  });
});

test('a check changes the safety record of a completed prediction, and of no other', () => {
  const safety = safetySchema.parse({ status: 'clear', score: 0.1 });
  const options = { safetyChecker: true };
  const processing = advancePrediction({ ...created, options }, started);
  const end = advancePrediction(processing, completed);
  expect(end).toMatchObject({ options });
  const checked: PredictionEvent = { type: 'checked', safety };
  expect(advancePrediction(end, checked)).toEqual({ ...end, result: { ...result, safety } });
  expect(advancePrediction(processing, checked)).toBe(processing);
});

describe('a run that is saved', () => {
  const checkpoint = { clip: 0, clips: 1, step: 3, steps: 6 };
  const lost = { code: 'DEVICE_LOST', message: 'm', remedy: 'r' } as const;
  const at = '2025-01-01T00:00:04.000Z';
  const processing = advancePrediction(created, started);
  const saved = advancePrediction(processing, { type: 'checkpointed', checkpoint });
  const interrupted = advancePrediction(saved, { type: 'interrupted', at, error: lost });

  test('processing → interrupted → processing → completed', () => {
    expect(interrupted).toEqual({
      ...run,
      status: 'interrupted',
      interruptedAt: at,
      error: lost,
      checkpoint,
    });
    expect(isAtRest(interrupted)).toBe(true);
    const resumed = advancePrediction(interrupted, { type: 'resumed' });
    expect(resumed).toEqual(saved);
    expect(advancePrediction(resumed, completed)).toEqual(advancePrediction(processing, completed));
    for (const event of [started, completed, failed, { type: 'checkpointed', checkpoint: null }])
      expect(advancePrediction(interrupted, event as PredictionEvent)).toBe(interrupted);
  });

  test('without a checkpoint, or after the one that could not be used, it has failed', () => {
    const restarted = advancePrediction(saved, { type: 'checkpointed', checkpoint: null });
    for (const row of [processing, restarted]) {
      const end = advancePrediction(row, { type: 'interrupted', at, error: lost });
      expect(end).toEqual({ ...run, status: 'failed', completedAt: at, error: lost });
    }
  });

  test('faults of device, page and storage can be resumed; a cancel and invalid numbers cannot', () => {
    const statusAfter = (code: ErrorCode) =>
      advancePrediction(saved, endingWith({ ...lost, code }, at)).status;
    const resumable = ['DEVICE_LOST', 'PAUSED', 'INTERNAL', 'STORAGE_FULL'] as const;
    for (const code of [...resumable, 'CHECKPOINT_MISMATCH'] as const)
      expect(statusAfter(code)).toBe('interrupted');
    for (const code of ['CANCELLED', 'LATENTS_NOT_FINITE', 'CHECKPOINT_INVALID'] as const)
      expect(statusAfter(code)).toBe('failed');
  });

  test('a refined video replaces the result', () => {
    const end = advancePrediction(processing, completed);
    const finer = { ...result, videoFile: 'b.mp4' };
    expect(advancePrediction(end, { type: 'refined', result: finer })).toEqual({
      ...end,
      result: finer,
    });
  });
});

describe('invalid events', () => {
  const processing = advancePrediction(created, started);
  const ends = [advancePrediction(processing, completed), advancePrediction(processing, failed)];

  test('a final state never changes', () => {
    for (const end of ends) {
      expect(isAtRest(end)).toBe(true);
      for (const event of [started, completed, failed])
        expect(advancePrediction(end, event)).toBe(end);
    }
  });

  test('a prediction does not complete before it starts, and does not start twice', () => {
    for (const event of [completed, failed, { type: 'checkpointed', checkpoint: null } as const])
      expect(advancePrediction(created, event)).toBe(created);
    for (const event of [started, { type: 'moved', position: 3 } as const])
      expect(advancePrediction(processing, event)).toBe(processing);
    expect(isAtRest(created) || isAtRest(processing)).toBe(false);
  });
});
