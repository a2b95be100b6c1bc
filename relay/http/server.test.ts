import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiError } from '../../lib/contract/v3';
import { readConfig } from '../config';
import { createMetrics } from '../observe/metrics';
import type { RunningRelay } from '../open';
import { streamed } from './reply';
import { checkMethod } from './request';
import { type RunningServer, startServer, type Timeouts } from './server';

/**
 * The HTTP layer alone: handlers of a few lines in place of files, no pages, a database that can be
 * said to be down.
 */
let down = false;
/** How long a connection may be idle, in milliseconds. */
const idleMs = 300;
const received: number[] = [];
/** Headers that the pages saw last. */
let asked: IncomingHttpHeaders = {};
const routes = {
  'GET /files/video/{file}': async (_relay, { request, params: { file } }) => {
    if (file === 'broken') throw new Error('hush: the reason');
    if (file === 'held') await delay(3 * idleMs);
    if (file === 'half') {
      const half = async function* () {
        yield Buffer.from('half');
        throw new Error('then it broke');
      };
      return new Response(streamed(Readable.from(half())), {
        headers: { 'Content-Length': '100' },
      });
    }
    const [address, requestId] = ['x-kinora-address', 'x-request-id'].map((name) =>
      request.headers.get(name),
    );
    return Response.json({ file, address, requestId });
  },
  'PUT /files/uploads/{id}': async (_relay, { request, params: { id } }) => {
    if (id === 'refused') throw new ApiError('UNAUTHORIZED');
    let bytes = 0;
    for await (const chunk of request.body ?? []) bytes += chunk.length;
    received.push(bytes);
    return {};
  },
} satisfies Partial<RunningRelay['files']['routes']>;

const ping = async () => {
  if (down) throw new ApiError('STORAGE_DOWN');
};
/** Lines of level `error`. */
const faults: string[] = [];
const log = pino({ level: 'error' }, { write: (line: string) => void faults.push(line) });
const stopping = new AbortController();
const config = readConfig({ PORT: '0', KINORA_METRICS_TOKEN: 'metrics-token-of-a-test' });

/** The parts of a relay that the HTTP layer touches. */
function smallRelay(): RunningRelay {
  const parts = {
    config,
    log,
    metrics: createMetrics({
      depth: () => Promise.reject(new Error('There is no database.')),
      workers: async () => [],
      heldClaims: () => 0,
    }),
    store: { ping },
    keys: { authenticateAdmin: () => Promise.reject(new ApiError('UNAUTHORIZED')) },
    limits: { address: async () => ({}), badKey: async () => ({}) },
    files: { routes, blobs: { ping } },
    stopping: stopping.signal,
    finish: async () => stopping.abort(),
    stop: async () => undefined,
  };
  return parts as unknown as RunningRelay;
}

async function start(timeouts?: Timeouts): Promise<RunningServer> {
  const started = await startServer({
    config,
    log,
    pages: async () => ({
      handle: async (request, response) => {
        asked = request.headers;
        if (request.url === '/api/v3/body') for await (const _ of request);
        response.end(`page ${request.url}`);
      },
      close: async () => undefined,
    }),
    open: async () => smallRelay(),
    ...(timeouts && { timeouts }),
  });
  await started.relay;
  return started;
}

let server: RunningServer;
/** A server with short time limits. */
let impatient: RunningServer;
beforeAll(async () => {
  server = await start();
  impatient = await start({
    headMs: 30_000,
    idleMs,
    minBytesPerSecond: 30,
    keepAliveMs: 1000,
  });
});
afterAll(() => Promise.all([server.stop(), impatient.stop()]));

const get = (path: string, options?: RequestInit) => fetch(server.origin + path, options);

const raw = (text: string) => rawAt(server, text);

/** Sends bytes as they are. @returns everything that comes back */
async function rawAt({ port }: RunningServer, ...pieces: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString();
  });
  socket.on('error', () => undefined);
  for (const piece of pieces) socket.write(piece);
  await once(socket, 'close');
  return text;
}

