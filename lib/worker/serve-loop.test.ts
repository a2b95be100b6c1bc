import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../contract/v3';
import { WorkerClient } from './client';
import type { ConnectionEvent } from './connection';
import { Adapters } from './inputs';
import type { PendingUploads } from './pending-uploads';
import { ServeLoop } from './serve-loop';
import { newJob, SmallRelay, serveOptions } from './testing/relay';

let relay: SmallRelay;
let loop: ServeLoop;
let running: Promise<void>;
let events: ConnectionEvent[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const request = (_name: string, _options: unknown, work: (lock: unknown) => unknown) => work({});
  vi.stubGlobal('navigator', { locks: { request } });
  relay = new SmallRelay();
  events = [];
});
afterEach(async () => {
  loop.stop();
  await vi.advanceTimersByTimeAsync(60_000);
  await running;
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A worker whose engine never starts, so that nothing is ever to be uploaded. */
function serve(): void {
  const client = new WorkerClient({ ...serveOptions, fetch: relay.fetch });
  const pendingUploads = { sweep: async () => {}, all: async () => [], drop: async () => {} };
  loop = new ServeLoop({
    options: serveOptions,
    client,
    engine: {
      open() {
        throw new Error('it does not start');
      },
      close() {},
    },
    adapters: new Adapters(client, serveOptions.hub),
    abilities: async () => ({
      knows: [],
      safety_checker: 'ready',
      prompt_optimizer: false,
    }),
    pendingUploads: pendingUploads as unknown as PendingUploads,
    onEvent: (event) => events.push(event),
    onLease() {},
  });
  running = loop.run();
}

const count = (type: ConnectionEvent['type']) => events.filter((it) => it.type === type).length;
/** Lets the clock go on until so many jobs have ended: to read an image takes turns of the event loop. */
const untilEnded = (jobs: number) =>
  vi.waitFor(() => expect(count('ended')).toBe(jobs), { interval: 10, timeout: 30_000 });
/** Requests for a job; those of a worker that only says that it is there do not count. */
const claims = () =>
  relay.asked.filter(({ verb, body }) => verb === 'claim' && body.paused !== true).length;

test('a relay that fails at every claim is asked again after growing waits', async () => {
  for (let n = 0; n < 500; n++) relay.faults.push(['claim', 'INTERNAL']);
  serve();
  await vi.advanceTimersByTimeAsync(60_000);
  // 1, 2, 4, 8, 16, 32 s, each between half and whole.
  expect(claims()).toBeGreaterThanOrEqual(6);
  expect(claims()).toBeLessThanOrEqual(8);
  // A person, or the browser that is online again, does not wait.
  const before = claims();
  loop.retryNow();
  await vi.advanceTimersByTimeAsync(0);
  expect(claims()).toBe(before + 1);
  // After a claim that was answered the waits are short again.
  relay.faults.length = 0;
  loop.retryNow();
  await vi.advanceTimersByTimeAsync(1000);
  relay.faults.push(['claim', 'INTERNAL']);
  loop.retryNow();
  await vi.advanceTimersByTimeAsync(100);
  const last = events.findLast((event) => event.type === 'unreachable');
  expect((last?.at ?? 0) - Date.now()).toBeLessThanOrEqual(1000);
});

test('the length of the queue is told again and again, as long as the connection stands', async () => {
  const told = () =>
    events.flatMap((event) => (event.type === 'identity' ? [event.identity.waiting] : []));
  serve();
  loop.pause();
  relay.submit(newJob(1));
  await vi.advanceTimersByTimeAsync(15_000);
  relay.submit(newJob(2));
  // One that is not answered is no loss of the connection.
  relay.faults.push(['me', 'cut']);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(told()).toEqual([1, 2]);
  expect(count('unreachable')).toBe(0);
  loop.stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(told()).toEqual([1, 2]);
});

test('a key of another kind is named', async () => {
  relay.faults.push(['me', 'FORBIDDEN']);
  serve();
  await running;
  const message = new ApiError('FORBIDDEN').message;
  expect(events.at(-1)).toMatchObject({ type: 'refused', error: { message } });
});

test('a worker that is unfit pauses once, and reports meanwhile that it is connected', async () => {
  for (let n = 1; n <= 4; n++) relay.submit(newJob(n));
  serve();
  await untilEnded(3);
  await vi.advanceTimersByTimeAsync(1000);
  expect(events.at(-1)).toMatchObject({ type: 'paused', error: { code: 'INTERNAL' } });
  await vi.advanceTimersByTimeAsync(290_000);
  expect(claims()).toBe(3);
  // Every 25 s.
  expect(relay.asked.filter(({ body }) => body.paused === true).length).toBe(12);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(count('resumed')).toBe(1);
  await untilEnded(4);
});
