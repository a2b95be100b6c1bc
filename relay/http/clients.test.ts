import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deliveries } from '../store/schema';
import { onePixel } from '../testing/api';
import { startTestRelay, type TestRelay } from '../testing/server';

/** What clients of other languages and libraries send, and base URLs as people write them. */
let node: TestRelay;
beforeAll(async () => {
  node = await startTestRelay({ background: false, settings: { KINORA_MAX_BODY_BYTES: '20000' } });
}, 60_000);
afterAll(() => node?.stop());

const model = '/api/v3/kinora/wan-2.2/i2v-720p-lora';
const submission = { image: onePixel, prompt: 'a boat' };
const families = 'kinora/wan-2.2, wavespeed-ai/wan-2.2 and wavespeed-ai/wan-2.1';
const missing = '0'.repeat(32);

const call = (path: string, body?: unknown, key = node.apiKey) =>
  node.send(body === undefined ? 'GET' : 'POST', path, { key, body });
const jobOf = async (id: string) => await node.relay.jobs.get(id);

/** Sends one request as it is, and reads until the server closes. */
async function raw(text: string): Promise<string> {
  const socket = connect(Number(new URL(node.origin).port), '127.0.0.1');
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk.toString();
  });
  socket.write(text);
  await once(socket, 'close');
  return answer;
}

