import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { ApiError, type ApiErrorCode } from '../contract/v3';
import { holdTimers } from '../weights/testing/held-timers';
import { WorkerClient } from './client';
import { isLeaseLost, isUnauthorized, TransportError } from './transport-error';
import { uploadVideo } from './upload';

type Answer = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;

/** A real server on this machine; each request takes the next answer of the script. */
let script: Answer[] = [];
const seen: { method: string; url: string; headers: IncomingMessage['headers']; body: Buffer }[] =
  [];
/** How often the file that stops coming was asked for. */
let stalled = 0;
const server = createServer((request, response) => {
  // Beside the script: an attempt that was given up may be seen as late as in the next test.
  if (request.url === '/stalled') {
    stalled += 1;
    response.writeHead(200, { 'Content-Length': 9 }).write('x');
    return;
  }
  const next = script.shift();
  if (!next) {
    response.writeHead(500).end('no answer is left');
    return;
  }
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('error', () => {});
  request.on('end', () => {
    const body = Buffer.concat(parts);
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, headers, body });
    next(request, response, body);
  });
});
const waits: number[] = [];
/** A limit that nothing which is only slow ever reaches. */
const stallMs = 30_000;
let client: WorkerClient;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const sleep = async (ms: number) => void waits.push(ms);
  const clock = { now: Date.now, random: () => 0, sleep };
  const fileLimits = { timeoutMs: stallMs, giveUpMs: 500 };
  client = new WorkerClient({ server: origin, token: 'kn_secret', clock, fileLimits });
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  script = [];
  seen.length = 0;
  waits.length = 0;
});

const ok =
  (data: unknown): Answer =>
  (_, response) =>
    json(response, 200, { code: 200, message: 'success', data });
const refuse =
  (code: ApiErrorCode): Answer =>
  (_, response) => {
    const error = new ApiError(code);
    json(response, error.status, error.toBody('req'));
  };
const isRateLimited: Answer = (_, response) => {
  response.setHeader('Retry-After', '7');
  json(response, 429, new ApiError('RATE_LIMITED').toBody('req'));
};
const cut: Answer = (request) => request.socket.destroy();

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

const id = 'ab'.repeat(16);
const target = { id, leaseToken: 't', sha256: '0'.repeat(64) };
const noSignal = new AbortController().signal;

test('cuts and answers of 500 and more are tried again, with the token', async () => {
  const identity = { token: 'x', owner: 'ann', shared: false, accepts_models: [], waiting: 0 };
  script = [cut, refuse('STORAGE_DOWN'), (_, r) => json(r, 502, {}), ok(identity)];
  expect(await client.me()).toEqual(identity);
  // The one that was cut was seen as well.
  expect(seen).toHaveLength(4);
  expect(seen.every(({ headers }) => headers.authorization === 'Bearer kn_secret')).toBe(true);
});

test('a relay that is asked too often is asked again after the time that it names', async () => {
  script = [isRateLimited, ok({})];
  await client.fail(id, { lease_token: 't', code: 'INTERNAL', message: '', retryable: true });
  expect(waits).toEqual([7000]);
});

test('a job in an unknown form is refused', async () => {
  const job = { id, attempt: 1, lease_token: 't', heartbeat_interval_ms: null };
  const rest = { skipped: {}, retry_after_ms: 5000 };
  script = [ok({ job, ...rest }), ok({ ...rest, job: null, retry_after_ms: 'soon' })];
  const declared = {} as Parameters<typeof client.claim>[0];
  const sentence = 'the server gives out jobs in a form that is not known here';
  await expect(client.claim(declared)).rejects.toThrow(sentence);
  await expect(client.claim(declared)).rejects.toThrow(sentence);
});

test('a file that stops coming ends', async () => {
  const { server } = client;
  const fileLimits = { timeoutMs: 100, giveUpMs: 150 };
  const hasty = new WorkerClient({ server, token: 't', fileLimits, firstDelayMs: 1 });
  // The same byte again and again is no progress.
  await expect(hasty.file('/stalled')).rejects.toThrow('the server does not answer in time');
  expect(stalled).toBeLessThan(10);
});

