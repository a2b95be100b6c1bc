import { once } from 'node:events';
import { access, readdir } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { eq, sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Client } from 'wavespeed';
import { WaveSpeed } from 'wavespeed-0.0.15';
import { uploads } from '../../store/schema';
import { partsFolder } from '../blobs';
import { type FilesTest, imageFile, loraFile, startFilesTest } from '../testing/node';

let node: FilesTest;
/** Requests that the server saw being cut, and has done with. */
let cutOff = 0;
const log = pino(
  {},
  {
    write(line) {
      const { operation, status } = JSON.parse(line) as { operation?: string; status?: number };
      if (operation === 'uploadBinary' && status === 400) cutOff += 1;
    },
  },
);
beforeAll(async () => {
  node = await startFilesTest({ log, settings: { KINORA_MAX_UPLOAD_BYTES: '2000000' } });
}, 60_000);
afterAll(() => node.stop());

async function ticket(input: Record<string, unknown>) {
  const { status, body } = await node.api('/api/v3/media/uploads', input);
  if (!body.data?.upload || !body.data.download_url) throw new Error(`${status} ${body.message}`);
  return { ...body.data.upload, download: body.data.download_url };
}

/** The row of an upload, by any of its addresses. */
async function rowOf(address: string) {
  const id = /uploads\/([0-9a-f]{32})/.exec(address)?.[1] ?? '';
  const [row] = await node.relay.store.db.select().from(uploads).where(eq(uploads.id, id));
  return row;
}

function form(name: string, bytes: Uint8Array<ArrayBuffer>, type = '', field = 'file'): FormData {
  const data = new FormData();
  data.append(field, new Blob([bytes], { type }), name);
  return data;
}

async function post(body: BodyInit, key = node.apiKey) {
  const answer = await node.get('/api/v3/media/upload/binary', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body,
  });
  return { status: answer.status, body: await answer.json() };
}

describe('uploads by the unmodified clients', () => {
  it('wavespeed 0.3.2: an image and a LoRA, by ticket', async () => {
    const client = new Client(node.apiKey, { baseUrl: node.origin });
    for (const [file, bytes, type] of [
      [imageFile, node.image, 'image/png'],
      [loraFile, node.lora, 'application/octet-stream'],
    ] as const) {
      const answer = await node.get(await client.upload(file));
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toBe(type);
      expect(answer.headers.get('content-length')).toBe(String(bytes.length));
      expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
    }
  });

  it('wavespeed 0.0.15: a Blob without a name, as a form', async () => {
    const client = new WaveSpeed(node.apiKey, { baseUrl: `${node.origin}/api/v3/` });
    const url = await client.upload(new Blob([new Uint8Array(node.image)], { type: 'image/png' }));
    const answer = await node.get(url);
    expect(Buffer.from(await answer.arrayBuffer()).equals(node.image)).toBe(true);
  });
});

