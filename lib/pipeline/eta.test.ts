import { expect, test } from 'vitest';
import { EtaEstimator } from './eta';

/** A clock that only moves when a test moves it. */
function clock() {
  let seconds = 100;
  return {
    now: () => seconds,
    pass: (more: number) => {
      seconds += more;
    },
  };
}

function estimator(
  steps: number,
  clips: number,
  framesPerClip: number,
  passesPerStep: number,
  now: () => number,
) {
  return new EtaEstimator({ steps, clips, framesPerClip, passesPerStep, decodePasses: 3.9, now });
}

test('nothing is promised before two steps are done', () => {
  const { now, pass } = clock();
  const eta = estimator(10, 1, 121, 2, now);
  expect(eta.secondsPerStep).toBe(0);
  eta.start();
  pass(2);
  eta.step();
  expect(eta.secondsPerStep).toBe(2);
  expect(eta.remaining(0, 1)).toBeNull();
  pass(2);
  eta.step();
  // Eight steps, decoding as long as 3.9 of a step's two passes, and 121 frames of 30 ms on the CPU.
  expect(eta.remaining(0, 2)).toBeCloseTo(8 * 2 + (3.9 * 2) / 2 + 3.63, 9);
});

test('one slow first step does not spoil the estimate', () => {
  const { now, pass } = clock();
  const eta = estimator(5, 1, 121, 1, now);
  eta.start();
  for (const seconds of [30, 1, 1]) {
    pass(seconds);
    eta.step();
  }
  expect(eta.secondsPerStep).toBe(1);
  expect(eta.remaining(0, 3)).toBeCloseTo(2 + 3.9 + 3.63, 9);
});

test('time in a pause does not count', () => {
  const { now, pass } = clock();
  const eta = estimator(5, 1, 121, 1, now);
  eta.start();
  pass(1);
  eta.step();
  pass(3600);
  eta.start();
  pass(1);
  eta.step();
  expect(eta.secondsPerStep).toBe(1);
});

test('further clips count with their steps and with the decoding that was measured', () => {
  const { now, pass } = clock();
  const eta = estimator(4, 3, 121, 1, now);
  eta.start();
  for (let step = 0; step < 4; step++) {
    pass(2);
    eta.step();
  }
  eta.startDecode();
  pass(12.1);
  eta.endDecode();
  eta.start();
  pass(2);
  eta.step();
  // Clip 1 of 0…2 after its first step: 3 + 4 steps, and two clips to decode.
  expect(eta.remaining(1, 1)).toBeCloseTo(7 * 2 + 2 * 12.1, 9);
});

test('a decode in tiles counts with its work, and the rest follows from the share that is done', () => {
  const { now, pass } = clock();
  const eta = estimator(2, 2, 121, 1, now);
  eta.decodeWork = 2;
  eta.start();
  for (let step = 0; step < 2; step++) {
    pass(10);
    eta.step();
  }
  // The second clip's two steps, and both decodes, each of twice 3.9 passes.
  expect(eta.remaining(0, 2)).toBeCloseTo(2 * 10 + 2 * (2 * 39 + 3.63), 9);
  eta.startDecode();
  pass(30);
  // A quarter took 30 s: 90 s more, then the second clip with its own 120 s.
  expect(eta.decoding(0, 0.25)).toBeCloseTo(90 + 20 + 120, 9);
  expect(eta.decoding(1, 0.25)).toBeCloseTo(90, 9);
});

test('work after the last frame is part of every estimate', () => {
  const { now, pass } = clock();
  const options = { steps: 2, clips: 1, framesPerClip: 0, passesPerStep: 1, decodePasses: 1 };
  const eta = new EtaEstimator({ ...options, tailSeconds: 7, now });
  eta.start();
  for (let step = 0; step < 2; step++) {
    pass(10);
    eta.step();
  }
  expect(eta.remaining(0, 2)).toBeCloseTo(10 + 7, 9);
  eta.startDecode();
  pass(4);
  expect(eta.decoding(0, 0.5)).toBeCloseTo(4 + 7, 9);
});
