import { expect, test } from 'vitest';
import type { Prediction } from '../../lib/contract/prediction';
import type { ProgressEvent } from '../../lib/contract/progress';
import { parseParameters } from '../../lib/contract/request';
import { advanceRun, idle } from '../../lib/predictions/run-state';
import { measureOf } from './measure';

const prediction: Prediction = {
  id: '0123456789abcdef0123456789abcdef',
  model: 'tiny',
  profile: 'standard',
  backend: 'wasm',
  parameters: parseParameters({ prompt: 'a boat', seed: 4, num_inference_steps: 6 }),
  createdAt: '2025-01-01T00:00:00.000Z',
  status: 'created',
};

/** The line after some events of the engine. */
function after(...events: ProgressEvent[]): string {
  let state = advanceRun(idle, { type: 'created', prediction });
  state = advanceRun(state, { type: 'started', at: 1000 });
  for (const event of events) state = advanceRun(state, { type: 'progress', event });
  if (state.status !== 'running') throw new TypeError(state.status);
  return measureOf(state.progress);
}

const decode = { type: 'phase', phase: 'decode', clip: 0, clips: 1 } as const;
const tile = { tile: 1, tiles: 2, frame: 30, frames: 121, secondsRemaining: null } as const;

test('decoding tells tiles where there are tiles, else frames', () => {
  expect(after()).toBe('Starting the engine');
  expect(after(decode)).toBe('Decode frames');
  expect(after(decode, { type: 'frame', frame: 3, frames: 121 })).toBe('Frame 3 of 121');
  expect(after(decode, { type: 'tile', ...tile })).toBe('Tile 1 of 2, frame 30 of 121');
  const last = { type: 'tile', ...tile, tile: 2, frame: 3 } as const;
  expect(after(decode, last, { type: 'frame', frame: 3, frames: 121 })).toBe(
    'Tile 2 of 2, frame 3 of 121',
  );
});
