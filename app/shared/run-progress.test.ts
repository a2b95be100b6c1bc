import { expect, test } from 'vitest';
import type { MemoryReport, ProgressEvent } from '../../lib/contract/progress';
import { fullMemory } from '../../lib/contract/testing/memory';
import {
  advanceProgress,
  initialProgress,
  type RunProgress,
} from '../../lib/predictions/run-state';
import {
  memoryPlanText,
  memoryUseText,
  percentDone,
  phaseFraction,
  progressText,
  runPhases,
} from './run-progress';

const start: RunProgress = { ...initialProgress({ num_inference_steps: 10 }), clips: 2 };

test('percent counts the steps and the decoding of all clips, and stays below 100', () => {
  expect(percentDone(start)).toBeNull();
  // Two clips of ten steps, and a decoding that counts as two more.
  expect(percentDone({ ...start, phase: 'denoise', step: 6 })).toBe(25);
  expect(percentDone({ ...start, phase: 'denoise', clip: 1, step: 6 })).toBe(75);
  expect(percentDone({ ...start, phase: 'decode', step: 10, frame: 60, frames: 240 })).toBe(45);
  expect(percentDone({ ...start, phase: 'finish', clip: 1, step: 10 })).toBe(99);
});

test('a decode in tiles advances before its first frame is complete', () => {
  const tile = { tile: 1, tiles: 2, frame: 60, frames: 120 };
  const decoding: RunProgress = { ...start, clips: 1, phase: 'decode', step: 10, tile };
  expect(phaseFraction(decoding)).toBe(0.25);
  expect(percentDone(decoding)).toBe(87);
  expect(phaseFraction({ ...decoding, tile: { ...tile, tile: 2 } })).toBe(0.75);
  expect(phaseFraction({ ...decoding, clip: 1, clips: 2 })).toBe(0.625);
});

test('each phase has a fraction or none', () => {
  expect(phaseFraction({ ...start, phase: 'load', bytes: { done: 1, total: 4 } })).toBe(0.25);
  expect(phaseFraction({ ...start, phase: 'text' })).toBeNull();
  expect(phaseFraction({ ...start, phase: 'denoise', step: 5 })).toBe(0.5);
  expect(phaseFraction({ ...start, phase: 'decode', frame: 60, frames: 240 })).toBe(0.25);
});

/** The line of text after some events of the engine. */
function textAfter(...events: ProgressEvent[]): string {
  return progressText(events.reduce(advanceProgress, initialProgress({ num_inference_steps: 6 })));
}

const decode = { type: 'phase', phase: 'decode', clip: 0, clips: 1 } as const;
const tile = { tile: 1, tiles: 2, frame: 30, frames: 121, secondsRemaining: null } as const;

test('the phases optimise and check are there only where they are part of the run', () => {
  const plain = ['load', 'text', 'image', 'denoise', 'decode', 'finish'];
  expect(runPhases(start)).toEqual(plain);
  expect(runPhases({ ...start, optimises: true })).toEqual(['optimise', ...plain]);
  const checked = { ...start, inputCheck: { score: 0.1, flagged: false } };
  expect(runPhases(checked).at(-2)).toBe('check');
  expect(percentDone({ ...checked, phase: 'optimise' })).toBeNull();
  expect(percentDone({ ...checked, clip: 1, phase: 'check', step: 10 })).toBe(99);
});

test('a decode in tiles shows tiles, else frames', () => {
  expect(textAfter()).toBe('Starting the engine');
  expect(textAfter(decode)).toBe('Decode frames');
  expect(textAfter(decode, { type: 'frame', frame: 3, frames: 121 })).toBe('Frame 3 of 121');
  expect(textAfter(decode, { type: 'tile', ...tile })).toBe('Tile 1 of 2, frame 30 of 121');
  const last = { type: 'tile', ...tile, tile: 2, frame: 3 } as const;
  expect(textAfter(decode, last, { type: 'frame', frame: 3, frames: 121 })).toBe(
    'Tile 2 of 2, frame 3 of 121',
  );
});

const full: MemoryReport = {
  ...fullMemory,
  ...{ budget: 8 * 2 ** 30, peak: 6 * 2 ** 30, blocks: 30, residentBlocks: 30 },
};

test('the text of a memory plan', () => {
  expect(memoryPlanText(full)).toBe('All 30 blocks stay in memory (6.0 GiB).');
  expect(memoryPlanText({ ...full, budgetSet: true })).toBe(
    'All 30 blocks stay in memory (6.0 GiB of 8.0 GiB).',
  );
  expect(memoryPlanText({ ...full, residentBlocks: 12 })).toBe(
    '12 of 30 blocks stay in memory; the others are read from disk in every step.',
  );
  expect(memoryPlanText({ ...full, residentBlocks: 1 })).toMatch(/^1 of 30 blocks stays /);
  expect(memoryPlanText({ ...full, residentBlocks: 0 })).toMatch(/^None of 30 blocks stay /);
  expect(memoryPlanText({ ...full, decodeTiles: 4 })).toMatch(/decoded in 4 tiles\.$/);
  expect(memoryPlanText({ ...full, replans: 1 })).toMatch(/ran out once; the run continued/);
});

test('the text of the memory that a result used', () => {
  expect(memoryUseText(full)).toBe('6.0 GiB');
  expect(memoryUseText({ ...full, residentBlocks: 10, decodeTiles: 2 })).toBe(
    '6.0 GiB, 20 of 30 blocks read from disk, decoded in 2 tiles',
  );
});
