import { expect, test } from 'vitest';
import type { MemoryReport, ProgressEvent } from '../../lib/contract';
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
  progressText,
  runPhases,
} from './run-progress';

const start: RunProgress = { ...initialProgress({ num_inference_steps: 10 }), clips: 2 };

test('percent is the share of the whole run, and stays below 100', () => {
  expect(percentDone(start)).toBeNull();
  expect(percentDone({ phase: 'load', share: 0 })).toBe(0);
  expect(percentDone({ phase: 'denoise', share: 0.419 })).toBe(41);
  expect(percentDone({ phase: 'finish', share: 1 })).toBe(99);
});

/** The line of text after some events of the engine. */
function textAfter(...events: ProgressEvent[]): string {
  return progressText(events.reduce(advanceProgress, initialProgress({ num_inference_steps: 6 })));
}

const decode = { type: 'phase', phase: 'decode', clip: 0, clips: 1 } as const;
const tile = { tile: 1, tiles: 2, frame: 30, frames: 121 } as const;

test('the phases optimise and check are there only where they are part of the run', () => {
  const plain = ['load', 'text', 'image', 'denoise', 'decode', 'finish'];
  expect(runPhases(start)).toEqual(plain);
  expect(runPhases({ ...start, optimises: true })).toEqual(['optimise', ...plain]);
  // From the start: a phase that came later could push the next line down.
  const checked = initialProgress({ num_inference_steps: 10 }, { safetyChecker: true });
  expect(runPhases(checked).at(-2)).toBe('check');
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

test('a run that other kernels compute remembers which, beside how the video is made', () => {
  const replaced = { asked: 'fast', computes: 'exact', reason: null } as const;
  const events: ProgressEvent[] = [
    { type: 'sampling', sentence: 'A LoRA has no effect.' },
    { type: 'kernels', ...replaced },
  ];
  expect(events.reduce(advanceProgress, start)).toMatchObject({
    sampling: 'A LoRA has no effect.',
    kernels: replaced,
  });
});

const full: MemoryReport = {
  ...fullMemory,
  budget: 8 * 2 ** 30,
  peak: 6 * 2 ** 30,
  blocks: 30,
  residentBlocks: 30,
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