describe('tickets', () => {
  it('accepts exactly the bytes of the ticket; the same again is no error', async () => {
    const { url, headers } = await ticket({ filename: 'a.png', size: node.image.length });
    const put = (body: Uint8Array<ArrayBuffer>, type = headers['Content-Type'] ?? '') =>
      node.get(url, { method: 'PUT', headers: { 'content-type': type }, body });
    expect((await put(new Uint8Array(node.image.subarray(1)))).status).toBe(400);
    expect((await put(new Uint8Array(node.image), 'image/jpeg')).status).toBe(400);
    expect((await rowOf(url))?.blobKey).toBeNull();
    expect((await put(new Uint8Array(node.image))).status).toBe(200);
    expect((await put(new Uint8Array(node.image))).status).toBe(200);
    const other = new Uint8Array(node.image);
    other[other.length - 1] = (other.at(-1) ?? 0) ^ 1;
    expect((await put(other)).status).toBe(409);
  });

  it.each([
    ['filename', { filename: '../a.png', size: 10 }],
    ['filename', { filename: 'a\\b.png', size: 10 }],
    ['filename', { filename: 'a\u0001.png', size: 10 }],
    ['filename', { filename: '..', size: 10 }],
    ['filename', { filename: 'a.mp4', size: 10 }],
    ['filename', { filename: 'a', size: 10 }],
    ['filename', { filename: 'a.svg', size: 10, content_type: 'image/svg+xml' }],
  ])('refuses %s %j', async (field, input) => {
    const { status, body } = await node.api('/api/v3/media/uploads', input);
    expect({ status, field: body.details?.[0]?.field }).toEqual({ status: 400, field });
  });

  it('refuses what is too large, each kind with its limit', async () => {
    const sizeOf = async (filename: string, size: number) =>
      (await node.api('/api/v3/media/uploads', { filename, size })).status;
    expect(await sizeOf('a.png', 20_000_001)).toBe(413);
    expect(await sizeOf('a.safetensors', 2_000_001)).toBe(413);
    expect(await sizeOf('a.safetensors', 2_000_000)).toBe(200);
  });

  it('stores no bytes of another kind than the name says', async () => {
    const bytes = new Uint8Array(Buffer.from('<html>This is no image and no LoRA.</html>'));
    for (const [filename, code] of [
      ['a.png', 'INVALID_IMAGE'],
      ['a.safetensors', 'INVALID_PARAMETER'],
    ] as const) {
      const { url, headers, download } = await ticket({ filename, size: bytes.length });
      const answer = await node.get(url, { method: 'PUT', headers, body: bytes });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ error_code: code });
      expect((await rowOf(url))?.blobKey).toBeNull();
      expect((await node.get(download)).status).toBe(404);
    }
    expect(await readdir(path.join(node.config.KINORA_DATA, 'parts'))).toEqual([]);
  });

  it('needs the signature, and the one for this purpose', async () => {
    const { url, download } = await ticket({ filename: 'a.png', size: 10 });
    const target = new URL(url);
    const wrong = [
      `${target.origin}${target.pathname}`,
      url.replace(/signature=./, (text: string) =>
        text.endsWith('0') ? 'signature=1' : 'signature=0',
      ),
      url.replace(/expires=\d/, 'expires=9'),
      target.origin + target.pathname + new URL(download).search,
    ];
    for (const address of wrong) {
      const answer = await node.get(address, { method: 'PUT', body: 'x'.repeat(10) });
      expect(answer.status).toBe(404);
    }
  });
});

describe('forms', () => {
  it('leaves no bytes where the row could not be inserted', async () => {
    const { db } = node.relay.store;
    const kept = () => readdir(path.join(node.config.KINORA_DATA, 'files'), { recursive: true });
    const before = await kept();
    await db.execute(sql`alter table uploads rename to uploads_away`);
    try {
      const { status } = await post(form('a.png', new Uint8Array(node.image)));
      expect(status).toBe(500);
    } finally {
      await db.execute(sql`alter table uploads_away rename to uploads`);
    }
    const isFile = (name: string) => /[0-9a-f]{32}/.test(name);
    expect((await kept()).filter(isFile)).toEqual(before.filter(isFile));
  });

  it('answers with type, address, name and size', async () => {
    const { status, body } = await post(form('ein Bild ü.png', new Uint8Array(node.image)));
    expect(status).toBe(200);
    expect(body).toMatchObject({
      code: 200,
      message: 'success',
      data: { type: 'image', filename: 'ein Bild ü.png', size: node.image.length },
    });
    const answer = await node.get(body.data.download_url);
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'image/png',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
    });
  });

  it('refuses other forms, each with its own status', async () => {
    const image = new Uint8Array(node.image);
    const text = new Uint8Array(Buffer.from('hello'));
    const many = new Uint8Array(2_100_000);
    expect((await post(form('a.png', image), 'kn_wrong')).status).toBe(401);
    expect((await post('{}')).status).toBe(415);
    expect((await post(form('a.png', image, 'image/png', 'other'))).status).toBe(400);
    expect((await post(form('a.png', text))).body.error_code).toBe('INVALID_IMAGE');
    expect((await post(form('a.txt', text))).status).toBe(400);
    expect((await post(form('a.safetensors', many))).status).toBe(413);
    expect((await post(form('a.png', new Uint8Array()))).status).toBe(400);
    expect(await readdir(path.join(node.config.KINORA_DATA, 'parts'))).toEqual([]);
  });

  it('refuses a body that is no form', async () => {
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=x']) {
      const answer = await node.get('/api/v3/media/upload/binary', {
        method: 'POST',
        headers: { authorization: `Bearer ${node.apiKey}`, 'content-type': type },
        body: 'no parts at all',
      });
      expect(answer.status).toBe(400);
    }
  });

  it('needs the scope', async () => {
    const { key } = await node.relay.keys.create({
      kind: 'api',
      owner: 'other',
      name: 'reader',
      scopes: ['predictions:read'],
    });
    expect((await post(form('a.png', new Uint8Array(node.image)), key)).status).toBe(403);
  });
});

