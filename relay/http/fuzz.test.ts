/** @module-tag full */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OpenApiDocument } from '../../lib/contract/v3';
import { fitting, type Meanings, spoiling } from '../testing/arbitraries';
import { createChecker, type DocumentedOperation } from '../testing/checker';
import { ProtocolWorker } from '../testing/protocol-worker';
import { startTestRelay, type TestRelay } from '../testing/server';

/**
 * The published document against the running server: what fits is answered with 200 and
 * in the shape that is promised, everything else is refused in the shape of a refusal, and nothing
 * that a caller sends is answered with 5xx. `KINORA_SOAK` multiplies the number of runs, and draws
 * other inputs each time; an ordinary run has the same ones wherever it runs.
 */
const document = JSON.parse(
  readFileSync(new URL('../../public/openapi.json', import.meta.url), 'utf8'),
) as OpenApiDocument;
const checker = createChecker(document);
const soak = Math.max(1, Number(process.env.KINORA_SOAK ?? 1) || 1);
/** So many inputs of every kind. */
const draw = (count: number) => ({
  numRuns: count * soak,
  ...(soak === 1 && { seed: 20_261_122 }),
});
const runs = draw(15);

/** A small real picture. */
const picture = readFileSync(
  new URL('../../lib/models/wan/goldens/tiny-wan22-ti2v/image.png', import.meta.url),
);
const missing = '0'.repeat(32);

const dataUri = `data:image/png;base64,${picture.toString('base64')}`;
const meanings: Meanings = {
  image: fc.constant(dataUri),
  // A loop takes none.
  last_image: fc.constant(undefined),
  // It needs one.
  last_image_at: fc.constant(undefined),
  // A transformer takes three; a schema cannot tell which list is of one.
  loras: fc.array(fc.record({ path: fc.constant('owner/name') }), { maxLength: 3 }),
  // Adapters are looked up later; only the form of their address is checked at once.
  path: fc.constantFrom('owner/name', 'owner/name/folder/file.safetensors'),
  filename: fc.constantFrom('a.png', 'still life.jpg', 'ünï.webp', 'style.safetensors'),
  size: fc.constantFrom(1, 1000, 20_000_000),
  content_type: fc.constant(undefined),
  webhook: fc.constantFrom('', 'http://127.0.0.1:9/hook'),
  // Holding answers is another test's: here it would only take time.
  enable_sync_mode: fc.constant(false),
};
/** `size` of a submission is its pixels, not its bytes. */
const meaningsOf = ({ id }: DocumentedOperation): Meanings => {
  const { size, ...others } = meanings;
  // There `image` is whether it is shown.
  if (id === 'share') return {};
  return id === 'uploadTicket' && size ? meanings : others;
};

let server: TestRelay;
/** A prediction that has ended, with a delivery that can be replayed. */
let ended = '';
/** A prediction with a video. */
let completed = '';
let delivery = '';

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly type: string;
}

async function send(
  path: string,
  init: {
    method?: string;
    body?: string | Uint8Array | FormData;
    type?: string;
    key?: string;
  } = {},
): Promise<Answer> {
  const { method = init.body === undefined ? 'GET' : 'POST', type, key = server.apiKey } = init;
  const response = await fetch(server.origin + path, {
    method: method.toUpperCase(),
    headers: {
      ...(key !== '' && { Authorization: `Bearer ${key}` }),
      ...(type !== undefined && { 'Content-Type': type }),
    },
    ...(init.body !== undefined && { body: init.body as BodyInit }),
  });
  const text = await response.text();
  const answered = response.headers.get('content-type') ?? '';
  const body: unknown = answered.startsWith('application/json') ? JSON.parse(text) : text;
  return { status: response.status, body, type: answered };
}

const json = 'application/json';
const post = (path: string, body: unknown) =>
  send(path, { body: JSON.stringify(body), type: json });

/** Path of an operation with parameters that lead somewhere. */
const pathOf = ({ path, id }: DocumentedOperation): string =>
  path
    .replace('{provider}/{family}/{variant}', 'kinora/wan-2.2/i2v-720p-lora')
    .replace('{id}', id === 'replay' ? delivery : id === 'share' ? completed : ended);

function expectRefusal({ status, body }: Answer, what?: unknown): void {
  const context = JSON.stringify(what)?.slice(0, 400);
  expect(status, context).toBeGreaterThanOrEqual(400);
  expect(status, context).toBeLessThan(500);
  expect(checker.errorFaults(body), context).toEqual([]);
  expect(body).toMatchObject({ code: status });
}

