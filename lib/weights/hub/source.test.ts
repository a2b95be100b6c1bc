import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { KinoraError } from '../../contract';
import { SourceChanged } from '../formats/source';
import { holdTimers } from '../testing/held-timers';
import type { Fault, FaultRule } from '../testing/hub/faults';
import { type LocalHub, startHub } from '../testing/hub/server';
import { HubClient, type HubOptions } from './client';
import { systemClock } from './retry';
import { hubByteSource } from './source';

const repository = 'owner/model';
const path = 'weights.gguf';
const size = 1_000_003;
const kib = 1024;
const content = bytesOf(size, 7);
let hub: LocalHub;

beforeAll(async () => {
  hub = await startHub();
});
afterAll(() => hub.close());
afterEach(() => {
  hub.heal();
  hub.forget();
});

function bytesOf(length: number, seed: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

// On a busy machine an honest answer may take a while: a short limit is for what never answers.
const policy = { firstDelayMs: 1, longestDelayMs: 4, stallMs: 30_000, rateLimitDelayMs: 2 };

/** The file as it is on the hub now, in ranges of 64 KiB. */
async function open(options: HubOptions = {}) {
  const { client, file } = await openFile(options);
  return hubByteSource(client, file, { rangeBytes: 64 * kib, parallel: 4 });
}

async function openFile(options: HubOptions = {}) {
  hub.repositories.put(repository, path, content);
  const client = new HubClient(hub.url, { policy, ...options });
  return { client, file: await client.file({ repository, path, revision: 'main' }) };
}

async function readAll(
  source: Awaited<ReturnType<typeof open>>,
  start = 0,
  end = size,
  onBytes?: (position: number) => void,
) {
  const whole = new Uint8Array(end - start);
  let at = 0;
  for await (const bytes of source.stream(start, end, new AbortController().signal)) {
    whole.set(bytes, at);
    at += bytes.length;
    onBytes?.(at);
  }
  expect(at).toBe(end - start);
  return whole;
}

function expectContent(bytes: Uint8Array, start = 0, end = size) {
  expect(Buffer.compare(bytes, content.subarray(start, end))).toBe(0);
}

test('a file comes whole, in parallel ranges, each byte once', async () => {
  const source = await open();
  expect(source).toMatchObject({ size, name: expect.stringContaining(`${repository}/${path}@`) });
  expect(source.sha256).toMatch(/^[0-9a-f]{64}$/);
  expectContent(await readAll(source));
  expect(hub.served(path)).toEqual({ bytes: size, requests: 16, bytesTwice: 0 });
});

test('a part is fetched and nothing besides', async () => {
  const source = await open();
  expectContent(await source.read(70_000, 300_001), 70_000, 300_001);
  expect(hub.served(path).bytes).toBe(230_001);
  expect(await source.read(5, 5)).toHaveLength(0);
  await expect(source.read(0, size + 1)).rejects.toMatchObject({ code: 'MODEL_FILE_TRUNCATED' });
});

test('an address of the storage that has expired is asked for anew, at the byte where it stopped', async () => {
  const source = await open();
  hub.fail({ fault: { kind: 'expired' }, host: 'hub', path, fromByte: 64 * kib, times: 3 });
  expectContent(await readAll(source));
  expect(hub.requests.filter(({ status }) => status === 403)).toHaveLength(3);
  expect(hub.served(path).bytesTwice).toBe(0);
});

test('the same etag counts as the same, weak or strong; hidden headers are not missed', async () => {
  let answers = 0;
  const source = await open({
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (response.status !== 206) return response;
      const headers = new Headers(response.headers);
      const odd = answers++ % 3;
      if (odd === 0) headers.set('etag', `W/${headers.get('etag')}`);
      if (odd === 1) for (const name of ['etag', 'content-range']) headers.delete(name);
      return new Response(response.body, { status: 206, headers });
    },
  });
  expectContent(await readAll(source));
  expect(hub.served(path).bytesTwice).toBe(0);
});

