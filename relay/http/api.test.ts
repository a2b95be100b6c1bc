import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refusedSentences } from '../../lib/contract/testing/refusal-sentences';
import {
  ApiError,
  type ApiPrediction,
  apiErrorSchema,
  endpoints,
  envelopeSchema,
  errorExample,
  predictionSchema,
} from '../../lib/contract/v3';
import { createLimits } from '../access/limits';
import { jobs, uploads } from '../store/schema';
import { onePixel, openTestApi, submission, type TestApi } from '../testing/api';
import { readAnswer, requestOf } from '../testing/requests';
import { answer } from './answer';

const model = '/api/v3/kinora/wan-2.2/i2v-720p-lora';
const missing = '0'.repeat(32);
const envelope = envelopeSchema(predictionSchema).strict();

let api: TestApi;
let key = '';
beforeAll(async () => {
  api = await openTestApi({ KINORA_SYNC_SECONDS: '0.2', KINORA_MAX_BODY_BYTES: '4000' });
  key = await api.key('ada');
}, 60_000);
afterAll(() => api?.close(), 60_000);

const post = (path: string, body?: unknown, headers?: Record<string, string>, as = key) =>
  api.send('POST', path, { key: as, body, ...(headers && { headers }) });
const get = (path: string, as = key) => api.send('GET', path, { key: as });
const submitted = async (as = key): Promise<string> =>
  (await post(model, submission, {}, as)).json.data.id;
const refusedPrompt = refusedSentences[0]?.[1] ?? '';
const refused = (status: number, error_code: string) => ({
  status,
  json: expect.objectContaining({ code: status, error_code }),
});

describe('submitting', () => {
  test('is answered with 200, the envelope, and URLs of the public address', async () => {
    const { status, json } = await post(`${model}-ultra-fast`, {
      ...submission,
      enable_base64_output: true,
      something_else: 1,
    });
    expect(status).toBe(200);
    expect(envelope.parse(json).data).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      model: 'kinora/wan-2.2/i2v-720p-lora-ultra-fast',
      outputs: [],
      urls: { get: `https://kinora.test/api/v3/predictions/${json.data.id}/result` },
      has_nsfw_contents: [],
      status: 'created',
      error: '',
      timings: { inference: 0 },
      queue_position: 0,
    });
    expect(json.data.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test('a family that is not configured is 404', async () => {
    expect(await post('/api/v3/other/wan-2.2/i2v-720p-lora', {})).toMatchObject(
      refused(400, 'INVALID_PARAMETER'),
    );
    expect(await post('/api/v3/other/wan-2.2/i2v-720p-lora', submission)).toMatchObject(
      refused(404, 'NOT_FOUND'),
    );
    expect((await post('/api/v3/wavespeed-ai/wan-2.1/i2v-720p-lora', submission)).status).toBe(200);
  });

  test('a webhook is a public https URL, percent-encoded or appended unchanged', async () => {
    const good = 'https://hooks.example.com/a?b=1&c=2';
    const glued = await post(`${model}?webhook=${good}`, submission);
    const encoded = await post(`${model}?webhook=${encodeURIComponent(good)}`, submission);
    for (const { json } of [glued, encoded]) {
      expect((await api.relay.jobs.get(json.data.id))?.webhookUrl).toBe(good);
    }
    for (const bad of ['http://hooks.example.com/', 'https://127.0.0.1/', 'nonsense']) {
      expect(await post(`${model}?webhook=${bad}`, submission)).toMatchObject(
        refused(400, 'INVALID_WEBHOOK'),
      );
    }
  });

  test('synchronous mode times out with the status that clients check', async () => {
    const { status, json } = await post(model, { ...submission, enable_sync_mode: true });
    expect(status).toBe(200);
    expect(json.data).toMatchObject({
      status: 'processing',
      code: 5004,
      error: expect.stringContaining('Sync mode timed out'),
      urls: { get: expect.stringContaining(json.data.id) },
    });
  });

  test.each([
    [
      'a data URI without an image',
      model,
      { image: 'data:image/png;base64,aGVsbG8=' },
      'INVALID_IMAGE',
    ],
    ['a prompt that is always refused', model, { prompt: refusedPrompt }, 'PROMPT_REFUSED'],
    ['the same, ultra fast', `${model}-ultra-fast`, { prompt: refusedPrompt }, 'PROMPT_REFUSED'],
  ])('%s is refused and not stored', async (_, path, input, code) => {
    const before = (await post('/api/v3/predictions', {})).json.data.items.length;
    const files = await kept();
    expect(await post(path, { ...submission, ...input })).toMatchObject(refused(400, code));
    expect((await post('/api/v3/predictions', {})).json.data.items).toHaveLength(before);
    expect(await kept()).toEqual(files);
  });
});

/** The submission to a node, which may have a part that does otherwise. */
const ask = (relay: Parameters<typeof answer>[0], headers: Record<string, string> = {}) =>
  answer(relay, requestOf('POST', `http://localhost${model}`, { key, body: submission, headers }));

/** Files of uploads and jobs. */
const kept = async () => {
  const folder = path.join(api.relay.config.KINORA_DATA, 'files');
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => /[0-9a-f]{32}/.test(name)).sort();
};

