import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelFolder } from '../formats/source';
import { httpFolder } from './http-folder';

const large = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 7) % 251);
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

/** A real server; `requests` collects method and path of what was asked. */
async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ folder: ModelFolder; requests: string[]; url: URL }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
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
  '/models/tiny/vae/large.bin': large,
  '/models/tiny/config.json': small,
  '/models/tiny/empty.bin': new Uint8Array(0),
};

/** What a proper static server does. */
function answerFile(request: IncomingMessage, response: ServerResponse): void {
  const body = files[request.url ?? ''];
  if (body) response.writeHead(200, { 'content-length': body.length }).end(body);
  else response.writeHead(404).end('no');
}

describe('a server', () => {
  test('sends a file once, and any bytes of it are read', async () => {
    const { folder, requests } = await serve(answerFile);
    const file = await folder.open('vae/large.bin');
    expect(file.size).toBe(large.length);
    expect(await file.read(100, 200)).toEqual(large.slice(100, 200));
    expect(await file.read(150_000, 150_010)).toEqual(large.slice(150_000, 150_010));
    expect(await file.read(large.length - 1, large.length)).toEqual(large.slice(-1));
    expect(await file.read(large.length, large.length)).toHaveLength(0);
    expect(requests).toEqual(['GET /models/tiny/vae/large.bin']);
  });

  test('is asked again for a file that it did not give', async () => {
    let broken = true;
    const { folder, requests } = await serve((request, response) => {
      if (broken) response.writeHead(403).end();
      else answerFile(request, response);
    });
    await expect(folder.open('vae/large.bin')).rejects.toMatchObject({ code: 'FILE_UNREADABLE' });
    broken = false;
    expect((await folder.open('vae/large.bin')).size).toBe(large.length);
    expect(requests).toHaveLength(2);
  });

  test('reads texts, JSON, small and empty files', async () => {
    const { folder } = await serve(answerFile);
    expect(await folder.text('config.json')).toBe('{"a":1}');
    expect(await folder.json('config.json')).toEqual({ a: 1 });
    expect(await (await folder.open('config.json')).read(0, 7)).toEqual(small);
    expect((await folder.open('empty.bin')).size).toBe(0);
  });

  test('knows what exists', async () => {
    const { folder, requests } = await serve(answerFile);
    expect(await folder.exists('config.json')).toBe(true);
    expect(await folder.exists('empty.bin')).toBe(true);
    expect(await folder.exists('nothing.json')).toBe(false);
    expect(requests.every((request) => request.startsWith('HEAD '))).toBe(true);
  });

  test('is not asked whether a file exists where the list of files is known', async () => {
    const { url, requests } = await serve(answerFile);
    const folder = httpFolder(url, { files: ['config.json'] });
    expect(await folder.exists('config.json')).toBe(true);
    expect(await folder.exists('nothing.json')).toBe(false);
    expect(requests).toEqual([]);
  });

  test('a read past the end is a truncated file', async () => {
    const { folder } = await serve(answerFile);
    const file = await folder.open('vae/large.bin');
    await expect(file.read(0, large.length + 1)).rejects.toMatchObject({
      code: 'MODEL_FILE_TRUNCATED',
    });
  });
});

describe('failures', () => {
  test('a missing file, also where unknown paths give a page', async () => {
    const { folder } = await serve(answerFile);
    const missing = { code: 'MODEL_FILE_MISSING', message: expect.stringContaining('x/y.bin') };
    await expect(folder.open('x/y.bin')).rejects.toMatchObject(missing);
    await expect(folder.json('x/y.bin')).rejects.toMatchObject(missing);
    const page = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>');
    });
    expect(await page.folder.exists('x/y.bin')).toBe(false);
    await expect(page.folder.open('x/y.bin')).rejects.toMatchObject(missing);
  });

  test('a connection that breaks off', async () => {
    const { folder } = await serve((_, response) => {
      response.writeHead(200, { 'content-length': 1000 });
      response.write(large.subarray(0, 10), () => response.destroy());
    });
    await expect(folder.open('vae/large.bin')).rejects.toMatchObject({
      code: 'MODEL_FILE_TRUNCATED',
    });
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
      if (answers === 1) request.socket.destroy();
      else if (answers === 2) response.writeHead(503).end();
      else if (answers === 3) {
        response.writeHead(200, { 'content-length': large.length });
        response.write(large.subarray(0, 1), () => response.destroy());
      } else answerFile(request, response);
    });
    const file = await folder.open('vae/large.bin');
    expect(await file.read(100_000, 100_010)).toEqual(large.slice(100_000, 100_010));
    expect(requests).toHaveLength(4);
    expect(waits).toEqual([250, 500, 1000]);
  });

  test('what does not pass is asked for once', async () => {
    const { folder, requests } = await serve((_, response) => void response.writeHead(403).end());
    await expect(folder.text('a')).rejects.toMatchObject({ code: 'FILE_UNREADABLE' });
    expect(requests).toHaveLength(1);
  });

  test('a path that leads out of the folder is never asked for', async () => {
    const { folder, requests } = await serve(answerFile);
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