describe('the server', () => {
  it('passes other paths to the pages, with a request id on every answer', async () => {
    const response = await get('/somewhere?a=1');
    expect(await response.text()).toBe('page /somewhere?a=1');
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('keeps a valid request id and replaces any other', async () => {
    const sane = await get('/files/video/a', { headers: { 'x-request-id': 'mine-12345678' } });
    expect(sane.headers.get('x-request-id')).toBe('mine-12345678');
    expect(await sane.json()).toMatchObject({ requestId: 'mine-12345678' });
    const odd = await get('/files/video/a', { headers: { 'x-request-id': 'a "b" {c}' } });
    expect(odd.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('ignores the address that a caller claims', async () => {
    const headers = { 'x-kinora-address': '8.8.8.8', 'x-forwarded-for': '8.8.4.4' };
    const response = await get('/files/video/a', { headers });
    expect(await response.json()).toMatchObject({ address: '127.0.0.1' });
  });

  it('answers a refusal as the API does, with CORS headers', async () => {
    const response = await get('/files/uploads/refused', { method: 'PUT', body: 'x' });
    expect(response.status).toBe(401);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(await response.json()).toMatchObject({
      code: 401,
      error_code: 'UNAUTHORIZED',
      request_id: response.headers.get('x-request-id'),
    });
  });

  it('does not report the message of an unexpected error', async () => {
    const response = await get('/files/video/broken');
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(text).toContain('INTERNAL');
    expect(text).not.toContain('hush');
  });

  it('cuts the connection of an answer that failed after its head', async () => {
    const whole = get('/files/video/half').then((response) => response.text());
    await expect(whole).rejects.toThrow();
  });

  it.each([
    ['BREW /api/v3/models', 501, 'METHOD_UNKNOWN'],
    ['get /api/v3/models', 501, 'METHOD_UNKNOWN'],
    ['CONNECT a.example:443', 405, 'METHOD_NOT_ALLOWED'],
    ['TRACE /api/v3/models', 405, 'METHOD_NOT_ALLOWED'],
    ['PROPFIND /api/v3/models', 405, 'METHOD_NOT_ALLOWED'],
    ['QUERY /a-page', 405, 'METHOD_NOT_ALLOWED'],
    ['OPTIONS *', 400, 'INVALID_PARAMETER'],
    ['GET http://a.example/api/v3/models', 400, 'INVALID_PARAMETER'],
  ])('refuses what the pages cannot answer: %s', async (line, status, code) => {
    const answer = await raw(`${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toContain(`"error_code":"${code}"`);
    expect(answer).toMatch(/^Access-Control-Allow-Origin: \*\r$/im);
    if (line.endsWith('/models') && status === 405) {
      expect(answer).toMatch(/^Allow: GET, HEAD, OPTIONS\r$/im);
    }
  });

  it('goes on after a CONNECT whose client has gone', async () => {
    const faults: unknown[] = [];
    const onFault = (error: unknown) => faults.push(error);
    process.on('uncaughtException', onFault);
    try {
      for (const rest of ['', 'x'.repeat(1000)]) {
        const socket = connect(server.port, '127.0.0.1');
        await once(socket, 'connect');
        await new Promise((sent) => {
          socket.write(`CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\n\r\n${rest}`, sent);
        });
        if (rest === '') await once(socket, 'data');
        socket.resetAndDestroy();
      }
      await new Promise((later) => setTimeout(later, 200));
    } finally {
      process.off('uncaughtException', onFault);
    }
    expect(faults).toEqual([]);
    expect((await get('/healthz')).status).toBe(200);
  });

  it.each(['POST', 'OPTIONS', 'DELETE', 'PUT', 'PATCH'])(
    'allows only GET and HEAD for pages and files: %s',
    async (method) => {
      for (const path of ['/a-page', '/_next/static/a.js', '/']) {
        const response = await get(path, { method });
        expect(response.status, path).toBe(405);
        expect(response.headers.get('allow')).toBe('GET, HEAD');
        expect(await response.json()).toMatchObject({ error_code: 'METHOD_NOT_ALLOWED' });
      }
      expect(await (await get('/api/v3/balance', { method })).text()).toBe('page /api/v3/balance');
    },
  );

  it('allows every method for Next’s development tools', () => {
    const path = '/__nextjs_original-stack-frames';
    expect(() => checkMethod('POST', path, { anyMethod: true })).not.toThrow();
    expect(() => checkMethod('POST', path, {})).toThrow(ApiError);
  });

  it('removes the headers of Next’s pages from API requests', async () => {
    const headers = { rsc: '1', 'next-router-prefetch': '1', authorization: 'Bearer x' };
    await get('/api/v3/models', { headers });
    expect(Object.keys(asked)).not.toContain('rsc');
    expect(Object.keys(asked)).not.toContain('next-router-prefetch');
    expect(asked.authorization).toBe('Bearer x');
    await get('/a-page', { headers });
    expect(asked).toMatchObject({ rsc: '1', 'next-router-prefetch': '1' });
  });

  it('lists the methods of a path, and answers a preflight', async () => {
    const wrong = await get('/files/uploads/a', { method: 'DELETE' });
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get('allow')).toBe('PUT, OPTIONS');
    const headers = { 'access-control-request-method': 'PUT' };
    const preflight = await get('/files/uploads/a', { method: 'OPTIONS', headers });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-methods')).toContain('PUT');
    expect(preflight.headers.get('access-control-allow-headers')).toContain('authorization');
  });

  it('answers a refused upload that is still being sent', async () => {
    // fetch of Node sends the whole body: with a plain close it would see a reset.
    const body = Buffer.alloc(20_000_000);
    for (let round = 0; round < 3; round++) {
      const response = await get('/files/uploads/refused', { method: 'PUT', body });
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ error_code: 'UNAUTHORIZED' });
    }
  });

  /** Uploads six pieces, one every 100 ms. @returns the status, and the longest pause that came of it */
  async function uploadSlowly(): Promise<{ status: number; longestMs: number }> {
    let pieces = 0;
    let last = performance.now();
    let longestMs = 0;
    const look = () => {
      longestMs = Math.max(longestMs, performance.now() - last);
      last = performance.now();
    };
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await delay(100);
        look();
        controller.enqueue(new Uint8Array(10));
        pieces += 1;
        if (pieces === 6) controller.close();
      },
    });
    const options = { method: 'PUT', body, duplex: 'half' } as RequestInit;
    const answer = await fetch(`${impatient.origin}/files/uploads/a`, options).catch(() => null);
    look();
    return { status: answer?.status ?? 0, longestMs };
  }

  it('accepts a slow upload without long pauses', async () => {
    received.length = 0;
    let upload = await uploadSlowly();
    // One that was cut when the machine stood still proves nothing. Half: the other half of the server's
    // wait may lie on the way to it.
    for (let tries = 1; tries < 20; tries += 1) {
      if (upload.status === 200 || upload.longestMs < idleMs / 2) break;
      upload = await uploadSlowly();
    }
    expect(upload.status).toBe(200);
    expect(received).toEqual([60]);
  });

  it.each(['PUT /files/uploads/a', 'POST /api/v3/body'])(
    'refuses a body that stops in the middle: %s',
    async (line) => {
      faults.length = 0;
      const head = `${line} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n`;
      const answer = await rawAt(impatient, head, 'only this');
      expect(answer).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
      expect(answer).toMatch(/"error_code":"REQUEST_TIMEOUT"/);
      expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect(faults).toEqual([]);
    },
  );

  it('closes the connection of a request that was answered before its body came', async () => {
    const head = 'POST /a/page HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n';
    expect(await rawAt(impatient, head, 'only this')).toMatch(/^HTTP\/1\.1 405 /);
    const api = 'POST /api/v3/now HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n';
    expect(await rawAt(impatient, api, 'only this')).toMatch(/page \/api\/v3\/now/);
  });

  it('keeps nothing of a request whose body was not read on a connection that goes on', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const request = 'POST /api/v3/now HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab';
    const socket = connect(server.port, '127.0.0.1');
    for (let i = 0; i < 12; i++) {
      socket.write(request);
      await once(socket, 'data');
    }
    socket.destroy();
    process.off('warning', onWarning);
    // Node warns of an eleventh listener.
    expect(warnings).toEqual([]);
  });

  it('lets an answer take longer than a connection may be idle, and then closes it', {
    tags: ['full'],
  }, async () => {
    const started = performance.now();
    const answer = await rawAt(impatient, 'GET /files/video/held HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(answer).toContain('"file":"held"');
    // Kept for a while for the next request, and not for ever.
    expect(performance.now() - started).toBeGreaterThan(3 * idleMs + 900);
  });

  it('refuses an upload that sends a byte now and then', async () => {
    received.length = 0;
    const socket = connect(impatient.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('error', () => undefined);
    socket.write('PUT /files/uploads/a HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n');
    const drip = setInterval(() => socket.write('a'), 100);
    await once(socket, 'end');
    clearInterval(drip);
    socket.destroy();
    expect(text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(text).toContain('the least rate is 30 bytes a second');
    expect(received).toEqual([]);
  });
});

describe('malformed requests', () => {
  it.each([
    ['no HTTP at all', 'hello\r\n\r\n', 400],
    [
      'two lengths',
      'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      400,
    ],
    ['no host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['a long header', `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(40_000)}\r\n\r\n`, 431],
    // More than a socket's buffers: the answer must not be lost with a reset connection.
    ['a header without end', `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(4_000_000)}`, 431],
    [
      'an expectation',
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: tea\r\n\r\n',
      417,
    ],
    [
      'an expectation before a body',
      'PUT /files/uploads/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: tea\r\nContent-Length: 2\r\n\r\nab',
      417,
    ],
    ['half an escape', 'GET /files/video/%f HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
    [
      'a bad escape for the pages',
      'GET /%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      400,
    ],
  ])('%s', async (_name, text, status) => {
    faults.length = 0;
    const answer = await raw(text);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).not.toContain('`details`');
    if (status >= 400) expect(answer).toContain(`{"code":${status},"message":"`);
    expect(faults).toEqual([]);
  });
});

describe('health', () => {
  it('is ready while database and files answer', async () => {
    const response = await get('/readyz');
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      status: 'ready',
      parts: { node: 'ok', database: 'ok', files: 'ok' },
    });
  });

  it('is alive and not ready without a database', async () => {
    down = true;
    try {
      const ready = await get('/readyz');
      expect(ready.status).toBe(503);
      expect(await ready.json()).toMatchObject({ parts: { node: 'ok', database: 'down' } });
      expect((await get('/healthz')).status).toBe(200);
    } finally {
      down = false;
    }
  });

  it('gives metrics to this machine and to holders of the token, not to requests of a proxy', async () => {
    const open = await get('/metrics');
    expect(open.headers.get('content-type')).toContain('text/plain');
    expect(await open.text()).toContain('kinora_attempts_total');
    const proxied = { 'x-forwarded-for': '203.0.113.7' };
    expect((await get('/metrics', { headers: proxied })).status).toBe(401);
    const wrong = { ...proxied, authorization: 'Bearer wrong' };
    expect((await get('/metrics', { headers: wrong })).status).toBe(401);
    const right = { ...proxied, authorization: 'Bearer metrics-token-of-a-test' };
    expect((await get('/metrics', { headers: right })).status).toBe(200);
  });

  it('counts requests outside of the API under the template of their route', async () => {
    await get('/files/video/secret-name');
    const numbers = async () => await (await get('/metrics')).text();
    const counted = 'operation="GET /files/video/{file}",status="2xx"';
    await expect.poll(numbers, { timeout: 30_000 }).toContain(counted);
    const text = await numbers();
    expect(text).not.toContain('secret-name');
  });
});

it('reports in one sentence that its port is taken', async () => {
  const second = startServer({
    config: { ...config, PORT: server.port },
    log,
    pages: async () => ({ handle: async () => undefined, close: async () => undefined }),
    open: async () => smallRelay(),
  });
  await expect(second).rejects.toThrow(/^Port \d+ of 127\.0\.0\.1 is taken\. .+ PORT/);
});
