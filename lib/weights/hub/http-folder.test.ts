import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelFolder } from '../formats/source';
import { httpFolder } from './http-folder';

const pattern = Uint8Array.from({ length: 251 }, (_, i) => (i * 7) % 251);
/** More than what is fetched whole. */
const big = new Uint8Array(17 * 2 ** 20).map((_, i) => pattern[i % 251] ?? 0);
const medium = big.slice(0, 200_000);
const small = new TextEncoder().encode('{"a":1}');
const servers: Server[] = [];
let waits: number[] = [];

afterEach(async () => {
  waits = [];
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
});

/** A real server; `requests` collects path and range of what was asked. */
async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ folder: ModelFolder; requests: string[]; url: URL }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.url} ${request.headers.range ?? 'whole'}`);
    answer(request, response);
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  const url = new URL(`http://127.0.0.1:${address.port}/models/tiny`);
  const clock = { sleep: async (ms: number) => void waits.push(ms) };
  return { folder: httpFolder(url, { clock }), requests, url };
}

const files: Record<string, Uint8Array> = {
  '/models/tiny/vae/big.bin': big,
  '/models/tiny/medium.bin': medium,
  '/models/tiny/config.json': small,
  '/models/tiny/empty.bin': new Uint8Array(0),
};

/** What a proper static server does. */
function withRanges(request: IncomingMessage, response: ServerResponse): void {
  const body = files[request.url ?? ''];
  if (!body) {
    response.writeHead(404).end('no');
    return;
  }
  const range = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '');
  if (!range) {
    response.writeHead(200, { 'content-length': body.length }).end(body);
    return;
  }
  const start = Number(range[1]);
  const end = Math.min(Number(range[2]) + 1, body.length);
  if (start >= body.length) {
    response.writeHead(416, { 'content-range': `bytes */${body.length}` }).end();
    return;
  }
  response.writeHead(206, { 'content-range': `bytes ${start}-${end - 1}/${body.length}` });
  response.end(body.subarray(start, end));
}

function withoutRanges(request: IncomingMessage, response: ServerResponse): void {
  const body = files[request.url ?? ''];
  response.writeHead(body ? 200 : 404).end(body);
}

describe('a server with ranges', () => {
  test('gives exactly the bytes asked for; the beginning comes with the opening', async () => {
    const { folder, requests } = await serve(withRanges);
    const file = await folder.open('vae/big.bin');
    expect(file.size).toBe(big.length);
    expect(await file.read(100, 200)).toEqual(big.slice(100, 200));
    expect(await file.read(65_000, 66_000)).toEqual(big.slice(65_000, 66_000));
    expect(await file.read(big.length - 1, big.length)).toEqual(big.slice(-1));
    expect(await file.read(big.length, big.length)).toHaveLength(0);
    expect(requests).toEqual([
      '/models/tiny/vae/big.bin bytes=0-65535',
      '/models/tiny/vae/big.bin bytes=65000-65999',
      `/models/tiny/vae/big.bin bytes=${big.length - 1}-${big.length - 1}`,
    ]);
  });

  test('a small file is fetched whole when more than its beginning is read, and again after a failure', async () => {
    let broken = true;
    const { folder, requests } = await serve((request, response) => {
      const isWhole = request.headers.range?.endsWith('-199999') ?? false;
      if (isWhole && broken) response.writeHead(403).end();
      else withRanges(request, response);
    });
    const file = await folder.open('medium.bin');
    await expect(file.read(65_000, 66_000)).rejects.toMatchObject({ code: 'FILE_UNREADABLE' });
    broken = false;
    const parts = [65_000, 150_000].map((start) => file.read(start, start + 1000));
    expect(await Promise.all(parts)).toEqual([
      medium.slice(65_000, 66_000),
      medium.slice(150_000, 151_000),
    ]);
    expect(requests.slice(1)).toEqual(Array(2).fill('/models/tiny/medium.bin bytes=0-199999'));
  });

  test('reads texts, JSON, small and empty files', async () => {
    const { folder } = await serve(withRanges);
    expect(await folder.text('config.json')).toBe('{"a":1}');
    expect(await folder.json('config.json')).toEqual({ a: 1 });
    expect(await (await folder.open('config.json')).read(0, 7)).toEqual(small);
    expect((await folder.open('empty.bin')).size).toBe(0);
  });

  test('knows what exists', async () => {
    const { folder } = await serve(withRanges);
    expect(await folder.exists('config.json')).toBe(true);
    expect(await folder.exists('empty.bin')).toBe(true);
    expect(await folder.exists('nothing.json')).toBe(false);
  });

  test('is not asked whether a file exists where the list of files is known', async () => {
    const { url, requests } = await serve(withRanges);
    const folder = httpFolder(url, { files: ['config.json'] });
    expect(await folder.exists('config.json')).toBe(true);
    expect(await folder.exists('nothing.json')).toBe(false);
    expect(requests).toEqual([]);
  });

  test('a read past the end is a truncated file', async () => {
    const { folder } = await serve(withRanges);
    const file = await folder.open('vae/big.bin');
    await expect(file.read(0, big.length + 1)).rejects.toMatchObject({
      code: 'MODEL_FILE_TRUNCATED',
    });
  });
});

