import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serve, type TestServer } from '../guard/testing/server';
import { submission } from '../testing/api';
import { type FilesTest, startFilesTest } from './testing/node';

let node: FilesTest;
let web: TestServer;
let origin = '';

interface Page {
  readonly status?: number;
  readonly length?: number;
  readonly headers?: Record<string, string>;
  readonly body: Buffer;
}

/** What the web server of these tests sends, by path. */
function pages(lora: Buffer): Record<string, Page> {
  const damaged = Buffer.from(lora);
  damaged.set(Buffer.from('!!!!'), 9);
  return {
    '/good.safetensors': { body: lora, length: lora.length },
    '/unannounced.safetensors': { body: lora },
    '/missing.safetensors': { status: 404, body: Buffer.from('no') },
    '/page.safetensors': { body: Buffer.from('<html>'.repeat(1000)) },
    '/short.safetensors': { body: lora.subarray(0, 5), length: 5 },
    '/half.safetensors': { body: lora.subarray(0, -10), length: lora.length - 10 },
    '/longer.safetensors': { body: Buffer.concat([lora, lora]), length: 2 * lora.length },
    '/damaged.safetensors': { body: damaged, length: damaged.length },
    '/api/download/1': {
      headers: { 'content-disposition': 'attachment; filename="wan_high.safetensors"' },
      body: lora,
    },
    '/api/download/2': {
      status: 302,
      headers: { location: '/blobs/wan_low.safetensors?signature=1' },
      body: Buffer.from(''),
    },
    '/blobs/wan_low.safetensors?signature=1': { body: lora },
    '/api/download/3': { body: lora },
    '/large.safetensors': { body: lora, length: 3_000_000 },
  };
}

beforeAll(async () => {
  node = await startFilesTest({ settings: { KINORA_MAX_LORA_BYTES: '2000000' } });
  const table = pages(node.lora);
  web = await serve((request, response) => {
    const {
      status = 200,
      length,
      body,
      headers = {},
    } = table[request.url ?? ''] ?? {
      status: 404,
      body: Buffer.from(''),
    };
    const sized = length === undefined ? headers : { ...headers, 'content-length': length };
    response.writeHead(status, sized);
    response.end(body);
  });
  ({ origin } = web);
}, 60_000);
afterAll(async () => {
  await web.close();
  await node.stop();
});

describe('the image of a job', () => {
  it('is read by the worker that has the lease, under headers for isolated pages', async () => {
    const job = await node.claim();
    const link = node.relay.files.links.workerImage(job, 'image');
    expect(link).toMatch(/^\/files\/jobs\//);
    const answer = await node.get(link);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('image/png');
    expect(answer.headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(answer.headers.get('content-length')).toBe(String(node.image.length));
    expect(Buffer.from(await answer.arrayBuffer()).equals(node.image)).toBe(true);
  });

  it('that ends the video has an address of its own', async () => {
    const job = await node.claim({ last_image: submission.image });
    const link = node.relay.files.links.workerImage(job, 'last_image');
    const answer = await node.get(link);
    const sent = Buffer.from(await answer.arrayBuffer()).toString('base64');
    expect(submission.image).toContain(sent);
    // A signature is for one of the two.
    expect((await node.get(link.replace('last_image', 'image'))).status).toBe(404);
    const plain = await node.claim();
    const none = node.relay.files.links.workerImage(plain, 'last_image');
    expect((await node.get(none)).status).toBe(404);
  });

  it('is nowhere for others, and no longer once the lease is lost', async () => {
    const job = await node.claim();
    const link = node.relay.files.links.workerImage(job, 'image');
    const lora = node.relay.files.links.workerLora(job, 0);
    const signature = lora.replace(/.*\?/, '');
    for (const wrong of [
      link.replace(/\?.*/, ''),
      link.replace(/signature=....../, 'signature=000000'),
      link.replace(/\?.*/, `?${signature}`),
    ]) {
      expect((await node.get(wrong)).status).toBe(404);
    }
    expect((await node.get(link)).status).toBe(200);
    await node.relay.jobs.release(job.id, job.leaseToken);
    expect((await node.get(link)).status).toBe(404);
    await node.relay.jobs.cancel(job.id, job.owner);
  });
});

describe('an adapter of a job', () => {
  it('comes from an upload, found by its name', async () => {
    const form = new FormData();
    form.append('file', new Blob([new Uint8Array(node.lora)]), 'style.safetensors');
    const headers = { authorization: `Bearer ${node.apiKey}` };
    await node.get('/api/v3/media/upload/binary', { method: 'POST', headers, body: form });
    const job = await node.claim({ loras: [{ path: 'style.safetensors', scale: 1 }] });
    const answer = await node.get(node.relay.files.links.workerLora(job, 0));
    expect(Buffer.from(await answer.arrayBuffer()).equals(node.lora)).toBe(true);
    expect((await node.get(node.relay.files.links.workerLora(job, 1))).status).toBe(404);
  });

  const open = async (path: string) => {
    const job = await node.claim({ loras: [{ path: origin + path, scale: 1 }] });
    return await node.get(node.relay.files.links.workerLora(job, 0));
  };

  it.each(['/good.safetensors', '/unannounced.safetensors'])('is passed on: %s', async (path) => {
    const answer = await open(path);
    expect(answer.status).toBe(200);
    const length = path.includes('unannounced') ? null : String(node.lora.length);
    expect(answer.headers.get('content-length')).toBe(length);
    expect(answer.headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(Buffer.from(await answer.arrayBuffer()).equals(node.lora)).toBe(true);
  });

  it.each([
    ['/api/download/1', 'wan_high.safetensors'],
    ['/api/download/2', 'wan_low.safetensors'],
    ['/unannounced.safetensors', 'unannounced.safetensors'],
    ['/api/download/3', '0.safetensors'],
  ])('has the name that its server gives it: %s', async (path, name) => {
    const answer = await open(path);
    expect(answer.status).toBe(200);
    await answer.body?.cancel();
    expect(answer.headers.get('content-disposition')).toBe(`inline; filename*=UTF-8''${name}`);
  });

  it.each([
    ['/missing.safetensors', 404, /could not be loaded: .* answered 404/],
    ['/page.safetensors', 400, /does not start like a safetensors file/],
    ['/short.safetensors', 400, /ends too early/],
    ['/half.safetensors', 400, /ends too early/],
    ['/longer.safetensors', 400, /bytes follow after/],
    ['/damaged.safetensors', 400, /is damaged/],
    ['/large.safetensors', 400, /could not be loaded/],
  ])('is refused with a sentence that names it: %s', async (path, status, sentence) => {
    const answer = await open(path);
    expect(answer.status).toBe(status);
    const body = await answer.json();
    expect(body.details[0].message).toMatch(sentence);
    expect(body.details[0].message).toContain(path);
  });

  it('is asked for again when its server cannot be reached', async () => {
    const job = await node.claim({
      loras: [{ path: 'http://127.0.0.1:1/x.safetensors', scale: 1 }],
    });
    const answer = await node.get(node.relay.files.links.workerLora(job, 0));
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('5');
    expect((await answer.json()).message).toMatch(
      /127\.0\.0\.1 refused the connection\. Try again/,
    );
  });
});