/** The name of a stored file, as {@link kept} has it. */
const fileOf = ({ blobKey }: { blobKey: string | null }) => blobKey ?? [];

describe('a submission that fails', () => {
  test('leaves no image and no upload', async () => {
    let id = '';
    const before = await kept();
    const full = {
      ...api.relay,
      jobs: {
        ...api.relay.jobs,
        submit: (job: { id: string }) => {
          ({ id } = job);
          return Promise.reject(new ApiError('RATE_LIMITED'));
        },
      },
    };
    expect((await ask(full)).status).toBe(429);
    expect(id).not.toBe('');
    expect(await kept()).toEqual(before);
    const { db } = api.relay.store;
    expect(await db.select().from(uploads).where(eq(uploads.jobId, id))).toEqual([]);
  });

  test('leaves no image where its upload cannot be inserted', async () => {
    const { db } = api.relay.store;
    await submitted();
    const before = await kept();
    expect(before.length).toBeGreaterThan(0);
    await db.execute(sql`alter table uploads rename to uploads_away`);
    try {
      expect((await ask(api.relay)).status).toBe(500);
    } finally {
      await db.execute(sql`alter table uploads_away rename to uploads`);
    }
    expect(await kept()).toEqual(before);
  });
});

describe('Idempotency-Key', () => {
  const header = (value: string) => ({ 'Idempotency-Key': value });

  test('the same request is answered with the same prediction, another one with 422', async () => {
    const first = await post(model, submission, header('a'));
    const again = await post(model, { ...submission, duration: 5 }, header('a'));
    expect(again.json.data.id).toBe(first.json.data.id);
    const other = await post(model, { ...submission, seed: 8 }, header('a'));
    expect(other).toMatchObject(refused(422, 'IDEMPOTENCY_MISMATCH'));
    const otherKey = await post(model, submission, header('a'), await api.key('ada'));
    expect(otherKey.json.data.id).not.toBe(first.json.data.id);
  });

  test('of equal requests at the same time one is submitted, and all are answered with it', async () => {
    const before = await kept();
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => post(model, submission, header('b'))),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(new Set(answers.map(({ json }) => json.data.id)).size).toBe(1);
    // The others left no files behind.
    const both = await kept();
    await submitted();
    expect(both.length - before.length).toBe((await kept()).length - both.length);
  });

  test('a refused request may be corrected under the same key', async () => {
    const image = 'data:image/png;base64,aGVsbG8=';
    expect((await post(model, { ...submission, image }, header('c'))).status).toBe(400);
    expect((await post(model, submission, header('c'))).status).toBe(200);
  });

  test('a submission whose commit was not confirmed is found by the next attempt, with its image', async () => {
    const { jobs } = api.relay;
    let id = '';
    const lossy = {
      ...api.relay,
      jobs: {
        ...jobs,
        async submit(job: Parameters<typeof jobs.submit>[0]) {
          ({ id } = await jobs.submit(job));
          throw new ApiError('STORAGE_DOWN');
        },
      },
    };
    const first = await ask(lossy, header('d'));
    expect(first.status).toBe(503);
    expect(await first.text()).toContain('with the same Idempotency-Key');
    const again = await post(model, submission, header('d'));
    expect(again).toMatchObject({ status: 200, json: { data: { id } } });
    const image = (await jobs.get(id))?.image;
    expect(await api.relay.files.blobs.stat(image?.key ?? '')).toEqual({ bytes: image?.bytes });
  });

  test('an attempt that another one overtook makes no second job', async () => {
    const { relay } = api;
    let goOn = (): void => undefined;
    const stored = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let slow = '';
    const { intake } = relay.files;
    const stuck = {
      ...relay,
      files: {
        ...relay.files,
        intake: {
          ...intake,
          async accept(...order: Parameters<typeof intake.accept>) {
            [slow] = order;
            const accepted = await intake.accept(...order);
            await stored;
            return accepted;
          },
        },
      },
    };
    const before = await kept();
    const first = ask(stuck, header('e'));
    await expect.poll(() => slow, { timeout: 20_000, interval: 10 }).not.toBe('');
    const second = await post(model, submission, header('e'));
    expect(second.status).toBe(200);
    goOn();
    expect(await (await first).json()).toMatchObject({ data: { id: second.json.data.id } });
    expect(await relay.jobs.get(slow)).toBeNull();
    expect(await relay.files.rows.ofJob(slow)).toEqual([]);
    const other = await relay.files.rows.ofJob(second.json.data.id);
    expect(await kept()).toEqual([...before, ...other.flatMap(fileOf)].sort());
  });

  test('a key may be used again after a day, and when its prediction was deleted', async () => {
    const { db } = api.relay.store;
    const first = await post(model, submission, header('f'));
    const age = (time: string) =>
      db
        .update(jobs)
        .set({ createdAt: sql`now() - ${time}::interval` })
        .where(eq(jobs.idempotencyKey, 'f'));
    await age('23 hours');
    expect((await post(model, submission, header('f'))).json.data.id).toBe(first.json.data.id);
    await age('25 hours');
    const other = { ...submission, seed: 8 };
    const second = await post(model, other, header('f'));
    expect(second.json.data.id).not.toBe(first.json.data.id);
    expect((await post(model, other, header('f'))).json.data.id).toBe(second.json.data.id);
    await post(`/api/v3/predictions/${second.json.data.id}/cancel`);
    await post('/api/v3/predictions/delete', { ids: [second.json.data.id] });
    expect((await post(model, submission, header('f'))).status).toBe(200);
  });

  test('one that is too long is refused', async () => {
    expect(await post(model, submission, header('x'.repeat(256)))).toMatchObject(
      refused(400, 'INVALID_PARAMETER'),
    );
  });
});

