import { describe, expect, test } from 'vitest';
import { type PartState, type PartStatus, partStatuses } from '../contract';
import { absentPart, advancePart, type PartEvent } from './machine';

const bytes = { bytesDone: 40, bytesTotal: 100, bytesStored: 42 };
const error = { code: 'HUB_NOT_FOUND', message: 'There is no file.', remedy: 'Look.' } as const;

/** A part that has come as far as `status`. */
function partIn(status: PartStatus): PartState {
  const base = { component: 'vae', status, ...bytes } as const;
  if (status === 'absent') return absentPart('vae', 100);
  if (status === 'paused') return { ...base, pausedBy: 'user' };
  if (status === 'failed') return { ...base, error };
  return base;
}

const events: Record<PartEvent['type'], PartEvent> = {
  queued: { type: 'queued' },
  started: { type: 'started' },
  progress: { type: 'progress', bytesDone: 60, bytesTotal: 100, bytesStored: 63 },
  noticed: { type: 'noticed', notice: 'Waits 3 s.' },
  paused: { type: 'paused', by: 'network' },
  restarted: { type: 'restarted', notice: 'It changed.' },
  verifying: { type: 'verifying' },
  completed: { type: 'completed', bytes: 100, bytesStored: 106 },
  failed: { type: 'failed', error },
  removed: { type: 'removed' },
  interrupted: { type: 'interrupted', ...bytes },
  sized: { type: 'sized', bytesTotal: 200 },
};

/** The status that follows; a missing entry is an event that changes nothing. */
const follows: Record<PartStatus, Partial<Record<PartEvent['type'], PartStatus>>> = {
  absent: { queued: 'waiting', completed: 'complete', removed: 'absent', interrupted: 'paused' },
  waiting: {
    started: 'downloading',
    noticed: 'waiting',
    paused: 'paused',
    restarted: 'waiting',
    failed: 'failed',
    removed: 'absent',
  },
  downloading: {
    progress: 'downloading',
    noticed: 'downloading',
    paused: 'paused',
    restarted: 'downloading',
    completed: 'complete',
    failed: 'failed',
    removed: 'absent',
  },
  paused: { queued: 'waiting', removed: 'absent' },
  verifying: { progress: 'verifying', completed: 'complete', removed: 'absent' },
  complete: { queued: 'waiting', noticed: 'complete', verifying: 'verifying', removed: 'absent' },
  failed: { queued: 'waiting', removed: 'absent' },
};

describe.each(partStatuses)('%s', (status) => {
  test.each(Object.keys(events) as PartEvent['type'][])('on %s', (type) => {
    const part = partIn(status);
    const next = advancePart(part, events[type]);
    if (type === 'sized') expect(next).toEqual({ ...part, bytesTotal: 200 });
    else if (follows[status][type] === undefined) expect(next).toBe(part);
    else expect(next.status).toBe(follows[status][type]);
  });
});

test('a paused part keeps its bytes, and says why', () => {
  const paused = advancePart(partIn('downloading'), { type: 'paused', by: 'storage', error });
  expect(paused).toEqual({ ...partIn('paused'), pausedBy: 'storage', error });
  const queued = advancePart(paused, { type: 'queued' });
  expect(queued).toEqual({ component: 'vae', status: 'waiting', ...bytes });
});

test('what is to be replaced has none of its bytes yet', () => {
  const { bytesDone, bytesTotal } = advancePart(partIn('complete'), { type: 'queued' });
  expect({ bytesDone, bytesTotal }).toEqual({ bytesDone: 0, bytesTotal: null });
});

test('a pause by the connection becomes one by the user, not the other way round', () => {
  const network: PartState = { ...partIn('paused'), pausedBy: 'network' };
  expect(advancePart(network, { type: 'paused', by: 'user' }).pausedBy).toBe('user');
  expect(advancePart(partIn('paused'), { type: 'paused', by: 'network' }).pausedBy).toBe('user');
});

test('a file that starts over says so to its end, a retry until something comes', () => {
  const restarted = advancePart(partIn('downloading'), events.restarted);
  expect(restarted).toMatchObject({ bytesDone: 0, bytesStored: 0, notice: 'It changed.' });
  const waiting = advancePart(restarted, events.noticed);
  expect(waiting.notice).toBe('Waits 3 s.');
  const going = advancePart(waiting, events.progress);
  expect(going.notice).toBe('It changed.');
  expect(advancePart(going, events.completed)).toMatchObject({ notice: 'It changed.' });
  const retried = advancePart(partIn('downloading'), events.noticed);
  expect(advancePart(retried, events.progress).notice).toBeUndefined();
});

test('what is complete or gone has all or none of its bytes', () => {
  expect(advancePart(partIn('downloading'), events.completed)).toEqual({
    component: 'vae',
    status: 'complete',
    bytesDone: 100,
    bytesTotal: 100,
    bytesStored: 106,
  });
  expect(advancePart(partIn('paused'), { type: 'removed', error })).toEqual({
    ...absentPart('vae', 100),
    error,
  });
});
