/** @module-tag full */

import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { twoTransformerModels } from '../../lib/contract';
import { refusedFields } from '../../lib/contract/v3';
import { onePixel } from '../testing/api';
import { clientHeaders, type RecordedSubmission, recorded } from '../testing/recorded-requests';
import { startTestRelay, type TestRelay } from '../testing/server';

/** Requests that unmodified public clients and scripts send, against the running server. */
let node: TestRelay;
beforeAll(async () => {
  node = await startTestRelay();
}, 60_000);
afterAll(() => node?.stop());

const image = onePixel;
const model = '/api/v3/kinora/wan-2.2/i2v-720p-lora';
const hosted = '/api/v3/wavespeed-ai/wan-2.2/i2v-720p';
const send = (method: string, path: string, body?: unknown, headers = {}) =>
  node.send(method, path, { key: node.apiKey, body, headers });
const submit = (body: object, path = model) =>
  send('POST', path, { image, prompt: 'a boat', ...body });
const one = (start: string): RecordedSubmission => {
  const found = recorded.find(({ client }) => client.startsWith(start));
  if (!found) throw new Error(`There is no request of ${start}.`);
  return found;
};

/** The job of a recorded request, sent with the headers of its client. */
async function jobOf({ client, path, body }: RecordedSubmission) {
  const [name = ''] = client.split(':');
  const headers = Object.hasOwn(clientHeaders, name)
    ? clientHeaders[name as keyof typeof clientHeaders]
    : {};
  const { status, json } = await send('POST', path, { image, prompt: 'a boat', ...body }, headers);
  expect(status, json.message).toBe(200);
  const job = await node.relay.jobs.get(json.data.id);
  if (!job) throw new Error('The job is gone.');
  const result = await send('GET', `/api/v3/predictions/${job.id}/result`, undefined, headers);
  expect(result.json.data).toMatchObject({ id: job.id, outputs: [] });
  return job;
}

test.each(recorded.map((request) => [request.client, request] as const))(
  'is taken and read as its client expects: %s',
  async (_, request) => {
    const job = await jobOf(request);
    expect(`/${job.model}`).toBe(request.path.replace(/^\/api\/v\d|\?.*$/g, ''));
    expect(job.input).not.toHaveProperty('last_image');
  },
);

test('a webhook in the body or the name of the model is called', async () => {
  for (const start of ['wavespeed: run with the webhook', 'a script with its webhook']) {
    expect((await jobOf(one(start))).webhookUrl).toBe('http://127.0.0.1:9/hook');
  }
  const two = await submit({
    webhook: 'http://127.0.0.1:9/a',
    webhook_url: 'http://127.0.0.1:9/b',
  });
  expect(two).toMatchObject({ status: 400, json: { details: [{ field: 'webhook_url' }] } });
});

test('names of the 5B are served by models with one transformer, others of its family by the A14B first', async () => {
  const { models } = await jobOf(one('langchain-wavespeed'));
  expect(models).toEqual(['wan2.2-ti2v-5b', 'mini']);
  expect((await jobOf(one('wavespeed: run_no_throw'))).models[0]).toBe('wan2.2-i2v-a14b');
});