describe('a server without ranges', () => {
  test('sends the file once', async () => {
    const { folder, requests } = await serve(withoutRanges);
    const file = await folder.open('vae/big.bin');
    expect(file.size).toBe(big.length);
    expect(await file.read(150_000, 150_010)).toEqual(big.slice(150_000, 150_010));
    expect(await file.read(5, 9)).toEqual(big.slice(5, 9));
    expect(requests).toHaveLength(1);
  });

  test('also when it forgets ranges after the first', async () => {
    let first = true;
    const { folder, requests } = await serve((request, response) => {
      if (first) withRanges(request, response);
      else withoutRanges(request, response);
      first = false;
    });
    const file = await folder.open('vae/big.bin');
    expect(await file.read(150_000, 150_010)).toEqual(big.slice(150_000, 150_010));
    expect(await file.read(160_000, 160_010)).toEqual(big.slice(160_000, 160_010));
    expect(requests).toHaveLength(2);
  });
});

describe('failures', () => {
  test('a missing file, also where unknown paths give a page', async () => {
    const { folder } = await serve(withRanges);
    const missing = { code: 'MODEL_FILE_MISSING', message: expect.stringContaining('x/y.bin') };
    await expect(folder.open('x/y.bin')).rejects.toMatchObject(missing);
    await expect(folder.json('x/y.bin')).rejects.toMatchObject(missing);
    const page = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>');
    });
    expect(await page.folder.exists('x/y.bin')).toBe(false);
    await expect(page.folder.open('x/y.bin')).rejects.toMatchObject(missing);
  });

  test('a body shorter than its range', async () => {
    const { folder } = await serve((request, response) => {
      const first = request.headers.range === 'bytes=0-65535';
      const range = first ? 'bytes 0-65535/200000' : 'bytes 100000-100009/200000';
      response.writeHead(206, { 'content-range': range });
      response.end(first ? big.subarray(0, 65_536) : big.subarray(0, 4));
    });
    const file = await folder.open('vae/big.bin');
    await expect(file.read(100_000, 100_010)).rejects.toMatchObject({
      code: 'MODEL_FILE_TRUNCATED',
    });
  });

  test('a connection that breaks off', async () => {
    const { folder } = await serve((_, response) => {
      response.writeHead(200, { 'content-length': 1000 });
      response.write(big.subarray(0, 10), () => response.destroy());
    });
    await expect(folder.open('vae/big.bin')).rejects.toMatchObject({
      code: 'MODEL_FILE_TRUNCATED',
    });
  });

  test('a file that changes meanwhile', async () => {
    let size = 200_000;
    const { folder } = await serve((request, response) => {
      const [start, end] = (request.headers.range ?? '').slice(6).split('-').map(Number);
      response.writeHead(206, { 'content-range': `bytes ${start}-${end}/${size++}` });
      response.end(big.subarray(start, (end ?? 0) + 1));
    });
    const file = await folder.open('vae/big.bin');
    await expect(file.read(100_000, 100_010)).rejects.toMatchObject({ code: 'MODEL_FILE_INVALID' });
  });

  test('JSON that is none, an error of the server, no server', async () => {
    const bad = await serve((_, response) => void response.writeHead(200).end('{"a":'));
    await expect(bad.folder.json('a.json')).rejects.toMatchObject({ code: 'MODEL_FILE_INVALID' });
    const broken = await serve((_, response) => void response.writeHead(503).end());
    await expect(broken.folder.exists('a')).rejects.toMatchObject({
      code: 'FILE_UNREADABLE',
      message: expect.stringContaining('503'),
    });
    const server = servers.pop();
    await new Promise((done) => server?.close(done));
    await expect(broken.folder.text('a')).rejects.toMatchObject({ code: 'FILE_UNREADABLE' });
  });

  test('a server that is being restarted is asked again', async () => {
    let answers = 0;
    const { folder, requests } = await serve((request, response) => {
      answers += 1;
      if (answers % 4 === 1) request.socket.destroy();
      else if (answers % 4 === 2) response.writeHead(503).end();
      else if (answers % 4 === 3) {
        response.writeHead(206, { 'content-range': `bytes 0-1/${big.length}` });
        response.write(big.subarray(0, 1), () => response.destroy());
      } else withRanges(request, response);
    });
    const file = await folder.open('vae/big.bin');
    expect(await file.read(100_000, 100_010)).toEqual(big.slice(100_000, 100_010));
    expect(requests).toHaveLength(8);
    expect(waits).toEqual([250, 500, 1000, 250, 500, 1000]);
  });

  test('what does not pass is asked for once', async () => {
    const { folder, requests } = await serve((_, response) => void response.writeHead(403).end());
    await expect(folder.text('a')).rejects.toMatchObject({ code: 'FILE_UNREADABLE' });
    expect(requests).toHaveLength(1);
  });

  test('a path that leads out of the folder is never asked for', async () => {
    const { folder, requests } = await serve(withRanges);
    for (const path of ['../x', '/etc/x', 'a//b', 'a/./b', '', 'a\\b']) {
      await expect(folder.text(path)).rejects.toMatchObject({ code: 'MODEL_FILE_INVALID' });
    }
    expect(requests).toEqual([]);
  });

  test('an abort ends a request', async () => {
    const { url } = await serve(() => {});
    const controller = new AbortController();
    const reading = httpFolder(url, { signal: controller.signal }).text('a.json');
    controller.abort();
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' });
  });
});