beforeAll(async () => {
  server = await startTestRelay({
    // A spoilt body may ask for a held answer all the same: that must not take its time here.
    settings: { KINORA_JOBS_PER_KEY: '1000000', KINORA_SYNC_SECONDS: '0.1' },
  });
  const submission = { image: dataUri, prompt: 'a still' };
  // Nobody listens there: the delivery is recorded, and stays due.
  const webhook = encodeURIComponent('http://127.0.0.1:9/hook');
  const path = `/api/v3/kinora/wan-2.2/i2v-720p-lora?webhook=${webhook}`;
  const submitted = (await post(path, submission)).body as { data: { id: string } };
  ended = submitted.data.id;
  await send(`/api/v3/predictions/${ended}/cancel`, { method: 'POST' });
  const { body } = await send('/api/v3/webhook/deliveries');
  const worker = new ProtocolWorker({ origin: server.origin, token: server.workerToken });
  const second = (await post('/api/v3/kinora/wan-2.2/i2v-720p-lora', submission)).body;
  completed = (second as typeof submitted).data.id;
  await worker.once(AbortSignal.timeout(20_000));
  delivery = (body as { data: { items: { id: string }[] } }).data.items[0]?.id ?? '';
}, 60_000);
afterAll(() => server?.stop());

/** What the schema of a submission cannot say: base64 and a webhook exclude each other, events need a webhook. */
function isAllowed(body: unknown): boolean {
  const fields = body as Partial<Record<string, unknown>>;
  return fields.webhook ? !fields.enable_base64_output : !fields.webhook_events;
}

const withBody = checker.operations.filter(({ body }) => body !== undefined);
const bodyless = checker.operations.filter(({ body, id }) => !body && !id.startsWith('upload'));

describe.each(withBody)('$method $path', (operation) => {
  const schema = operation.body ?? {};
  const { resolve } = checker;

  test('takes every body that fits', async () => {
    const bodies = fitting(schema, resolve, meaningsOf(operation)).filter(isAllowed);
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        const { status, body: answer } = await post(pathOf(operation), body);
        expect(status, JSON.stringify(answer)).toBe(200);
        expect(checker.answerFaults(operation, answer)).toEqual([]);
      }),
      runs,
    );
  });

  test('refuses every body that does not fit', async () => {
    const bodies = spoiling(schema, resolve, meaningsOf(operation));
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        const sent: unknown = JSON.parse(JSON.stringify(body));
        const answer = await post(pathOf(operation), sent);
        if (!checker.fitsBody(operation, sent)) expectRefusal(answer, sent);
        else expect(answer.status, JSON.stringify(sent).slice(0, 400)).toBeLessThan(500);
      }),
      draw(30),
    );
  });

  test('refuses what is no JSON, and JSON under another name', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        // A brace that nothing closes: never JSON, whatever follows.
        const body = Uint8Array.from([0x7b, 0x22, ...bytes.filter((byte) => byte !== 0x22)]);
        expectRefusal(await send(pathOf(operation), { method: 'POST', body, type: json }));
      }),
      draw(10),
    );
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'image/png', 'json']) {
      const answer = await send(pathOf(operation), { body: '{}', type });
      expect(answer.status, type).toBe(415);
      expectRefusal(answer);
    }
  });

  test('takes nothing from prototypes, and survives what is deep', async () => {
    const bodies = fitting(schema, resolve, meaningsOf(operation));
    const [valid] = fc.sample(bodies, { ...draw(1), numRuns: 1 });
    const required = (resolve(schema).required ?? []) as string[];
    const inherited = `{"__proto__":${JSON.stringify(valid)},"constructor":{"prototype":{}}}`;
    const answer = await send(pathOf(operation), { body: inherited, type: json });
    const isStrict = resolve(schema).additionalProperties === false;
    if (required.length > 0 || isStrict) expectRefusal(answer, inherited);
    else expect(answer.status).toBe(200);
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    expectRefusal(await send(pathOf(operation), { body: deep, type: json }));
    for (const name of Object.keys((resolve(schema).properties ?? {}) as object)) {
      const whole = JSON.stringify({ ...(valid as object), [name]: 0 });
      const body = whole.replace(`"${name}":0`, `"${name}":${deep}`);
      expectRefusal(await send(pathOf(operation), { body, type: json }), name);
    }
    expect(({} as Record<string, unknown>).prompt).toBeUndefined();
  });
});

test.each(bodyless)('$method $path answers as promised', async (operation) => {
  const { method, id } = operation;
  const { status, body, type } = await send(pathOf(operation), { method });
  expect(status, JSON.stringify(body)).toBe(200);
  if (operation.answersJson) expect(checker.answerFaults(operation, body)).toEqual([]);
  else {
    expect(id).toBe('events');
    expect(type).toMatch(/^text\/event-stream/);
    expect(body).toContain('cancelled by user');
  }
});

const withQuery = checker.operations.filter(({ query, body }) => query.length > 0 && !body);