test('a file that comes slowly goes on: every piece has the whole time', async () => {
  const limits = holdTimers(stallMs);
  try {
    script = [
      async (_, response) => {
        response.setHeader('Content-Type', 'image/png');
        for (let piece = 0; piece < 5; piece++) {
          const [before] = limits.running;
          response.write('piece ');
          // The limit of the time before it has ended, and no other than its own runs.
          await expect.poll(() => limits.running, { timeout: stallMs }).not.toContain(before);
          expect(limits.running).toHaveLength(1);
        }
        response.end();
      },
    ];
    const slow = await client.file('/slow');
    expect(await slow.text()).toBe('piece '.repeat(5));
    expect(slow.type).toBe('image/png');
    expect(limits.running).toEqual([]);
  } finally {
    limits.release();
  }
});

test('a refusal is never tried again, and is what the relay said', async () => {
  script = [refuse('UNAUTHORIZED'), ok({})];
  const error = await client.me().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({
    code: 'UNAUTHORIZED',
    message: 'The API key is missing or not valid.',
    remedy: 'Send the header `Authorization: Bearer <API_KEY>`.',
  });
  expect(isUnauthorized(error)).toBe(true);
  expect(seen).toHaveLength(1);
});

test('a lost lease is an outcome of its own', async () => {
  script = [refuse('LEASE_LOST'), refuse('CONFLICT')];
  const lost = await client.lease(id, 'tok').catch((thrown: unknown) => thrown);
  expect(isLeaseLost(lost)).toBe(true);
  expect(seen[0]).toMatchObject({ method: 'POST', url: `/api/worker/jobs/${id}/lease` });
  expect(JSON.parse(`${seen[0]?.body}`)).toEqual({ lease_token: 'tok' });
  const other = await client.lease(id, 'tok').catch((thrown: unknown) => thrown);
  expect(isLeaseLost(other)).toBe(false);
});

test('an answer that is not the relay’s counts as unreachable', async () => {
  script = [(_, r) => r.writeHead(200).end('<html>'), (_, r) => json(r, 200, { data: null })];
  const declared = {} as Parameters<typeof client.claim>[0];
  await expect(client.claim(declared)).rejects.toBeInstanceOf(TransportError);
  await expect(client.claim(declared)).rejects.toBeInstanceOf(TransportError);
});

test('a signal ends a call, and no attempt follows', async () => {
  const stop = new AbortController();
  script = [() => stop.abort(new Error('enough')), ok({})];
  await expect(client.me({ signal: stop.signal })).rejects.toThrow('enough');
  expect(seen).toHaveLength(1);
});

test('an upload that was cut is sent again, whole', async () => {
  const bytes = crypto.getRandomValues(new Uint8Array(1000));
  const odd = { id, leaseToken: 'a b', sha256: 'f'.repeat(64) };
  script = [cut, refuse('STORAGE_DOWN'), ok({})];
  await uploadVideo(client, odd, new Blob([bytes]), noSignal);
  expect(seen.map(({ method }) => method)).toEqual(['PUT', 'PUT', 'PUT']);
  for (const { url, headers, body } of seen) {
    expect(url).toBe(`/api/worker/jobs/${id}/output?lease_token=a+b&sha256=${'f'.repeat(64)}`);
    expect(headers['content-type']).toBe('video/mp4');
    expect(body.equals(bytes)).toBe(true);
  }
});

test('an upload that is refused for a time is sent again after it', async () => {
  script = [isRateLimited, ok({})];
  await uploadVideo(client, target, new Blob(['x']), noSignal);
  expect(seen.map(({ method }) => method)).toEqual(['PUT', 'PUT']);
  expect(waits).toEqual([7000]);
});

test('an upload whose answer never comes counts as cut', async () => {
  const real = globalThis.setTimeout;
  let expire: () => void = () => undefined;
  const limits: (number | undefined)[] = [];
  const limit = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((
    end: () => void,
    ms?: number,
  ) => {
    if (ms === 30_000) expire = end;
    if ((ms ?? 0) >= 30_000) limits.push(ms);
    return real(end, ms);
  }) as typeof setTimeout);
  script = [() => expire(), ok({})];
  try {
    await uploadVideo(client, target, new Blob(['x']), noSignal);
    expect(seen.map(({ method }) => method)).toEqual(['PUT', 'PUT']);
    // The second attempt may take twice as long.
    expect(limits).toEqual([30_000, 60_000]);
  } finally {
    limit.mockRestore();
  }
});

test('an upload without a lease ends at once', async () => {
  script = [refuse('LEASE_LOST')];
  const error = await uploadVideo(client, target, new Blob(['x']), noSignal)
    .then(() => null)
    .catch((thrown: unknown) => thrown);
  expect(isLeaseLost(error)).toBe(true);
});