describe('predictions', () => {
  test('are read under all of their addresses by their owner only', async () => {
    const id = await submitted();
    const [result, alias, legacy] = await Promise.all([
      get(`/api/v3/predictions/${id}/result`),
      get(`/api/v3/predictions/${id}`),
      get(`/api/v2/predictions/${id}/result`),
    ]);
    expect(result.json.data.id).toBe(id);
    expect(alias.json.data).toEqual(result.json.data);
    expect(legacy.json.data).toEqual(result.json.data);
    const foreign = await api.key('bob');
    for (const path of [`${id}/result`, id, `${missing}/result`]) {
      expect(await get(`/api/v3/predictions/${path}`, foreign)).toMatchObject(
        refused(404, 'NOT_FOUND'),
      );
    }
    expect(await post(`/api/v3/predictions/${id}/cancel`, undefined, {}, foreign)).toMatchObject(
      refused(404, 'NOT_FOUND'),
    );
    expect(
      (await post('/api/v3/predictions/delete', { ids: [id] }, {}, foreign)).json.data,
    ).toEqual({ deleted_count: 0 });
  });

  test('that are cancelled read as failed and can be deleted', async () => {
    const id = await submitted();
    const { json } = await post(`/api/v3/predictions/${id}/cancel`);
    expect(envelope.parse(json).data).toMatchObject({
      status: 'failed',
      error: 'cancelled by user',
      outputs: [],
    });
    expect((await post(`/api/v3/predictions/${id}/cancel`)).json.data).toEqual(json.data);
    const waiting = await submitted();
    const removed = await post('/api/v3/predictions/delete', { ids: [id, id, waiting, missing] });
    expect(removed.json.data).toEqual({ deleted_count: 1 });
    expect((await get(`/api/v3/predictions/${id}/result`)).status).toBe(404);
    expect((await get(`/api/v3/predictions/${waiting}/result`)).status).toBe(200);
  });

  test('a list has pages, filters, and inputs on request', async () => {
    const lister = await api.key('lisa');
    const list = async (body: object): Promise<ApiPrediction[]> =>
      (await post('/api/v3/predictions', body, {}, lister)).json.data.items;
    const read = async (query: string) => (await get(`/api/v3/predictions?${query}`, lister)).json;
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift(await submitted(lister));
    await post(`/api/v3/predictions/${ids[0]}/cancel`, undefined, {}, lister);
    expect((await list({})).map(({ id }) => id)).toEqual(ids);
    expect((await list({ page: 2, page_size: 2 })).map(({ id }) => id)).toEqual([ids[2]]);
    expect((await list({ status: 'failed' })).map(({ id }) => id)).toEqual([ids[0]]);
    expect(await list({ model: 'kinora/wan-2.2/i2v-720p-lora-ultra-fast' })).toEqual([]);
    const [with_] = await list({ include_inputs: true, page_size: 1 });
    expect(with_?.input).toMatchObject({ prompt: 'a boat', seed: 7 });
    expect(String(with_?.input?.image)).toMatch(/^https:\/\/kinora\.test\//);
    expect((await list({}))[0]?.input).toBeUndefined();
    // The same by GET: what a query has is text.
    const second = { status: 'created', include_inputs: true, page_size: 1, page: 2 } as const;
    const listed = (await post('/api/v3/predictions', second, {}, lister)).json;
    expect(listed.data).toMatchObject({ page: 2, items: [{ id: ids[2] }] });
    expect(listed.data).not.toHaveProperty('total');
    const query = 'status=created&include_inputs=true&page_size=1&page=2';
    expect(await read(query)).toEqual(listed);
    expect((await read(`${query}&include_total=true`)).data).toEqual({ ...listed.data, total: 2 });
    expect(await read('include_inputs=maybe')).toMatchObject({ code: 400 });
    // Years that PostgreSQL and JavaScript write differently
    for (const edge of ['0000-01-01T00:00:00Z', '9999-12-31T23:59:59-23:59']) {
      expect((await post('/api/v3/predictions', { created_after: edge })).status).toBe(200);
      expect((await post('/api/v3/predictions', { created_before: edge })).status).toBe(200);
    }
  });

  test('a cursor goes through a list once, whatever is submitted meanwhile', async () => {
    const lister = await api.key('lars');
    const { db } = api.relay.store;
    const ids = await Promise.all(Array.from({ length: 5 }, () => submitted(lister)));
    // Of one moment: then the id decides.
    await db.update(jobs).set({ createdAt: new Date() }).where(eq(jobs.owner, 'lars'));
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const body: object = { page_size: 2, ...(cursor && { cursor }) };
      const { data } = (await post('/api/v3/predictions', body, {}, lister)).json;
      seen.push(...data.items.map(({ id }: ApiPrediction) => id));
      cursor = data.next_cursor;
      if (seen.length < 5) await submitted(lister);
    }
    expect(seen.toSorted()).toEqual(ids.toSorted());
    for (const wrong of ['nonsense', 'MS4y', '']) {
      expect(await post('/api/v3/predictions', { cursor: wrong })).toMatchObject({
        ...refused(400, 'INVALID_PARAMETER'),
        json: { details: [{ field: 'cursor' }] },
      });
    }
  });

  test('?wait= delays the answer until the prediction or the time has ended', async () => {
    const id = await submitted();
    const waiting = get(`/api/v3/predictions/${id}/result?wait=8`);
    await api.relay.jobs.cancel(id, 'ada');
    expect((await waiting).json.data.status).toBe('failed');
    const other = await submitted();
    expect((await get(`/api/v3/predictions/${other}/result?wait=0.05`)).json.data.status).toBe(
      'created',
    );
    for (const wait of ['9', '-1', 'x', 'Infinity']) {
      expect(await get(`/api/v3/predictions/${other}/result?wait=${wait}`)).toMatchObject(
        refused(400, 'INVALID_PARAMETER'),
      );
    }
  });
});