describe('an upgrade to HTTP/2', () => {
  // As the JDK's HttpClient and `curl --http2` send it with every first request (RFC 9110, 7.8).
  const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA';
  test.each(['GET /api/v3/models', 'POST /api/v3/predictions', 'GET /healthz'])(
    'is not made, and the request is answered: %s',
    async (line) => {
      const body = line.startsWith('POST') ? '{"page_size":1}' : '';
      const head = [
        `${line} HTTP/1.1`,
        'Host: kinora.test',
        `Authorization: Bearer ${node.apiKey}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        offer.replace('Connection: ', 'Connection: close, '),
      ];
      const answer = await raw(`${head.join('\r\n')}\r\n\r\n${body}`);
      expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(answer).toMatch(/\{.*\}/);
    },
  );
});

describe('null in an optional field', () => {
  test('is the same as no such field, in every body', async () => {
    const optional = [
      ...['negative_prompt', 'loras', 'size', 'num_inference_steps', 'duration', 'guidance_scale'],
      ...['flow_shift', 'seed', 'enable_prompt_optimizer', 'enable_safety_checker', 'webhook'],
      ...['enable_sync_mode', 'enable_base64_output'],
    ];
    const nulls = Object.fromEntries(optional.map((name) => [name, null]));
    const { status, json } = await call(model, { ...submission, ...nulls });
    expect(status, json.message).toBe(200);
    const stored = (await jobOf(json.data.id))?.input;
    expect(stored).toMatchObject({ size: '1280*720', duration: 5, loras: [], seed: -1 });
    const filters = { page: null, model: null, status: null, created_after: null };
    expect((await call('/api/v3/predictions', filters)).status).toBe(200);
    const file = { filename: 'a.png', size: 10, content_type: null };
    expect((await call('/api/v3/media/uploads', file)).status).toBe(200);
    const priced = { model_id: 'kinora/wan-2.2/i2v-720p-lora', inputs: null };
    expect((await call('/api/v3/model/price', priced)).status).toBe(200);
  });
});

describe('a path that leads nowhere', () => {
  test.each([
    [
      '/api/v3/kinora/wan-2.2/i2v-480p',
      `kinora/wan-2.2 has no variant "i2v-480p". Its variants are i2v-720p-lora, i2v-720p-lora-ultra-fast, i2v-720p, i2v-720p-ultra-fast, i2v-5b-720p and i2v-5b-720p-lora.`,
    ],
    [
      '/api/v3/kinora/wan-9/i2v-720p-lora',
      `There is no model family "kinora/wan-9". This server has ${families}.`,
    ],
    [
      '/api/v3/acme/wan%0A9/nothing',
      `There is no model family "acme/wan?9". This server has ${families}.`,
    ],
    [
      '/api/v3/predictions/task-1/result',
      '"task-1" is not the id of a prediction. An id has 32 lower-case hex characters',
    ],
    ['/api/v3/predictions//result', 'The id of the prediction is missing in the path.'],
    [`/api/v3/predictions/${missing}/result`, `There is no prediction with the id ${missing}.`],
    [`/api/v3/predictions/${missing}/cancel`, `There is no prediction with the id ${missing}.`],
    ['/api/v3/nothing', 'There is nothing at /api/v3/nothing. Compare the path with /docs/api.'],
    ['/api/v3/media/upload/text', 'There is nothing at /api/v3/media/upload/text.'],
  ])('says which part is wrong, and what there is: %s', async (path, sentence) => {
    const isRead = path.endsWith('/result');
    const { status, json } = await call(path, isRead ? undefined : submission);
    expect(status).toBe(404);
    expect(json).toMatchObject({ code: 404, error_code: 'NOT_FOUND' });
    expect(json.message).toContain(sentence);
  });

  test('can be read by a page of another origin: its preflight is answered', async () => {
    for (const path of ['/api/v3/nothing', '/api/v3/kinora/wan-2.2/i2v-480p', '/openapi.json']) {
      const preflight = await fetch(node.origin + path, {
        method: 'OPTIONS',
        headers: { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' },
      });
      expect(preflight.status, path).toBe(204);
      expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
      expect(preflight.headers.get('access-control-allow-methods')).toContain('GET');
      expect(preflight.headers.get('access-control-allow-headers')).toContain('authorization');
      const answer = await fetch(node.origin + path);
      expect(answer.headers.get('access-control-allow-origin'), path).toBe('*');
    }
  });
});

test('a slash too many in the base URL does no harm', async () => {
  for (const path of [
    `/${model}`,
    `//${model}`,
    model.replace('/v3/', '/v3//'),
    model.replace('/api/', '/api//'),
    `${model}/`,
  ]) {
    const { status, json } = await call(`${path}?webhook=`, submission);
    expect(status, path).toBe(200);
    const result = json.data.urls.get.replace(node.origin, '').replace('/api/v3/', '//api/v3//');
    expect((await call(`${result}?wait=0`)).json.data.id).toBe(json.data.id);
  }
});

test('many slashes inside of a path take no longer than the path is', async () => {
  const startedAt = performance.now();
  for (let i = 0; i < 10; i++) await call(`/api/v3/a${'/'.repeat(15_000)}x`);
  // Each took 0.25 s where the slashes were read again from every one of them.
  expect(performance.now() - startedAt).toBeLessThan(1500);
});

describe('a webhook', () => {
  const url = 'http://127.0.0.1:9/hook?a=1&b=2';
  const query = `${model}?webhook=${encodeURIComponent(url)}`;

  test('may be empty, or in the body; its place makes no other request of it', async () => {
    for (const [path, body, expected] of [
      [`${model}?webhook=`, submission, null],
      [model, { ...submission, webhook: ' ' }, null],
      [model, { ...submission, webhook: url }, url],
      [`${model}?webhook=`, { ...submission, webhook: url }, url],
      [query, { ...submission, webhook: url }, url],
    ] as const) {
      const { status, json } = await call(path, body);
      expect(status, json.message).toBe(200);
      const job = await jobOf(json.data.id);
      expect(job?.webhookUrl).toBe(expected);
      expect(job?.input).not.toHaveProperty('webhook');
      await call(`/api/v3/predictions/${json.data.id}/cancel`, {});
      const sent = await node.relay.store.db
        .select()
        .from(deliveries)
        .where(eq(deliveries.jobId, json.data.id));
      expect(sent.map((delivery) => delivery.url)).toEqual(expected === null ? [] : [expected]);
    }
    const once = async (path: string, body: object) => {
      const headers = { 'Idempotency-Key': 'one-webhook' };
      return (await node.send('POST', path, { key: node.apiKey, body, headers })).json.data.id;
    };
    expect(await once(query, submission)).toBe(await once(model, { ...submission, webhook: url }));
  });

  test('is refused where query and body name two, or the one in the body is none', async () => {
    const two = await call(query, { ...submission, webhook: 'https://other.example/' });
    expect(two).toMatchObject({ status: 400, json: { error_code: 'INVALID_WEBHOOK' } });
    expect(two.json.message).toContain('The query and the body name two webhooks.');
    const none = await call(model, { ...submission, webhook: 'ftp://a.example/' });
    expect(none.json.error_code).toBe('INVALID_WEBHOOK');
  });
});

test('a compressed body is refused as one, for JSON and files alike', async () => {
  const body = gzipSync(JSON.stringify(submission));
  const json = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' };
  const form = { 'Content-Type': 'multipart/form-data; boundary=x', 'Content-Encoding': 'br' };
  for (const [path, headers] of [
    [model, json],
    ['/api/v3/media/upload/binary', form],
  ] as const) {
    const answer = await fetch(node.origin + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${node.apiKey}`, ...headers },
      body,
    });
    expect(answer.status).toBe(415);
    expect(answer.headers.get('accept-encoding')).toBe('identity');
    expect(await answer.json()).toMatchObject({
      error_code: 'UNSUPPORTED_MEDIA_TYPE',
      message: 'The body is compressed. Send it as it is.',
    });
  }
  const identity = { headers: { 'Content-Encoding': 'identity' }, key: node.apiKey };
  expect((await node.send('POST', model, { ...identity, body: submission })).status).toBe(200);
});

test('403 and 413 name the scope and the limit in their messages', async () => {
  const create = (scopes: 'predictions:read'[]) =>
    node.relay.keys.create({ kind: 'api', owner: 'owner', name: 'reader', scopes });
  const { key } = await create(['predictions:read']);
  const forbidden = await call(model, submission, key);
  expect(forbidden.status).toBe(403);
  expect(forbidden.json.message).toContain('This key does not have the scope predictions:write.');
  const admin = await node.send('GET', '/api/admin/keys', { key });
  expect(admin.json.message).toContain('the scope admin.');
  const large = await call(model, { ...submission, prompt: 'x'.repeat(30_000) });
  expect(large.status).toBe(413);
  expect(large.json.message).toContain('The body is larger than 20,000 bytes.');
  const file = await call('/api/v3/media/uploads', { filename: 'a.png', size: 20_000_001 });
  expect(file.status).toBe(413);
  expect(file.json.message).toContain('The file is larger than 20,000,000 bytes.');
});
