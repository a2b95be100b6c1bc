import { expect, test } from 'vitest';
import type { Prediction } from '../contract/prediction';
import { parseParameters } from '../contract/request';
import { fullMemory } from '../contract/testing/memory';
import { advanceRun, idle, type RunEvent, type RunState } from './run-state';

const prediction: Prediction = {
  id: '0123456789abcdef0123456789abcdef',
  model: 'tiny',
  backend: 'wasm',
  parameters: parseParameters({ prompt: 'a boat', seed: 4, num_inference_steps: 6 }),
  createdAt: '2025-01-01T00:00:00.000Z',
  status: 'created',
};

function play(...events: RunEvent[]): RunState {
  return events.reduce(advanceRun, idle);
}

const running: RunEvent[] = [
  { type: 'created', prediction },
  { type: 'started', at: 1000 },
];

test('waits, may be queued behind another tab, runs, ends', () => {
  expect(play({ type: 'created', prediction })).toMatchObject({
    status: 'waiting',
    elsewhere: false,
  });
  expect(play({ type: 'created', prediction }, { type: 'queued' })).toMatchObject({
    elsewhere: true,
  });
  expect(play(...running)).toMatchObject({ status: 'running', progress: { step: 0, steps: 6 } });
  expect(play(...running, { type: 'ended' })).toBe(idle);
});

test('folds progress: a new clip starts its steps from zero, bytes belong to one phase', () => {
  const state = play(
    ...running,
    {
      type: 'progress',
      event: { type: 'phase', phase: 'load', clip: 0, clips: 2, component: 'vae' },
    },
    { type: 'progress', event: { type: 'bytes', bytesDone: 5, bytesTotal: 9 } },
    { type: 'progress', event: { type: 'phase', phase: 'denoise', clip: 0, clips: 2 } },
    {
      type: 'progress',
      event: {
        type: 'step',
        step: 6,
        steps: 6,
        clip: 0,
        clips: 2,
        secondsPerStep: 0.5,
        secondsRemaining: 4,
      },
    },
    { type: 'progress', event: { type: 'frame', frame: 121, frames: 241 } },
    { type: 'progress', event: { type: 'phase', phase: 'image', clip: 1, clips: 2 } },
  );
  expect(state).toMatchObject({
    status: 'running',
    progress: {
      phase: 'image',
      component: null,
      clip: 1,
      step: 0,
      bytes: null,
      secondsPerStep: 0.5,
      frame: 121,
    },
  });
});

test('frames of tiles are counted until the phase ends, and tell how long it takes', () => {
  const phase = (name: 'decode' | 'finish'): RunEvent => ({
    type: 'progress',
    event: { type: 'phase', phase: name, clip: 0, clips: 1 },
  });
  const tile = { tile: 1, tiles: 2, frame: 30, frames: 121 };
  const tiled = play(...running, phase('decode'), {
    type: 'progress',
    event: { type: 'tile', ...tile, secondsRemaining: 70 },
  });
  expect(tiled).toMatchObject({ progress: { tile, secondsRemaining: 70, frame: 0 } });
  expect(advanceRun(tiled, phase('finish'))).toMatchObject({ progress: { tile: null } });
  const frame = { type: 'frame', frame: 1, frames: 121, secondsRemaining: 60 } as const;
  expect(advanceRun(tiled, { type: 'progress', event: frame })).toMatchObject({
    progress: { frame: 1, secondsRemaining: 60 },
  });
});

test('a pause is asked for, begins after a step, and can be taken back before', () => {
  const asked = play(...running, { type: 'pausing', pausing: true });
  expect(asked).toMatchObject({ progress: { pausing: true, paused: false } });
  const begun = advanceRun(asked, { type: 'progress', event: { type: 'paused', paused: true } });
  expect(begun).toMatchObject({ progress: { pausing: false, paused: true } });
  const back = advanceRun(asked, { type: 'pausing', pausing: false });
  expect(back).toMatchObject({ progress: { pausing: false, paused: false } });
  expect(advanceRun(idle, { type: 'pausing', pausing: true })).toBe(idle);
});

test('a cancel wins over finishing early, and nothing happens to an idle run', () => {
  const cancel: RunEvent = { type: 'ending', how: 'cancel' };
  const finish: RunEvent = { type: 'ending', how: 'finish' };
  expect(play(...running, finish)).toMatchObject({ ending: 'finish' });
  expect(play(...running, finish, cancel)).toMatchObject({ ending: 'cancel' });
  expect(play(...running, cancel, finish)).toMatchObject({ ending: 'cancel' });
  // Only what runs has something to finish.
  expect(play({ type: 'created', prediction }, finish)).toMatchObject({ ending: null });
  for (const event of [cancel, finish, { type: 'queued' }, { type: 'started', at: 1 }] as const) {
    expect(advanceRun(idle, event)).toBe(idle);
  }
  expect(play(...running, { type: 'created', prediction })).toMatchObject({ status: 'running' });
});

test('the plan of the memory is kept, and a smaller one replaces it', () => {
  const plan = (replans: number): RunEvent => ({
    type: 'progress',
    event: { type: 'plan', memory: { ...fullMemory, replans } },
  });
  expect(play(...running)).toMatchObject({ progress: { memory: null } });
  expect(play(...running, plan(0), plan(1))).toMatchObject({
    progress: { memory: { replans: 1 } },
  });
});
