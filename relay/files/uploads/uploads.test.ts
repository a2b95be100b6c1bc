import { access, readdir } from 'node:fs/promises';
import path from 'node:path';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Client } from 'wavespeed';
import { WaveSpeed } from 'wavespeed-0.0.15';
import { uploads } from '../../store/schema';
import { type FilesTest, imageFile, loraFile, startFilesTest } from '../testing/node';

let node: FilesTest;
beforeAll(async () => {
  node = await startFilesTest({ settings: { KINORA_MAX_UPLOAD_BYTES: '2000000' } });
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
