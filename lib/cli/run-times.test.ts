import { expect, test } from 'vitest';
import type { HeadlessEvent } from '../contract';
import { RunTimes } from './run-times';

test('phases repeat with each clip, a step lasts from the one before', () => {
  const times = new RunTimes();
  const phase = (name: 'load' | 'denoise' | 'decode', clip: number) =>
    ({ type: 'phase', phase: name, clip, clips: 2 }) as const;
  const step = (number: number): HeadlessEvent =>
    ({
      type: 'step',
      step: number,
      steps: 2,
      clip: 0,
      clips: 2,
      secondsPerStep: 9,
    }) as HeadlessEvent;
  times.take(phase('load', 0), 1000);
  times.take(phase('denoise', 0), 3000);
  times.take(step(1), 7000);
  times.take(step(2), 10_000);
  times.take(phase('decode', 0), 10_500);
  times.take(phase('load', 1), 13_000);
  expect(times.steps).toEqual([4, 3]);
  expect(times.phases).toEqual([
    { phase: 'load', clip: 0, seconds: 2 },
    { phase: 'denoise', clip: 0, seconds: 7.5 },
    { phase: 'decode', clip: 0, seconds: 2.5 },
    { phase: 'load', clip: 1, seconds: 0 },
  ]);
});