describe('authentication', () => {
  test('refuses requests without a valid key', async () => {
    for (const authorization of [
      null,
      'Bearer ',
      'Bearer nonsense',
      `Basic ${key}`,
      key.slice(1),
    ]) {
      const headers: Record<string, string> = authorization ? { authorization } : {};
      const answer = await api.send('GET', '/api/v3/balance', { headers });
      expect(answer).toMatchObject(refused(401, 'UNAUTHORIZED'));
      expect(apiErrorSchema.parse(answer.json).request_id).toBe(answer.headers.get('x-request-id'));
    }
  });

  test('refuses what the key has no scope for', async () => {
    const reader = await api.key('ada', { scopes: ['predictions:read'] });
    expect((await get('/api/v3/balance', reader)).status).toBe(200);
    const answer = await post(model, submission, {}, reader);
    expect(answer).toMatchObject(refused(403, 'FORBIDDEN'));
    expect(answer.json.details).toEqual([
      { field: 'scope', message: expect.stringContaining('predictions:write') },
    ]);
  });

  test('limits the wrong keys of an address and the requests of a key', async () => {
    const { relay } = api;
    const settings = { KINORA_BAD_KEYS_PER_ADDRESS: 2, KINORA_READS_PER_MINUTE: 3 };
    const config = { ...relay.config, ...settings, KINORA_READS_PER_JOB_PER_MINUTE: 0 };
    const limits = createLimits({ config });
    const read = async (as: string) => {
      const sent = { key: as, headers: { 'x-kinora-address': '203.0.113.9' } };
      const request = requestOf('GET', 'http://localhost/api/v3/balance', sent);
      return await readAnswer(await answer({ ...relay, limits }, request));
    };
    expect([(await read('wrong')).status, (await read('wrong')).status]).toEqual([401, 401]);
    expect(await read('wrong')).toMatchObject(refused(429, 'RATE_LIMITED'));
    const reader = await api.key('ada');
    expect((await read(reader)).headers.get('ratelimit-remaining')).toBe('2');
    await read(reader);
    await read(reader);
    const last = await read(reader);
    expect(last).toMatchObject(refused(429, 'RATE_LIMITED'));
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});

describe('the form of requests', () => {
  test('unknown paths, foreign methods, HEAD', async () => {
    expect(await get('/api/v3/nothing')).toMatchObject(refused(404, 'NOT_FOUND'));
    expect(await get('/api/v3/predictions/%E0%A4%A/result')).toMatchObject(
      refused(404, 'NOT_FOUND'),
    );
    const wrong = await get('/api/v3/predictions/delete');
    expect(wrong).toMatchObject(refused(405, 'METHOD_NOT_ALLOWED'));
    expect(wrong.headers.get('allow')).toBe('POST, OPTIONS');
    const head = await api.send('HEAD', '/api/v3/balance', { key });
    expect(head).toMatchObject({ status: 200, json: null });
  });

  test('pages of any origin may call the public API only', async () => {
    const headers = {
      Origin: 'https://app.example',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'authorization,content-type,idempotency-key,x-client-os',
    };
    const preflight = await api.send('OPTIONS', model, { headers });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
    expect(preflight.headers.get('access-control-allow-methods')).toContain('POST');
    const allowed = preflight.headers.get('access-control-allow-headers')?.split(', ');
    expect(allowed).toEqual(
      expect.arrayContaining(['authorization', 'content-type', 'idempotency-key', 'x-client-os']),
    );
    expect(preflight.headers.has('access-control-allow-credentials')).toBe(false);
    const answer = await api.send('GET', '/api/v3/balance', { headers });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-expose-headers')).toContain('X-Request-Id');
    for (const path of ['/api/admin/keys', '/api/worker/claim']) {
      for (const method of ['OPTIONS', 'POST', 'PATCH']) {
        const inside = await api.send(method, path, { headers });
        expect(inside.headers.has('access-control-allow-origin')).toBe(false);
      }
    }
  });

  test('a refusal is the one that the documentation shows', async () => {
    const { json } = await post(model, { ...submission, num_inference_steps: 41 });
    expect({ ...json, request_id: errorExample.request_id }).toEqual(errorExample);
  });

  test.each(['[]', 'null', '{"image":"IMAGE","prompt":"a\\u0000b"}'])(
    'the body %s is 400',
    async (body) => {
      expect(await post(model, body.replace('IMAGE', onePixel))).toMatchObject(
        refused(400, 'INVALID_PARAMETER'),
      );
    },
  );

  test('a page number whose offset is not exact is refused', async () => {
    expect(await post('/api/v3/predictions', { page: 9_007_199_254_740_991 })).toMatchObject(
      refused(400, 'INVALID_PARAMETER'),
    );
    expect((await post('/api/v3/predictions', { page: 1_000_000 })).json.data.items).toEqual([]);
  });

  test('the log has one line per request, without keys and prompts', async () => {
    api.logged.length = 0;
    await post(`${model}?webhook=https://hooks.example.com/s3cr3t`, {
      ...submission,
      prompt: 'a boat at night',
    });
    await post(model, { ...submission, prompt: 5 });
    expect(api.logged).toMatchObject([
      {
        level: 'info',
        operation: 'submit',
        method: 'POST',
        status: 200,
        key_id: expect.any(String),
      },
      { level: 'info', operation: 'submit', status: 400 },
    ]);
    const text = JSON.stringify(api.logged);
    for (const secret of [key, 'a boat', 's3cr3t', onePixel.slice(0, 40)]) {
      expect(text).not.toContain(secret);
    }
  });
});

describe('other operations of public clients', () => {
  test('models with their schema', async () => {
    const { json } = await get('/api/v3/models');
    expect(json.data).toHaveLength(6);
    const [first] = json.data;
    expect(first).toMatchObject({
      model_id: 'kinora/wan-2.2/i2v-720p-lora',
      type: 'image-to-video',
      base_price: 0,
      workers: 0,
    });
    const [, fast] = json.data;
    expect(fast).toMatchObject({
      model_id: 'kinora/wan-2.2/i2v-720p-lora-ultra-fast',
      base_price: 0,
      description: expect.stringMatching(/a twentieth of the work.*may suffer/),
    });
    const [run] = first.api_schema.api_schemas;
    expect(run).toMatchObject({
      type: 'model_run',
      method: 'POST',
      server: 'https://kinora.test',
      api_path: model,
    });
    expect(run.request_schema.required).toEqual(expect.arrayContaining(['image', 'prompt']));
    expect(run.request_schema.properties.duration).toMatchObject({ minimum: 5, maximum: 10 });
    expect(run.request_schema['x-order-properties'].slice(0, 2)).toEqual(['image', 'prompt']);
  });

  test('balance, prices, webhook secret, deliveries, upload ticket fit their contract', async () => {
    const price = { model_id: 'kinora/wan-2.2/i2v-720p-lora', inputs: { duration: 5 } };
    const ticket = { filename: 'a.png', size: 100, content_type: 'image/png' };
    const answers = {
      balance: await get('/api/v3/balance'),
      pricing: await post('/api/v3/model/pricing', price),
      price: await post('/api/v3/model/price', price),
      webhookSecret: await get('/api/v3/webhook/secret'),
      deliveries: await get('/api/v3/webhook/deliveries?page=1&page_size=5'),
      uploadTicket: await post('/api/v3/media/uploads', ticket),
    };
    for (const [operation, { json }] of Object.entries(answers)) {
      endpoints[operation as keyof typeof answers].answer.parse(json);
    }
    expect(answers.price.json.data).toEqual({ price: 0, discounted_price: 0 });
    expect(answers.webhookSecret.json.data.secret).toMatch(/^whsec_/);
    const { upload } = answers.uploadTicket.json.data;
    expect(upload).toMatchObject({ method: 'PUT', headers: { 'Content-Type': 'image/png' } });
    const replay = `/api/v3/webhook/deliveries/msg_${missing}/replay`;
    expect(await post(replay)).toMatchObject(refused(404, 'NOT_FOUND'));
  });
});

describe('when something breaks', () => {
  const broken = (error: unknown) =>
    answer(
      { ...api.relay, jobs: { ...api.relay.jobs, get: () => Promise.reject(error) } },
      requestOf('GET', `http://localhost/api/v3/predictions/${missing}/result`, { key }),
    );

  test('an unexpected error is answered with a request id, and logged', async () => {
    api.logged.length = 0;
    const answered = await broken(new Error('a secret detail'));
    const text = await answered.text();
    expect(answered.status).toBe(500);
    expect(text).not.toContain('secret');
    const { request_id } = apiErrorSchema.parse(JSON.parse(text));
    expect(api.logged[0]).toMatchObject({
      level: 'error',
      msg: 'INTERNAL',
      request_id,
      err: { message: 'a secret detail' },
    });
  });

  test('a value that the database cannot store is 400', async () => {
    const cause = Object.assign(new Error('numeric value out of range'), { code: '22003' });
    expect((await broken(new Error('Failed query', { cause }))).status).toBe(400);
  });

  test('a storage that does not answer is 503', async () => {
    // Last of all: nothing works after it.
    await api.relay.store.close();
    expect(await get(`/api/v3/predictions/${missing}/result`)).toMatchObject(
      refused(503, 'STORAGE_DOWN'),
    );
    expect(await post(model, submission)).toMatchObject(refused(503, 'STORAGE_DOWN'));
  });
});
