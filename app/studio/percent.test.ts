import { expect, test } from 'vitest';
import type { RunProgress } from '../../lib/predictions/run-state';
import { percentDone, phaseFraction } from './percent';

const start: RunProgress = {
  phase: null,
  component: null,
  clip: 0,
  clips: 2,
  bytes: null,
  step: 0,
  steps: 10,
  secondsPerStep: null,
  secondsRemaining: null,
  frame: 0,
  frames: 0,
  tile: null,
  preview: null,
  memory: null,
  paused: false,
  pausing: false,
};

test('percent counts steps and decoding over all clips and leaves 100 to the end', () => {
  expect(percentDone(start)).toBeNull();
  // Ten steps and two that decoding counts as, twice.
  expect(percentDone({ ...start, phase: 'denoise', step: 6 })).toBe(25);
  expect(percentDone({ ...start, phase: 'denoise', clip: 1, step: 6 })).toBe(75);
  expect(percentDone({ ...start, phase: 'decode', step: 10, frame: 60, frames: 240 })).toBe(45);
  expect(percentDone({ ...start, phase: 'finish', clip: 1, step: 10 })).toBe(99);
});

test('a decode in tiles moves before the first frame is out', () => {
  const tile = { tile: 1, tiles: 2, frame: 60, frames: 120 };
  const decoding: RunProgress = { ...start, clips: 1, phase: 'decode', step: 10, tile };
  expect(phaseFraction(decoding)).toBe(0.25);
  expect(percentDone(decoding)).toBe(87);
  expect(phaseFraction({ ...decoding, tile: { ...tile, tile: 2 } })).toBe(0.75);
  expect(phaseFraction({ ...decoding, clip: 1, clips: 2 })).toBe(0.625);
});

test('each phase has its own measure, or none', () => {
  expect(phaseFraction({ ...start, phase: 'load', bytes: { done: 1, total: 4 } })).toBe(0.25);
  expect(phaseFraction({ ...start, phase: 'text' })).toBeNull();
  expect(phaseFraction({ ...start, phase: 'denoise', step: 5 })).toBe(0.5);
  expect(phaseFraction({ ...start, phase: 'decode', frame: 60, frames: 240 })).toBe(0.25);
});