test.each(withQuery)('$method $path keeps the ranges of its query', async (operation) => {
  for (const { name, schema } of operation.query) {
    const { minimum, maximum } = schema as { minimum?: number; maximum?: number };
    const numeric = minimum !== undefined && maximum !== undefined;
    const isFree = schema.type === 'string' && !schema.enum && !schema.format && !schema.pattern;
    const texts = isFree ? ['%00'] : ['abc', '%00', '%ff', '%ED%A0%80', '[]'];
    const bad = numeric
      ? [minimum - 1, maximum + 1, 'NaN', 'Infinity', '1e999', 'abc', '-1', '%00', '1,2']
      : texts;
    const good = numeric ? [minimum, maximum] : ((schema.enum ?? []) as unknown[]);
    for (const value of bad) {
      expectRefusal(await send(`${pathOf(operation)}?${name}=${value}`), { name, value });
    }
    for (const value of good) {
      const { status, body } = await send(`${pathOf(operation)}?${name}=${value}`);
      expect({ status, faults: checker.answerFaults(operation, body) }, `${name}=${value}`).toEqual(
        {
          status: 200,
          faults: [],
        },
      );
    }
  }
});

test('refuses every id that cannot be, and every one that is not there', async () => {
  const ids = fc.oneof(
    fc.constantFrom(missing, ended.toUpperCase(), ended.slice(1), `${ended}0`, '%00', '%ff', '%2e'),
    fc
      .string({ minLength: 1, unit: 'binary' })
      .map((id) => encodeURIComponent(id.replace(/\p{Surrogate}/gu, '?'))),
    fc.constant('a'.repeat(4000)),
  );
  const byId = checker.operations.filter(({ path }) => path.includes('{id}'));
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...byId), ids, async ({ path, method }, id) => {
      // A browser's parser would take such segments away before anything is sent.
      fc.pre(!/^(\.|%2e)+$/i.test(id));
      expectRefusal(await send(path.replace('{id}', id), { method }), { path, id });
    }),
    draw(45),
  );
});

test('refuses models, webhooks and keys that are not there', async () => {
  const submission = { image: dataUri, prompt: 'a' };
  const model = '/api/v3/kinora/wan-2.2/i2v-720p-lora';
  for (const path of ['/api/v3/kinora/wan-9/i2v-720p-lora', `${model}-slow`, '/api/v3/%00/b/c']) {
    expectRefusal(await post(path, submission), path);
  }
  for (const webhook of [
    '',
    'x',
    'ftp://a.example/',
    'https://',
    'javascript:1',
    'https://a:b@c/',
  ]) {
    const answer = await post(`${model}?webhook=${encodeURIComponent(webhook)}`, submission);
    if (webhook !== '') expectRefusal(answer, webhook);
    else expect(answer.status).toBeLessThan(500);
  }
  for (const operation of checker.operations) {
    const { method } = operation;
    for (const key of ['', 'x', `${server.apiKey}x`, server.workerToken]) {
      const answer = await send(pathOf(operation), { method, key });
      // A worker's token is a good one; but not for this.
      const status = key === server.workerToken ? 403 : 401;
      expect(answer.status, `${operation.id} with ${key.slice(0, 3)}`).toBe(status);
      expectRefusal(answer);
    }
    const wrong = await send(pathOf(operation), { method: 'PATCH' });
    expect(wrong.status).toBe(405);
    expectRefusal(wrong);
  }
});

const uploads = checker.operations.filter(({ path }) => path.endsWith('/upload/binary'));

test.each(uploads)('$method $path takes a picture and refuses the rest', async (operation) => {
  const form = (name: string, file: Blob, filename: string) => {
    const data = new FormData();
    data.append(name, file, filename);
    return data;
  };
  const still = new Blob([picture], { type: 'image/png' });
  const taken = await send(operation.path, { body: form('file', still, 'a.png') });
  expect(taken.status, JSON.stringify(taken.body)).toBe(200);
  expect(checker.answerFaults(operation, taken.body)).toEqual([]);
  for (const body of [
    form('other', still, 'a.png'),
    form('file', new Blob(['<svg/>'], { type: 'image/svg+xml' }), 'a.svg'),
    form('file', new Blob([]), 'a.png'),
    form('file', new Blob(['#!/bin/sh']), 'a.safetensors'),
    new FormData(),
  ]) {
    expectRefusal(await send(operation.path, { body }));
  }
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
      const type = 'multipart/form-data; boundary=x';
      expectRefusal(await send(operation.path, { method: 'POST', body: bytes, type }), [...bytes]);
    }),
    draw(10),
  );
  for (const type of [
    'multipart/form-data',
    'application/json',
    'multipart/form-data; boundary=',
  ]) {
    expectRefusal(await send(operation.path, { method: 'POST', body: '{}', type }), type);
  }
});
