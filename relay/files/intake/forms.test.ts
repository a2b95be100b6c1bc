import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FilesTest, startFilesTest } from '../testing/node';

/** The forms in which clients send an image, on a node that may reach public addresses only. */
let node: FilesTest;
/** A node that takes images by https alone. */
let strict: FilesTest;
beforeAll(async () => {
  const settings = { KINORA_ALLOW_PRIVATE: '0' };
  node = await startFilesTest({ settings, background: false });
  strict = await startFilesTest({
    settings: { ...settings, KINORA_ALLOW_HTTP_IMAGES: '0' },
    background: false,
  });
}, 60_000);
afterAll(() => Promise.all([node?.stop(), strict?.stop()]));

const path = '/api/v3/kinora/wan-2.2/i2v-720p-lora';
const submit = (image: unknown, more = {}) => node.api(path, { prompt: 'A test', image, ...more });
const base64 = () => node.image.toString('base64');
const urlSafe = () => node.image.toString('base64url');
const lines = () => base64().replace(/(.{76})/g, '$1\r\n');

it.each([
  [
    'a data URI with parameters',
    () => `data:image/png;charset=utf-8;name=a.png;base64,${base64()}`,
  ],
  ['a data URI of octets', () => `data:application/octet-stream;base64,${base64()}`],
  ['a data URI without a type', () => `DATA:;base64,${base64()}`],
  ['a data URI in the URL-safe alphabet', () => `data:image/png;base64,${urlSafe()}`],
  ['a data URI between white space, in lines', () => `\n data:image/png;base64, ${lines()}\n`],
  [
    'a data URI with percent-encoding',
    () => `data:image/png;base64,${encodeURIComponent(lines())}`,
  ],
  ['base64 alone', base64],
  ['URL-safe base64 without padding', urlSafe],
  ['base64 in lines', () => ` ${lines()}\n`],
])('takes %s', async (_, form) => {
  const { status, body } = await submit(form());
  expect(status, body.message).toBe(200);
  const job = await node.relay.jobs.get(body.data?.id ?? '');
  expect(job?.image).toMatchObject({ type: 'image/png', bytes: node.image.length });
  const stored = await node.get(job?.input.image ?? '');
  expect(Buffer.from(await stored.arrayBuffer()).equals(node.image)).toBe(true);
});

it.each([
  ['text', 'hello', 'INVALID_IMAGE'],
  ['white space', ' \n', 'INVALID_IMAGE'],
  ['octets that are no image', 'data:application/octet-stream;base64,aGVsbG8=', 'INVALID_IMAGE'],
  ['a data URI that is not in base64', 'data:image/png,abc', 'INVALID_PARAMETER'],
  ['the name of a file', './photo.png', 'INVALID_PARAMETER'],
  ['another scheme', 'ftp://example.com/a.png', 'INVALID_PARAMETER'],
])('refuses %s', async (_, image, code) => {
  const { status, body } = await submit(image);
  expect({ status, code: body.error_code }).toEqual({ status: 400, code });
  expect(body.details?.[0]?.field).toBe('image');
});

it('takes links by http to public hosts, unless the setting is off', async () => {
  const image = 'http://images.example.com/a.png';
  const { status, body } = await submit(` ${image}\n`);
  expect(status, body.message).toBe(200);
  expect((await node.relay.jobs.get(body.data?.id ?? ''))?.input.image).toBe(image);
  for (const own of ['http://127.0.0.1/a.png', 'http://[::1]/a.png', 'http://intranet/a.png']) {
    expect((await submit(own)).status, own).toBe(400);
  }
  const refused = await strict.api(path, { prompt: 'A test', image });
  expect(refused.body.message).toContain('does not start with https://');
  // LoRAs and webhooks stay https.
  const lora = { path: 'http://images.example.com/a.safetensors', scale: 1 };
  expect((await submit(base64(), { loras: [lora] })).body.details?.[0]?.field).toBe('loras.0.path');
  const hook = await node.api(`${path}?webhook=http://hooks.example.com/`, {
    prompt: 'A test',
    image: base64(),
  });
  expect(hook.body.error_code).toBe('INVALID_WEBHOOK');
});

it('knows an own link under another name of this machine', async () => {
  const { body } = await submit(base64());
  const job = await node.relay.jobs.get(body.data?.id ?? '');
  const other = job?.input.image.replace('//127.0.0.1', '//LocalHost') ?? '';
  expect(other).toContain('LocalHost');
  expect((await submit(other)).status).toBe(200);
  expect((await submit(`${other}0`)).body.message).toContain('is not there, or has expired');
});

it('takes a whole JPEG without an end, and refuses one that is cut', async () => {
  const file = new URL('../../../lib/video/testing/progressive-no-eoi.jpg', import.meta.url);
  const jpeg = await readFile(file);
  const { status, body } = await submit(jpeg.toString('base64'));
  expect(status, body.message).toBe(200);
  const job = await node.relay.jobs.get(body.data?.id ?? '');
  // It is stored with its end, also as an upload.
  const whole = Buffer.concat([jpeg, Buffer.of(0xff, 0xd9)]);
  expect(job?.image).toMatchObject({ type: 'image/jpeg', bytes: whole.length });
  const { data } = await (await node.upload('a.jpg', jpeg, 'image/jpeg')).json();
  for (const address of [job?.input.image ?? '', data.download_url]) {
    const stored = await node.get(address);
    expect(Buffer.from(await stored.arrayBuffer()).equals(whole)).toBe(true);
  }
  const cut = await submit(jpeg.subarray(0, -40).toString('base64'));
  expect(cut.status).toBe(400);
  expect(cut.body.message).toMatch(/ends too early/);
});