describe('LoRAs for high and for low noise', () => {
  test('go to their transformers, on workers that have two', async () => {
    const { loras, models, input } = await jobOf(one('a script that pairs LoRAs'));
    expect(models).toEqual(twoTransformerModels);
    expect(loras).toMatchObject([
      { path: 'owner/name/first.safetensors', scale: 1, noise: 'high' },
      { path: 'owner/name/second.safetensors', scale: 0.5, noise: 'low' },
    ]);
    expect(input.loras.map(({ noise }) => noise)).toEqual(['high', 'low']);
  });

  test('may be three for each, beside which there is no fourth', async () => {
    const three = ['a/a', 'a/b', 'a/c'].map((path) => ({ path }));
    const pairs = { high_noise_loras: three, low_noise_loras: three };
    expect((await submit(pairs, hosted)).status).toBe(200);
    const four = await submit({ ...pairs, loras: [{ path: 'a/d' }] }, hosted);
    expect(four).toMatchObject({ status: 400, json: { details: [{ field: 'loras' }] } });
  });

  test('are named in an error as their sender has them', async () => {
    for (const [bad, sentence] of [
      [{ path: 'a/b', scale: 9 }, 'high_noise_loras.1.scale must'],
      [{ path: 'a/b/c.txt' }, 'high_noise_loras.1.path must name'],
    ] as const) {
      const body = { loras: [{ path: 'a/a' }], high_noise_loras: [{ path: 'a/c' }, bad] };
      const { status, json } = await submit(body, hosted);
      expect(status).toBe(400);
      expect(json.message).toContain(sentence);
      const [field] = sentence.split(' ');
      expect(json.details).toMatchObject([{ field, message: expect.stringContaining(sentence) }]);
    }
  });

  test('are for models with two transformers of the family alone', async () => {
    const own = await startTestRelay({
      settings: { KINORA_FAMILIES: 'kinora/wan-2.2=wan2.2-ti2v-5b' },
    });
    try {
      const body = { image, prompt: 'a boat', high_noise_loras: [{ path: 'a/b' }] };
      const { status, json } = await own.send('POST', model, { key: own.apiKey, body });
      expect(status).toBe(400);
      expect(json.message).toContain('has one transformer');
    } finally {
      await own.stop();
    }
  });

  test('are refused where the model has one', async () => {
    const body = { low_noise_loras: [{ path: 'a/b' }] };
    for (const path of [hosted.replace('i2v-', 'i2v-5b-'), hosted.replace('2.2', '2.1')]) {
      const { status, json } = await submit(body, path);
      expect(status).toBe(400);
      expect(json.message).toContain('has one transformer');
    }
    expect((await submit({ low_noise_loras: [] })).status).toBe(200);
  });

  test('the models with two are those that have a second transformer', () => {
    const folder = new URL('../../public/models/', import.meta.url);
    const ids = readdirSync(folder)
      .filter((name) => name.endsWith('.json') && name !== 'index.json')
      .map((name) => JSON.parse(readFileSync(new URL(name, folder), 'utf8')))
      .filter((manifest) => JSON.stringify(manifest).includes('"transformer_2"'))
      .map(({ id }) => id);
    expect(twoTransformerModels).toEqual(ids);
  });
});

describe('the size', () => {
  /** A GIF of one frame; decoders read no further than its header here. */
  const gif = (width: number, height: number) => {
    const bytes = Buffer.from('R0lGODdhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=', 'base64');
    for (const at of [6, 24]) {
      bytes.writeUInt16LE(width, at);
      bytes.writeUInt16LE(height, at + 2);
    }
    return `data:image/gif;base64,${bytes.toString('base64')}`;
  };
  const sizeOf = async (body: object, path = model) => {
    const { status, json } = await submit(body, path);
    expect(status, json.message).toBe(200);
    const read = async () => await node.relay.jobs.get(json.data.id);
    await expect.poll(async () => (await read())?.ready, { timeout: 20_000 }).toBe(true);
    const job = await read();
    expect(job?.input.size).toBe(job?.size);
    return job?.size;
  };

  test('is that of the image where the hosted model has no such field, or `auto` asks for it', async () => {
    expect(await sizeOf({ image: gif(9, 16) }, hosted)).toBe('720*1280');
    expect(await sizeOf({ image: gif(16, 9) }, hosted)).toBe('1280*720');
    expect(await sizeOf({ image: gif(9, 16), size: '1280*720' }, hosted)).toBe('1280*720');
    expect(await sizeOf({ image: gif(9, 16) })).toBe('1280*720');
    expect(await sizeOf({ image: gif(9, 16), size: 'auto' })).toBe('720*1280');
    expect(await sizeOf({ image: gif(9, 16), aspect_ratio: 'auto' })).toBe('720*1280');
  });

  test('is named by aspect_ratio and resolution too', async () => {
    expect((await jobOf(one('a provider of an AI SDK'))).size).toBe('720*1280');
    expect(await sizeOf({ aspect_ratio: '16:9', resolution: '1280x720' }, hosted)).toBe('1280*720');
    expect(await sizeOf({ resolution: '720x1280' })).toBe('720*1280');
  });

  test.each([
    ['aspect_ratio', { aspect_ratio: '1:1' }],
    ['aspect_ratio', { aspect_ratio: '9:16', size: '1280*720' }],
    ['aspect_ratio', { aspect_ratio: { toString: 1 } }],
    ['resolution', { resolution: '1080p' }],
    ['resolution', { resolution: '480p' }],
    ['resolution', { resolution: '720x1280', size: '1280*720' }],
  ])('is refused with the field that cannot be had: %s %o', async (field, body) => {
    const { status, json } = await submit(body);
    expect(status).toBe(400);
    expect(json.details).toMatchObject([{ field }]);
  });
});

