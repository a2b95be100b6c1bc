import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { parseParameters } from '../contract/request';
import type { WorkerJob } from '../contract/v3/worker';
import { WorkerClient } from './client';
import type { ConnectionEvent } from './connection';
import { Adapters } from './inputs';
import type { PendingUploads } from './pending-uploads';
import { ServeLoop } from './serve-loop';
import { SmallRelay } from './testing/relay';

const options = {
  server: 'http://relay.test',
  token: 'kn_token',
  name: 'Test',
  model: 'tiny',
  precision: 'f32',
  sizes: ['1280*720'],
  backend: 'wasm',
  hub: 'https://hub.test',
} as const;

let relay: SmallRelay;
let loop: ServeLoop;
let running: Promise<void>;
let events: ConnectionEvent[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const request = (_name: string, _options: unknown, work: (lock: unknown) => unknown) => work({});
  vi.stubGlobal('navigator', { locks: { request } });
  relay = new SmallRelay();
  relay.files.set('/files/image', new Blob(['image bytes']));
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
  const client = new WorkerClient({ ...options, fetch: relay.fetch });
  const pendingUploads = { sweep: async () => {}, all: async () => [], drop: async () => {} };
  loop = new ServeLoop({
    options,
    client,
    engine: {
      open() {
        throw new Error('it does not start');
      },
      close() {},
    },
    adapters: new Adapters(client, options.hub),
    abilities: async () => ({ safety_checker: 'ready', prompt_optimizer: false }),
    pendingUploads: pendingUploads as unknown as PendingUploads,
    onEvent: (event) => events.push(event),
    onLease() {},
  });
  running = loop.run();
}

function submit(n: number): void {
  const job: WorkerJob = {
    id: `${n}`.padStart(32, '0'),
    attempt: 1,
    lease_token: `lease-${n}`,
    lease_until: '',
    deadline: '',
    heartbeat_interval_ms: 15_000,
    model: 'kinora/wan-2.2/i2v-720p-lora',
    parameters: parseParameters({ prompt: 'a boat', seed: 7 }),
    enable_prompt_optimizer: false,
    enable_safety_checker: true,
    image: { url: '/files/image', type: 'image/png', bytes: 11 },
    loras: [],
  };
  relay.submit(job);
}

const count = (type: ConnectionEvent['type']) => events.filter((it) => it.type === type).length;
/** Lets the clock go on until so many jobs have ended: to read an image takes turns of the event loop. */
const untilEnded = (jobs: number) =>
  vi.waitFor(() => expect(count('ended')).toBe(jobs), { interval: 10, timeout: 30_000 });
/** Requests for a job; those of a worker that only says that it is there do not count. */
const claims = () =>
  relay.asked.filter(({ verb, body }) => verb === 'claim' && body.paused !== true).length;

test('a relay that knows its workers but cannot give jobs is left alone with growing waits', async () => {
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

test('a worker that took itself out pauses once, and reports meanwhile that it is there', async () => {
  for (let n = 1; n <= 4; n++) submit(n);
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