const healed: readonly (readonly [name: string, rule: Omit<FaultRule, 'fault'>, fault: Fault])[] = [
  [
    'a cut in the middle of a range',
    { fromByte: 1, times: 3 },
    { kind: 'cut', afterBytes: 30_000 },
  ],
  ['a cut before the first byte', { times: 2 }, { kind: 'cut', afterBytes: 0 }],
  ['a reset connection', { times: 3 }, { kind: 'reset' }],
  ['a truncated body', { times: 3 }, { kind: 'short', bytes: 20_000 }],
  ['a slow body', { times: 1 }, { kind: 'slow', pieceBytes: 4 * kib, pauseMs: 20 }],
  ['503', { times: 4 }, { kind: 'status', status: 503 }],
  ['500', { times: 2 }, { kind: 'status', status: 500 }],
  ['429 without a time', { times: 4 }, { kind: 'status', status: 429 }],
  ['416 that is wrong', { times: 2 }, { kind: 'status', status: 416 }],
];

test.each(healed)('%s is healed without fetching a byte twice', async (_, rule, fault) => {
  const source = await open();
  hub.fail({ ...rule, fault, host: 'storage' });
  expectContent(await readAll(source));
  expect(hub.served(path)).toMatchObject({ bytes: size, bytesTwice: 0 });
});

test('a body that stops is healed without fetching a byte twice', async () => {
  const { client, file } = await openFile();
  // The last two ranges stop, when all before them are there.
  const [fromByte, afterBytes] = [14 * 64 * kib, 10_000];
  let arrived = 0;
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const onBytes = (bytes: number) => {
    arrived += bytes;
    if (arrived === fromByte + 2 * afterBytes) stop();
  };
  const source = hubByteSource(client, file, { rangeBytes: 64 * kib, parallel: 4, onBytes });
  hub.fail({ fault: { kind: 'stall', afterBytes }, host: 'storage', fromByte, times: 2 });
  const limits = holdTimers(policy.stallMs);
  try {
    const reading = readAll(source);
    await stopped;
    limits.end();
    expectContent(await reading);
  } finally {
    limits.release();
  }
  expect(hub.served(path)).toMatchObject({ bytes: size, bytesTwice: 0 });
});

test('another part of the file than the one asked for is never taken', async () => {
  const source = await open();
  hub.fail({ fault: { kind: 'shifted', by: 100 }, host: 'storage', times: 2 });
  expectContent(await readAll(source));
});

test('the whole file instead of a part is not taken for the part', async () => {
  const source = await open();
  hub.fail({ fault: { kind: 'whole' }, host: 'storage', fromByte: 1, times: 3 });
  expectContent(await readAll(source));
});

test('a server that knows no ranges is read in one go', async () => {
  const source = await open();
  hub.fail({ fault: { kind: 'whole' }, host: 'storage', times: 1000 });
  expectContent(await readAll(source));
  expectContent(await readAll(source, 200_000), 200_000);
});

test('a storage that refuses every address is reported as a refusal', async () => {
  const source = await open({ policy: { ...policy, attempts: 3 } });
  hub.fail({ fault: { kind: 'expired' }, host: 'hub', path, times: 1000 });
  await expect(readAll(source)).rejects.toMatchObject({
    code: 'HUB_DENIED',
    message: expect.stringContaining('the storage refuses'),
  });
});

test('Retry-After is waited for, in seconds and as a date', async () => {
  const waits: number[] = [];
  const now = Date.parse('2026-11-21T10:00:00Z');
  const clock = {
    now: () => now,
    random: () => 0,
    sleep: async (ms: number) => void waits.push(ms),
  };
  const source = await open({ clock });
  hub.fail({
    fault: { kind: 'status', status: 429, headers: { 'Retry-After': '17' } },
    host: 'storage',
  });
  await source.read(0, 10);
  hub.fail({
    fault: {
      kind: 'status',
      status: 503,
      headers: { 'Retry-After': 'Sat, 21 Nov 2026 10:01:00 GMT' },
    },
    host: 'storage',
  });
  await source.read(0, 10);
  expect(waits).toEqual([17_000, 60_000]);
});

