import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ApiError, listBodySchema, submitSchema } from '../../lib/contract/v3';
import { check, readJson, withoutNulls } from './input';

const post = (body: BodyInit, headers: Record<string, string> = {}) =>
  new Request('http://kinora.test/', {
    method: 'POST',
    body,
    headers: { 'Content-Type': 'application/json', ...headers },
  });
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'accepted',
    (error: unknown) => (error instanceof ApiError ? error.code : error),
  );

describe('reading a body', () => {
  test('JSON by any of its types, up to the last byte', async () => {
    expect(await readJson(post('{"a":"ä"}'), 10)).toEqual({ a: 'ä' });
    const patch = { 'Content-Type': 'Application/Merge-Patch+JSON; charset=utf-8' };
    expect(await readJson(post('[1]', patch), 3)).toEqual([1]);
  });

  test.each([
    ['no JSON', '{"a":'],
    ['nothing', ''],
    ['no UTF-8', new Uint8Array([0x22, 0xff, 0x22])],
  ])('%s is INVALID_JSON', async (_, body) => {
    expect(await codeOf(readJson(post(body), 100))).toBe('INVALID_JSON');
  });

  test('another type is 415', async () => {
    for (const type of ['text/plain', 'multipart/form-data; boundary=x', 'application/jsonp']) {
      expect(await codeOf(readJson(post('{}', { 'Content-Type': type }), 100))).toBe(
        'UNSUPPORTED_MEDIA_TYPE',
      );
    }
  });

  test('one byte too many is 413, announced or not, and the rest is not read', async () => {
    expect(await codeOf(readJson(post('"1234"', { 'Content-Length': '6' }), 5))).toBe('TOO_LARGE');
    let pulled = 0;
    let cancelled = false;
    const endless = new ReadableStream({
      pull(controller) {
        pulled++;
        controller.enqueue(new Uint8Array(1000));
      },
      cancel() {
        cancelled = true;
      },
    });
    const request = new Request('http://kinora.test/', {
      method: 'POST',
      body: endless,
      headers: { 'Content-Type': 'application/json' },
      duplex: 'half',
    } as RequestInit);
    expect(await codeOf(readJson(request, 2500))).toBe('TOO_LARGE');
    expect(cancelled).toBe(true);
    expect(pulled).toBeLessThan(10);
  });

  test('a body that breaks off is INVALID_JSON', async () => {
    const broken = new ReadableStream({
      pull(controller) {
        controller.error(new TypeError('terminated'));
      },
    });
    const request = new Request('http://kinora.test/', {
      method: 'POST',
      body: broken,
      headers: { 'Content-Type': 'application/json' },
      duplex: 'half',
    } as RequestInit);
    expect(await codeOf(readJson(request, 2500))).toBe('INVALID_JSON');
  });
});

