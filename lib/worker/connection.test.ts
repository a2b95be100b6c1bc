import { expect, test } from 'vitest';
import type { ServedJob } from './api';
import {
  advanceConnection,
  type Connection,
  type ConnectionEvent,
  type CurrentJob,
  disconnected,
} from './connection';

const identity = { token: 't', owner: 'ann', shared: false, accepts_models: [], waiting: 2 };
const job: CurrentJob = {
  id: 'ab'.repeat(16),
  attempt: 1,
  size: '1280*720',
  duration: 5,
  loras: 0,
  startedAt: 1000,
};
const claimed = {
  type: 'claimed',
  job,
  parameters: { num_inference_steps: 4 },
  options: { safetyChecker: true },
} as const;
const served: ServedJob = {
  id: job.id,
  attempt: 1,
  outcome: 'completed',
  error: null,
  safety: 'clear',
  prompt: null,
  seconds: 3,
  endedAt: 4000,
};
const connected = { type: 'connected', identity } as const;

function after(...events: ConnectionEvent[]): Connection {
  return events.reduce(advanceConnection, disconnected);
}

test('a job from connecting to its end', () => {
  const steps: ConnectionEvent[] = [
    { type: 'connecting' },
    connected,
    { type: 'nothing', skipped: { model: 2 } },
    claimed,
    {
      type: 'progress',
      event: {
        type: 'step',
        step: 1,
        steps: 4,
        clip: 0,
        clips: 1,
        secondsPerStep: 2,
      },
    },
    { type: 'uploading', job, bytes: 5000 },
    { type: 'ended', job: served },
  ];
  const states = steps.map((_, index) => after(...steps.slice(0, index + 1)));
  expect(states.map(({ status }) => status)).toEqual([
    'connecting',
    'idle',
    'idle',
    'working',
    'working',
    'uploading',
    'idle',
  ]);
  expect(states[2]).toEqual({ status: 'idle', identity, skipped: { model: 2 } });
  expect(states[4]).toMatchObject({
    progress: { step: 1, steps: 4, checks: true },
    answered: true,
    next: 'claim',
  });
  expect(states[5]).toMatchObject({ bytes: 5000, identity });
});

test('a pause waits for the job that runs, and can be taken back', () => {
  const pausing = after({ type: 'connecting' }, connected, claimed, { type: 'pausing' });
  expect(pausing).toMatchObject({ status: 'working', next: 'pause' });
  expect(advanceConnection(pausing, { type: 'resumed' })).toMatchObject({ next: 'claim' });
  // It is not paused before the job has ended, and takes nothing after it.
  expect(advanceConnection(pausing, { type: 'paused', error: null })).toBe(pausing);
  const paused = [
    { type: 'uploading', job, bytes: 1 },
    { type: 'ended', job: served },
    { type: 'paused', error: null },
    { type: 'nothing', skipped: {} },
    { type: 'gpuBusy' },
  ] satisfies ConnectionEvent[];
  expect(paused.reduce(advanceConnection, pausing)).toEqual({
    status: 'paused',
    error: null,
    identity,
  });
});

test('a connection that is lost comes back idle', () => {
  const lost = { type: 'unreachable', at: 9, reason: 'stopped' } as const;
  const gone = after({ type: 'connecting' }, connected, lost);
  expect(gone).toEqual({ status: 'reconnecting', at: 9, reason: 'stopped' });
  expect(advanceConnection(gone, connected)).toMatchObject({ status: 'idle' });
});

test('the queue is shown as it is now, whatever the worker does', () => {
  const longer = { type: 'identity', identity: { ...identity, waiting: 9 } } as const;
  const working = after({ type: 'connecting' }, connected, claimed);
  expect(advanceConnection(working, longer)).toEqual({ ...working, identity: longer.identity });
  expect(advanceConnection(disconnected, longer)).toBe(disconnected);
});

test('unanswered heartbeats are shown and change nothing else', () => {
  const working = after({ type: 'connecting' }, connected, claimed);
  expect(advanceConnection(working, { type: 'heartbeat', answered: true })).toBe(working);
  const unanswered = advanceConnection(working, { type: 'heartbeat', answered: false });
  expect(unanswered).toEqual({ ...working, answered: false });
});

test('what does not fit a state leaves the very same object', () => {
  const error = { code: 'BUSY', message: 'm', remedy: 'r' } as const;
  const refused = after({ type: 'connecting' }, { type: 'refused', error });
  const stray: ConnectionEvent[] = [
    { type: 'nothing', skipped: {} },
    { type: 'gpuBusy' },
    { type: 'resumed' },
    claimed,
    { type: 'ended', job: served },
    { type: 'unreachable', at: 1, reason: '' },
    connected,
  ];
  for (const event of stray) {
    expect(advanceConnection(refused, event)).toBe(refused);
    if (event !== connected) expect(advanceConnection(disconnected, event)).toBe(disconnected);
  }
  const waiting = after({ type: 'connecting' }, connected, { type: 'gpuBusy' });
  expect(waiting.status).toBe('waiting');
  expect(advanceConnection(waiting, { type: 'ended', job: served })).toBe(waiting);
});