describe('retention', () => {
  it('removes an expired upload, but not one that an unfinished job needs', async () => {
    const { db } = node.relay.store;
    const used = (await post(form('used.png', new Uint8Array(node.image)))).body.data.download_url;
    const idle = (await post(form('idle.png', new Uint8Array(node.image)))).body.data.download_url;
    const job = await node.claim({ image: used });
    const fileOf = async (url: string) =>
      path.join(node.config.KINORA_DATA, 'files', (await rowOf(url))?.blobKey ?? 'none');
    const [usedFile, idleFile] = [await fileOf(used), await fileOf(idle)];
    const expire = () => db.update(uploads).set({ expiresAt: new Date(Date.now() - 1000) });
    await expire();
    expect((await node.get(idle)).status).toBe(200); // the link's own time counts until the sweep
    await node.relay.files.sweep();
    expect((await node.get(idle)).status).toBe(404);
    await expect(access(idleFile)).rejects.toThrow();
    await access(usedFile);
    await node.relay.jobs.cancel(job.id, job.owner);
    await expire();
    await node.relay.files.sweep();
    await expect(access(usedFile)).rejects.toThrow();
    expect(await rowOf(used)).toBeUndefined();
  });
});

describe('a form that is wrong, larger than one piece', () => {
  const boundary = '----kinora';
  const closing = `\r\n--${boundary}--\r\n`;
  const head = (field: string, filename: string, type = 'application/octet-stream') =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${field}"; filename="${filename}"\r\n` +
    `Content-Type: ${type}\r\n\r\n`;

  /** Errors that would have ended the server: nobody else listens for them in a test. */
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  beforeAll(() => void process.on('uncaughtException', note));
  afterAll(() => void process.off('uncaughtException', note));
  afterEach(async () => {
    // An error of a stream comes a turn later.
    await delay(20);
    expect(uncaught.splice(0)).toEqual([]);
  });

  /** Sends the pieces one after the other; `cut` breaks the connection after the last. */
  async function send(pieces: readonly (string | Buffer)[], cut = false): Promise<number | null> {
    const { hostname, port } = new URL(node.origin);
    const call = httpRequest({
      hostname,
      port,
      method: 'POST',
      path: '/api/v3/media/upload/binary',
      headers: {
        Authorization: `Bearer ${node.apiKey}`,
        'Content-Type': `multipart/form-data; boundary=${boundary}`,
      },
    });
    const answered = once(call, 'response').then(
      ([response]: IncomingMessage[]) => response ?? null,
      () => null,
    );
    for (const piece of pieces) {
      // On its way: what is not would never be, once the call is cut.
      await new Promise((resolve) => call.write(piece, resolve));
      await delay(5);
    }
    const cutBefore = cutOff;
    if (cut) call.destroy();
    else call.end();
    const response = await answered;
    if (cut) await expect.poll(() => cutOff, { timeout: 20_000, interval: 5 }).toBe(cutBefore + 1);
    if (response === null) return null;
    await text(response);
    return response.statusCode ?? null;
  }

  const large = Buffer.alloc(2_000_000, 'x');

  it.each([
    ['a kind that is not taken', [head('file', 'clip.mp4', 'video/mp4'), large, closing]],
    ['a name that is too long', [head('file', `${'n'.repeat(300)}.png`), large, closing]],
    ['no closing boundary', [head('file', 'still.png', 'image/png'), large]],
    ['no closing boundary, in another field', [head('other', 'still.png'), large]],
    ['no bytes and no boundary', [head('file', 'still.png', 'image/png')]],
    ['no file', [head('other', 'still.png'), large, closing]],
  ])('is refused: %s', async (_case, pieces) => {
    expect(await send(pieces)).toBe(400);
  });

  it.each(['file', 'other'])('is dropped when it is cut in the field "%s"', async (field) => {
    expect(await send([head(field, 'still.png', 'image/png')], true)).toBeNull();
    expect(await send([head(field, 'still.png', 'image/png'), 'some bytes'], true)).toBeNull();
    expect(await send([head(field, 'still.png', 'image/png'), large], true)).toBeNull();
  });

  it('leaves no file, and the next form is accepted', async () => {
    const png = [head('file', 'still.png', 'image/png'), node.image, closing];
    expect(await send(png)).toBe(200);
    // Those that were cut before may still be on their way out.
    const left = async () =>
      (await readdir(partsFolder(node.relay.config))).filter((name) => name.startsWith('tmp-'));
    await expect.poll(left, { timeout: 20_000 }).toEqual([]);
  });
});
