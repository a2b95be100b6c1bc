import { expect, test } from 'vitest';
import type { Prediction } from '../contract';
import { fullMemory } from '../contract/testing/memory';
import { advanceRun, idle, type RunEvent, type RunState } from './run-state';
import { newPrediction } from './testing/prediction';

const prediction = newPrediction();

function reduce(...events: RunEvent[]): RunState {
  return events.reduce(advanceRun, idle);
}

const running: RunEvent[] = [
  { type: 'created', prediction, continuation: null },
  { type: 'started', at: 1000 },
];

test('a run waits, may be queued behind another tab, runs, and ends', () => {
  expect(reduce({ type: 'created', prediction, continuation: null })).toMatchObject({
    status: 'waiting',
    elsewhere: false,
  });
  expect(
    reduce({ type: 'created', prediction, continuation: null }, { type: 'queued' }),
  ).toMatchObject({
    elsewhere: true,
  });
  expect(reduce(...running)).toMatchObject({ status: 'running', progress: { step: 0, steps: 6 } });
  expect(reduce(...running, { type: 'ended' })).toBe(idle);
});

test('a measurement of the GPU is shown until all its kernels are done', () => {
  const measuring = (done: number): RunEvent => ({
    type: 'progress',
    event: { type: 'tuning', done, total: 3 },
  });
  const at = (...done: number[]) => reduce(...running, ...done.map(measuring));
  expect(at(0, 2)).toMatchObject({ progress: { tuning: { done: 2, total: 3 } } });
  expect(at(0, 2, 3)).toMatchObject({ progress: { tuning: null } });
});

test('a new clip starts its steps from zero, and a new phase has no bytes', () => {
  const state = reduce(
    ...running,
    { type: 'progress', event: { type: 'phase', phase: 'load', clip: 0, clips: 2 } },
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
      },
    },
    { type: 'progress', event: { type: 'frame', frame: 121, frames: 241 } },
    { type: 'progress', event: { type: 'phase', phase: 'image', clip: 1, clips: 2 } },
  );
  expect(state).toMatchObject({
    status: 'running',
    progress: {
      phase: 'image',
      clip: 1,
      step: 0,
      bytes: null,
      secondsPerStep: 0.5,
      frame: 121,
    },
  });
});

test('tiles are counted until the phase ends, and the estimate is kept', () => {
  const phase = (name: 'decode' | 'finish'): RunEvent => ({
    type: 'progress',
    event: { type: 'phase', phase: name, clip: 0, clips: 1 },
  });
  const tile = { tile: 1, tiles: 2, frame: 30, frames: 121 };
  const tiled = reduce(...running, phase('decode'), {
    type: 'progress',
    event: { type: 'tile', ...tile },
  });
  expect(tiled).toMatchObject({ progress: { tile, frame: 0 } });
  expect(advanceRun(tiled, phase('finish'))).toMatchObject({ progress: { tile: null } });
  const said = { share: 0.7, secondsRemaining: 70 };
  const told = advanceRun(tiled, { type: 'progress', event: { type: 'estimate', ...said } });
  const frame = { type: 'frame', frame: 1, frames: 121 } as const;
  expect(advanceRun(told, { type: 'progress', event: frame })).toMatchObject({
    progress: { frame: 1, ...said },
  });
});

test('a cancel overrides finishing early, and an idle run ignores both', () => {
  const cancel: RunEvent = { type: 'ending', how: 'cancel' };
  const finish: RunEvent = { type: 'ending', how: 'finish' };
  expect(reduce(...running, finish)).toMatchObject({ ending: 'finish' });
  expect(reduce(...running, finish, cancel)).toMatchObject({ ending: 'cancel' });
  expect(reduce(...running, cancel, finish)).toMatchObject({ ending: 'cancel' });
  // Only a running run can finish early.
  expect(reduce({ type: 'created', prediction, continuation: null }, finish)).toMatchObject({
    ending: null,
  });
  for (const event of [cancel, finish, { type: 'queued' }, { type: 'started', at: 1 }] as const) {
    expect(advanceRun(idle, event)).toBe(idle);
  }
  expect(reduce(...running, { type: 'created', prediction, continuation: null })).toMatchObject({
    status: 'running',
  });
});

test('a run that turns out to be unsaved is not paused, and can be finished early', () => {
  const pause: RunEvent = { type: 'ending', how: 'pause' };
  const problem = (what: 'unsaved' | 'restarted'): RunEvent => ({
    type: 'progress',
    event: { type: 'checkpoint-problem', problem: what, sentence: 'The disk is full.' },
  });
  expect(reduce(...running, pause, problem('restarted'))).toMatchObject({ ending: 'pause' });
  expect(reduce(...running, pause, problem('unsaved'))).toMatchObject({ ending: null });
  const finish: RunEvent = { type: 'ending', how: 'finish' };
  expect(reduce(...running, finish, problem('unsaved'))).toMatchObject({ ending: 'finish' });
});

test('the memory plan is stored, and a smaller plan replaces it', () => {
  const plan = (replans: number): RunEvent => ({
    type: 'progress',
    event: { type: 'plan', memory: { ...fullMemory, replans }, decodeWork: 1 },
  });
  expect(reduce(...running)).toMatchObject({ progress: { memory: null } });
  expect(reduce(...running, plan(0), plan(1))).toMatchObject({
    progress: { memory: { replans: 1 } },
  });
});

test('a resumed run counts its steps from the checkpoint, unless it had to start anew', () => {
  const checkpoint = { clip: 1, clips: 2, step: 4, steps: 6 };
  const fields = { status: 'interrupted', checkpoint } as Partial<Prediction>;
  const resumed: RunEvent[] = [
    { type: 'created', prediction: newPrediction(fields), continuation: 'resume' },
    { type: 'started', at: 1000 },
  ];
  const denoise = (clip: number): RunEvent => ({
    type: 'progress',
    event: { type: 'phase', phase: 'denoise', clip, clips: 2 },
  });
  expect(reduce(...resumed, denoise(1))).toMatchObject({ progress: { step: 4 } });
  expect(reduce(...resumed, denoise(0))).toMatchObject({ progress: { step: 0 } });
  const problem = { problem: 'restarted', sentence: 'The saved state is damaged.' } as const;
  const anew: RunEvent = { type: 'progress', event: { type: 'checkpoint-problem', ...problem } };
  expect(reduce(...resumed, anew, denoise(1))).toMatchObject({
    progress: { step: 0, checkpointProblem: problem },
  });
});