test('a server that asks to wait an hour is not waited for, and says so', async () => {
  const source = await open();
  const headers = { 'Retry-After': '3600' };
  hub.fail({ fault: { kind: 'status', status: 429, headers }, host: 'storage', times: 100 });
  const failure = await source.read(0, 10).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(KinoraError);
  expect(failure).toMatchObject({ code: 'HUB_BUSY', message: expect.stringContaining('3600 s') });
});

test('a hub that answers 429 without a time is asked for six minutes', async () => {
  const waits: number[] = [];
  const sleep = async (ms: number) => void waits.push(ms);
  const source = await open({ clock: { ...systemClock, sleep }, policy: {} });
  hub.fail({ fault: { kind: 'status', status: 429 }, host: 'storage', times: 1000 });
  await expect(source.read(0, 10)).rejects.toMatchObject({ code: 'HUB_BUSY' });
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(30_000);
  const minutes = waits.reduce((sum, ms) => sum + ms) / 60_000;
  expect(minutes).toBeGreaterThan(5);
  expect(minutes).toBeLessThan(6.5);
});

const reported: readonly (readonly [name: string, fault: Fault, code: string])[] = [
  ['no connection', { kind: 'reset' }, 'HUB_UNREACHABLE'],
  ['a body that never comes', { kind: 'stall', afterBytes: 0 }, 'HUB_UNREACHABLE'],
  ['503 without end', { kind: 'status', status: 503 }, 'HUB_BUSY'],
  ['429 without end', { kind: 'status', status: 429 }, 'HUB_BUSY'],
  ['416 without end', { kind: 'status', status: 416 }, 'HUB_ANSWER_INVALID'],
  ['wrong parts without end', { kind: 'shifted', by: 9 }, 'HUB_ANSWER_INVALID'],
  ['404', { kind: 'status', status: 404 }, 'HUB_NOT_FOUND'],
  ['401', { kind: 'status', status: 401 }, 'HUB_DENIED'],
  ['403', { kind: 'status', status: 403 }, 'HUB_DENIED'],
  ['418', { kind: 'status', status: 418 }, 'HUB_ANSWER_INVALID'],
];

test.each(reported)('%s is reported', async (_, fault, code) => {
  const { file } = await openFile();
  const few = { ...policy, attempts: 4, rateLimitAttempts: 4 };
  const hasty = fault.kind === 'stall' ? { ...few, stallMs: 20 } : few;
  const source = hubByteSource(new HubClient(hub.url, { policy: hasty }), file);
  hub.fail({ fault, host: 'storage', times: 1000 });
  await expect(source.read(100, 200)).rejects.toMatchObject({ code });
});

test('a redirect that leads nowhere is reported', async () => {
  const source = await open({ policy: { ...policy, attempts: 2 } });
  hub.fail({ fault: { kind: 'loop' }, times: 1000 });
  await expect(source.read(0, 10)).rejects.toMatchObject({ code: 'HUB_UNREACHABLE' });
});

test('a file that changes on the hub while it is read is noticed, whatever its size', async () => {
  for (const replacement of [bytesOf(size, 8), bytesOf(size - 5, 9)]) {
    const source = await open();
    let changed = false;
    const reading = readAll(source, 0, size, (position) => {
      if (changed || position < 200_000) return;
      changed = true;
      hub.repositories.put(repository, path, replacement);
    });
    await expect(reading).rejects.toBeInstanceOf(SourceChanged);
  }
});

test('another file of the repository may change meanwhile', async () => {
  const source = await open();
  let changed = false;
  const bytes = await readAll(source, 0, size, (position) => {
    if (changed || position < 200_000) return;
    changed = true;
    hub.repositories.put(repository, 'README.md', `changed ${position}`);
  });
  expectContent(bytes);
});