describe('checking a value', () => {
  const detailsOf = (schema: z.ZodType, value: unknown) => {
    try {
      check(schema, value);
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      expect(error.code).toBe('INVALID_PARAMETER');
      return Object.fromEntries(error.details.map(({ field, message }) => [field, message]));
    }
  };
  const image = 'https://example.com/a.png';

  test('every wrong field is named with its range', () => {
    expect(
      detailsOf(submitSchema, {
        image: 5,
        prompt: '  ',
        negative_prompt: null,
        loras: [{ scale: 9 }, { path: '', scale: 'x' }],
        size: '640*480',
        num_inference_steps: 41,
        duration: 5.5,
        guidance_scale: '5',
        seed: 1e99,
        enable_sync_mode: 'yes',
      }),
    ).toEqual({
      image: 'image must be text.',
      prompt: 'The prompt is empty.',
      negative_prompt: 'negative_prompt must be text, not null.',
      'loras.0.path': 'loras.0.path is required.',
      'loras.0.scale': 'loras.0.scale must be a number from 0 to 4.',
      'loras.1.path': 'loras.1.path must not be empty.',
      'loras.1.scale': 'loras.1.scale must be a number from 0 to 4.',
      size: 'size must be one of 1280*720, 720*1280, auto.',
      num_inference_steps: 'num_inference_steps must be a whole number from 1 to 40.',
      duration: 'duration must be a whole number from 5 to 10.',
      guidance_scale: 'guidance_scale must be a number from 1 to 10.',
      seed: 'seed must be a whole number from -1 to 9999999999.',
      enable_sync_mode: 'enable_sync_mode must be true or false.',
    });
    expect(detailsOf(submitSchema, {})).toEqual({
      image: 'image is required.',
      prompt: 'prompt is required.',
    });
    expect(detailsOf(submitSchema, null)).toEqual({
      body: 'The body must be an object, not null.',
    });
    expect(detailsOf(listBodySchema, { page: 0, page_size: 101, status: 'done' })).toEqual({
      page: 'page must be at least 1.',
      page_size: 'page_size must be at most 100.',
      status: 'status must be one of created, processing, completed, failed, cancelled, timeout.',
    });
  });

  test('null in an optional field is no field, at any depth; a required one refuses it', () => {
    const nulls = Object.fromEntries(Object.keys(submitSchema.shape).map((name) => [name, null]));
    const loras = [{ path: 'a/b', scale: null, note: null }];
    const sent = { ...nulls, image, prompt: 'a', loras };
    expect(check(submitSchema, withoutNulls(submitSchema, sent))).toEqual(
      check(submitSchema, { image, prompt: 'a', loras: [{ path: 'a/b', scale: 1 }] }),
    );
    const wrong = { ...nulls, loras: [{ path: null, scale: null }, null] };
    expect(detailsOf(submitSchema, withoutNulls(submitSchema, wrong))).toEqual({
      image: 'image must be text, not null.',
      prompt: 'prompt must be text, not null.',
      'loras.0.path': 'loras.0.path must be text, not null.',
      'loras.1': 'loras.1 must be an object, not null.',
    });
    const nested = z.object({
      list: z.array(z.object({ a: z.object({ b: z.int().default(7) }).optional() })).nullable(),
      own: z.string().nullable().default('x'),
    });
    const deep = { list: [{ a: { b: null } }, { a: null }], own: null };
    expect(check(nested, withoutNulls(nested, deep))).toEqual({
      list: [{ a: { b: 7 } }, {}],
      own: 'x',
    });
  });

  test('the message names the first wrong field, and repeats at most 200 characters', () => {
    const wrong = () => check(submitSchema, { image, prompt: 'a', duration: 99, seed: -2 });
    expect(wrong).toThrow('duration must be a whole number from 5 to 10.');
    const name = 'x'.repeat(5000);
    const strict = z.strictObject({ a: z.string().optional() });
    const texts = Object.entries(detailsOf(strict, { [name]: 1 }) ?? {}).flat();
    const most = Math.max(...texts.map((text) => text.length));
    expect(most).toBeGreaterThan(50);
    expect(most).toBeLessThanOrEqual(200);
  });

  test('unknown fields are dropped, `__proto__` among them', () => {
    const sent: unknown = JSON.parse(
      `{"image":"${image}","prompt":"a","x":"\\u0000","__proto__":{"size":"720*1280"}}`,
    );
    const parsed = check(submitSchema, sent) as Record<string, unknown>;
    expect(Object.keys(parsed)).not.toContain('x');
    expect(parsed.size).toBe('1280*720');
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
  });

  test.each([
    ['NUL', 'a\u0000b'],
    ['half a surrogate pair', 'a\ud83db'],
  ])('%s, which PostgreSQL does not store, is refused in any field', (_, text) => {
    const loras = [{ path: text, scale: 1 }];
    expect(detailsOf(submitSchema, { image, prompt: text, loras })).toEqual({
      prompt: expect.stringContaining('U+0000'),
      'loras.0.path': expect.stringContaining('U+0000'),
    });
    expect(detailsOf(submitSchema, { image, prompt: 'a 🙂 b' })).toBeNull();
  });

  test('a value that is nested too deeply is refused', () => {
    const deep: unknown = JSON.parse(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
    const anything = z.record(z.string(), z.unknown());
    expect(detailsOf(anything, deep)).toEqual({ a: 'a is nested too deeply.' });
  });
});