test('a field that means something elsewhere is refused by name, with what to do; empty it asks for nothing', async () => {
  for (const [names, remedy] of Object.entries(refusedFields)) {
    for (const field of names.split(' ')) {
      const { status, json } = await submit({ [field]: 'x' });
      expect(status, field).toBe(400);
      expect(json.details).toMatchObject([{ field }]);
      expect(json.message).toContain(remedy);
    }
  }
  const empty = Object.keys(refusedFields)
    .flatMap((names) => names.split(' '))
    .map((name) => [name, null]);
  const neutral = { n: 1, output_format: 'mp4', audio: false, acceleration: 'none', lora: [] };
  expect((await submit({ ...Object.fromEntries(empty), ...neutral })).status).toBe(200);
});

test('states of other servers have an empty page', async () => {
  for (const status of ['cancelled', 'timeout']) {
    const page = { page: 1, items: [], next_cursor: null, total: 0 };
    const body = { status, page: 1, page_size: 5, include_total: true };
    const { json } = await send('POST', '/api/v3/predictions', body);
    expect(json.data).toEqual(page);
    expect((await send('GET', `/api/v3/predictions?status=${status}`)).json.data.items).toEqual([]);
  }
});

test('billings and usage are honestly empty', async () => {
  const search = { page: 2, page_size: 10, prediction_uuids: ['0'.repeat(32)] };
  const billings = await send('POST', '/api/v3/billings/search', search);
  expect(billings.json.data).toEqual({ page: 2, total: 0, items: [] });
  const range = { start_date: '2024-01-01', end_date: '2026-01-01', per_model_usage: false };
  for (const [method, body] of [
    ['GET', undefined],
    ['POST', range],
  ] as const) {
    const { json } = await send(method, '/api/v3/user/usage_stats', body);
    expect(json.data).toMatchObject({ per_model_usage: [], daily_usage: [] });
  }
});

test('an upload of wavespeed 2.0.5: a ticket, its bytes without the key, then a submission', async () => {
  const bytes = Buffer.from(onePixel.slice(onePixel.indexOf(',')), 'base64');
  const file = { filename: 'still.png', size: bytes.length, content_type: 'image/png' };
  const ticket = await send('POST', '/api/v3/media/uploads', file, clientHeaders.wavespeed);
  const { upload, download_url } = ticket.json.data;
  const { headers, method, url } = upload;
  expect((await fetch(url, { method, headers, body: bytes })).status).toBe(200);
  const { status, json } = await submit({ image: download_url }, hosted);
  expect(status, json.message).toBe(200);
});

test('what langchain and llama-index read of a refusal is in its message', async () => {
  // Their tools for videos send no image.
  const body = { prompt: 'A drone shot', duration: 5 };
  const { status, json } = await send('POST', model, body, clientHeaders['langchain-wavespeed']);
  expect(status).toBe(400);
  expect(json.message).toContain('image is required.');
  const headers = clientHeaders['llama-index-tools-wavespeed'];
  const gone = await send('GET', '/api/v3/predictions/nope/result', undefined, headers);
  expect(gone).toMatchObject({ status: 404, json: { error_code: 'NOT_FOUND' } });
});