test('a stream that is left ends its requests', async () => {
  const source = await open();
  hub.fail({
    fault: { kind: 'slow', pieceBytes: kib, pauseMs: 5 },
    host: 'storage',
    times: 1000,
  });
  for await (const bytes of source.stream(0, size, new AbortController().signal)) {
    expect(bytes.length).toBeGreaterThan(0);
    break;
  }
  const before = hub.served(path).bytes;
  // As often as the server would have sent a piece of each.
  for (let pause = 0; pause < 12; pause++) await systemClock.sleep(5);
  expect(hub.served(path).bytes - before).toBeLessThan(20 * kib);
});

test('an aborted stream rejects with the reason it was given', async () => {
  const source = await open();
  const abort = new AbortController();
  const reason = new KinoraError('CANCELLED');
  async function read() {
    for await (const bytes of source.stream(0, size, abort.signal)) {
      if (bytes.length > 0) abort.abort(reason);
    }
  }
  await expect(read()).rejects.toBe(reason);
});

/** A line of so many bytes per millisecond: its clock goes on with what comes over it. */
function line(bytesPerMs: number) {
  let arrived = 0;
  const clock = { ...systemClock, now: () => arrived / bytesPerMs };
  return { clock, onBytes: (bytes: number) => (arrived += bytes), arrived: () => arrived };
}

test.each([
  ['a slow line', 100, 4 * 256 * kib],
  ['a fast one', 125_000, 4 * 2 ** 20],
])('on %s the window is what a moment brings', async (_, bytesPerMs, window) => {
  const long = bytesOf(9 * 2 ** 20, 5);
  hub.repositories.put(repository, path, long);
  const { clock, onBytes, arrived } = line(bytesPerMs);
  const client = new HubClient(hub.url, { policy, clock });
  const file = await client.file({ repository, path, revision: 'main' });
  const source = hubByteSource(client, file, { rangeBytes: 2 ** 20, parallel: 4, onBytes });
  const first = source.stream(0, long.length, new AbortController().signal);
  let at = 0;
  for await (const bytes of first) {
    expect(arrived() - at).toBeLessThanOrEqual(4 * 2 ** 20);
    at += bytes.length;
    if (at >= 5 * 2 ** 20) break;
  }
  // What was on its way when it ended comes again; nothing else does.
  await systemClock.sleep(60);
  const twice = hub.served(path).bytes - at;
  expect(twice).toBeLessThanOrEqual(window);
  const rest = await source.read(at, long.length);
  expect(Buffer.compare(rest, long.subarray(at))).toBe(0);
  expect(hub.served(path).bytesTwice).toBeLessThanOrEqual(window);
  const requests = hub.requests.filter(({ host }) => host === 'storage').length;
  if (bytesPerMs > 1000) expect(requests).toBeLessThan(30);
  else expect(requests).toBeGreaterThan(30);
});

test('received bytes are reported at once, not when it is their turn', async () => {
  let arrived = 0;
  const { client, file } = await openFile();
  const options = { rangeBytes: 64 * kib, parallel: 4, onBytes: (n: number) => (arrived += n) };
  const source = hubByteSource(client, file, options);
  hub.fail({ fault: { kind: 'stall', afterBytes: 0 }, host: 'storage', times: 1 });
  const limits = holdTimers(policy.stallMs);
  try {
    const reading = source.stream(0, size, new AbortController().signal)[Symbol.asyncIterator]();
    const next = reading.next();
    // The range whose turn it is has brought nothing; the three after it are all there.
    await expect.poll(() => arrived, { timeout: 30_000 }).toBe(3 * 64 * kib);
    limits.end();
    await next;
    await reading.return?.(undefined);
  } finally {
    limits.release();
  }
});

test('what is fetched ahead stays within the ranges', async () => {
  const source = await open();
  const reading = source.stream(0, size, new AbortController().signal)[Symbol.asyncIterator]();
  await reading.next();
  await expect.poll(() => hub.served(path).bytes, { timeout: 30_000 }).toBe(4 * 64 * kib);
  await systemClock.sleep(50);
  expect(hub.served(path).bytes).toBe(4 * 64 * kib);
  await reading.return?.(undefined);
});
