import { expect, test } from 'vitest';
import type { ProgressEvent } from '../../lib/contract/progress';
import {
  advanceProgress,
  initialProgress,
  type RunProgress,
} from '../../lib/predictions/run-state';
import { percentDone, progressText, runPhases } from './run-progress';

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
  const checked = initialProgress({ num_inference_steps: 10 }, true);
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
