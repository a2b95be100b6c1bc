import { expect, test } from 'vitest';
import { ApiError } from '../contract/v3';
import { WorkerClient } from './client';
import { keepLease } from './lease-keeper';

const lease = { id: 'ab'.repeat(16), token: 'tok', heartbeatMs: 15_000 };
const state = async () => ({
  phase: null,
  step: 0,
  steps: 0,
  clip: 0,
  clips: 1,
  seconds_remaining: null,
});

/** Keeps a lease through sleeps of the given lengths; the last answer of the relay is `LEASE_LOST`. */
async function keep(sleeps: number[], answers: number): Promise<{ asked: string[]; lost: number }> {
  const asked: string[] = [];
  let now = 0;
  let lost = 0;
  const clock = {
    now: () => now,
    random: () => 0,
    sleep: async () => {
      now += sleeps.shift() ?? 0;
    },
  };
  const answer = async (input: string | URL | Request) => {
    asked.push(`${input}`.split('/').at(-1) ?? '');
    if (asked.length < answers) return Response.json({ data: { lease_until: '', deadline: '' } });
    const error = new ApiError('LEASE_LOST');
    return Response.json(error.toBody('req'), { status: error.status });
  };
  const client = new WorkerClient({
    server: 'http://relay.test',
    token: 't',
    clock,
    fetch: answer,
  });
  const watcher = { state, onLost: () => lost++, onRefused: () => {}, onAnswered: () => {} };
  await keepLease(client, lease, watcher, new AbortController().signal);
  return { asked, lost };
}

test('after a sleep of the machine it asks whether the lease still stands, before the next heartbeat', async () => {
  const still = await keep([15_000, 3_600_000, 15_000], 5);
  expect(still).toEqual({
    asked: ['heartbeat', 'heartbeat', 'lease', 'heartbeat', 'heartbeat'],
    lost: 1,
  });
  const gone = await keep([3_600_000], 2);
  expect(gone).toEqual({ asked: ['heartbeat', 'lease'], lost: 1 });
});

test('a timer that is a little late is no sleep', async () => {
  expect((await keep([22_000, 15_010], 3)).asked).toEqual(['heartbeat', 'heartbeat', 'heartbeat']);
});
