import { PGlite } from '@electric-sql/pglite';
import { eq } from 'drizzle-orm';
import { describe, expect, test, vi } from 'vitest';
import {
  type Applied,
  promptOptimizationSchema,
  type Safety,
  safetySchema,
} from '../../../lib/contract';
import { endpoints } from '../../../lib/contract/v3';
import { createHeldClaims, createWatches, type HeldClaims } from '../../jobs';
import { deliveries } from '../../store/schema';
import { declarationOf, submission } from '../../testing/api';
import {
  api,
  claim,
  claimed,
  complete,
  completionOf,
  key,
  model,
  result,
  submit,
  token,
  upload,
  video,
  withApiOwner,
  work,
} from '../../testing/api-owner';
import { clearSafety } from '../../testing/jobs';
import { requestOf } from '../../testing/requests';
import { answer } from '../answer';
import { describeJob } from './describe';

withApiOwner();

const lost = { status: 409, json: { error_code: 'LEASE_LOST' } };

describe('claiming', () => {
  test('gives a job with everything that it needs, and an explicit seed', async () => {
    const loras = [
      { path: 'owner/style', scale: 1 },
      { path: 'https://example.com/a.safetensors', scale: 0.5 },
    ];
    const last_image = submission.image;
    const last = { last_image, last_image_at: 2.5 };
    const { id } = await submit({ ...submission, ...last, seed: -1, loras });
    // The adapter that is a link is looked at in the background, which does not run here.
    const row = await api.relay.jobs.get(id);
    if (row) await api.relay.jobs.intakeDone(id, row.loras);
    const job = await claimed();
    expect(job).toMatchObject({
      id,
      attempt: 1,
      lease_token: expect.any(String),
      heartbeat_interval_ms: 2000,
      model: 'kinora/wan-2.2/i2v-720p-lora',
      parameters: { prompt: 'a boat', duration: 5, size: '1280*720', last_image_at: 2.5, loras },
      enable_prompt_optimizer: false,
      enable_safety_checker: true,
      image: {
        url: expect.stringMatching(/^\/files\/jobs\/.+signature=/),
        type: 'image/png',
        bytes: expect.any(Number),
      },
      last_image: { url: expect.stringMatching(/\/last_image\?.+signature=/), type: 'image/png' },
      loras: [
        { path: 'owner/style', scale: 1, from: 'hub', repository: 'owner/style', file: null },
        { scale: 0.5, from: 'relay', url: expect.stringMatching(/^\/files\/jobs\/.+signature=/) },
      ],
    });
    expect(job.parameters.seed).toBeGreaterThanOrEqual(0);
    expect(Date.parse(job.lease_until)).toBeGreaterThan(Date.now());
    expect(Object.keys(job.parameters).sort()).toEqual(
      ['prompt', 'negative_prompt', 'loras', 'size', 'num_inference_steps', 'duration']
        .concat(['guidance_scale', 'flow_shift', 'seed', 'last_image_at'])
        .sort(),
    );
  });

  test('without a job says why', async () => {
    await submit();
    expect(await claim({ model: 'another' })).toEqual({
      job: null,
      skipped: { model: 1 },
      retry_after_ms: 0,
    });
    const foreign = await api.workerToken('somebody-else', true);
    expect((await claim({}, foreign)).job).toBeNull();
    expect(await api.send('GET', '/api/worker/me', { key: token })).toMatchObject({
      json: {
        data: {
          waiting: 1,
          shared: false,
          accepts_models: expect.arrayContaining(['wan2.2-ti2v-5b', 'mini']),
        },
      },
    });
    expect((await api.send('GET', '/api/worker/me', { key: foreign })).json.data.waiting).toBe(0);
  });

  test('a node that is being stopped gives no job, and ends held claims and answers', async () => {
    const stopping = new AbortController();
    const { store, jobs, workers, log } = api.relay;
    const signal = { stopping: stopping.signal };
    const heldClaims = createHeldClaims({ store, jobs, workers, log, ...signal });
    const watches = createWatches({ store, jobs, stopping: stopping.signal });
    const relay = { ...api.relay, stopping: stopping.signal, heldClaims, watches };
    const { id } = await submit();
    const send = (method: string, path: string, as: string, body?: object) =>
      answer(relay, requestOf(method, `http://localhost${path}`, { key: as, body }));
    const sync = send('POST', model, key, { ...submission, enable_sync_mode: true });
    const waiting = send('GET', `/api/v3/predictions/${id}/result?wait=8`, key);
    const events = await send('GET', `/api/v3/predictions/${id}/events`, key);
    const text = events.text();
    const held = send('POST', '/api/worker/claim', token, declarationOf({ model: 'another' }));
    await expect.poll(() => heldClaims.count, { timeout: 20_000 }).toBe(1);
    stopping.abort();
    expect((await held).status).toBe(503);
    expect(await (await sync).json()).toMatchObject({ data: { code: 5004 } });
    expect(await (await waiting).json()).toMatchObject({ data: { status: 'created' } });
    expect(await text).toContain('retry:');
    const refused = await send('POST', '/api/worker/claim', token, declarationOf());
    expect(await refused.json()).toMatchObject({ error_code: 'SHUTTING_DOWN' });
    expect((await result(id)).status).toBe('created');
  });

  /** A claim whose connection the test may cut. */
  const claimCut = (client: AbortSignal, declaration = declarationOf()) => {
    const sent = { key: token, body: declaration };
    const request = requestOf('POST', 'http://localhost/api/worker/claim', sent);
    Object.defineProperty(request, 'signal', { value: client });
    return answer(api.relay, request);
  };

  test('a job whose worker has disconnected is released', async () => {
    const { id } = await submit();
    await claimCut(AbortSignal.abort());
    expect((await result(id)).status).toBe('created');
    expect((await claimed()).attempt).toBe(1);
  });

  test('claims that come together cost no query each, and their workers are written together', async () => {
    const { owner } = await api.relay.keys.authenticate(`Bearer ${token}`, 'worker');
    const client = '$client' in api.relay.store.db ? api.relay.store.db.$client : null;
    if (!(client instanceof PGlite)) throw new Error('It is no embedded database.');
    const queries = vi.spyOn(client, 'query');
    await Promise.all(Array.from({ length: 200 }, () => claim()));
    // Memory of a few seconds may end on a busy machine.
    expect(queries.mock.calls.length).toBeLessThan(20);
    expect(await api.relay.workers.list(owner)).toHaveLength(200);
    queries.mockRestore();
  });

  test('claims that come together are held for times that differ', async () => {
    const times: number[] = [];
    const heldClaims: HeldClaims = {
      ...api.relay.heldClaims,
      claim: async (_request, ms) => {
        times.push(ms);
        return null;
      },
    };
    const relay = { ...api.relay, heldClaims };
    const sent = { key: token, body: declarationOf() };
    const address = 'http://localhost/api/worker/claim';
    for (let n = 0; n < 20; n += 1) await answer(relay, requestOf('POST', address, sent));
    expect(Math.min(...times)).toBeGreaterThanOrEqual(15_000);
    expect(Math.max(...times)).toBeLessThanOrEqual(25_000);
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(2000);
  });

  test('the list of workers follows from claims and heartbeats', async () => {
    const { owner } = await api.relay.keys.authenticate(`Bearer ${token}`, 'worker');
    const states = async () => (await api.relay.workers.list(owner)).map(({ state }) => state);
    expect(await states()).toEqual([]);
    const declaration = declarationOf();
    const client = new AbortController();
    const cut = claimCut(client.signal, declaration);
    await expect.poll(states, { timeout: 20_000 }).toEqual(['idle']);
    await expect.poll(() => api.relay.heldClaims.count, { timeout: 20_000 }).toBe(1);
    client.abort();
    await cut;
    expect(await states()).toEqual([]);
    expect(api.relay.heldClaims.count).toBe(0);

    const paused = { ...declaration, paused: true, wait_seconds: 0 };
    await submit();
    expect((await work('claim', paused)).json.data).toMatchObject({ job: null, skipped: {} });
    expect(await states()).toEqual(['paused']);
    await work('claim', declaration);
    expect(await states()).toEqual(['busy']);
  });
});

describe('a lease', () => {
  test('is extended by heartbeats, and refused to other tokens and after a cancel', async () => {
    const { id } = await submit();
    const job = await claimed();
    const { lease_token } = job;
    const heartbeat = await work(`jobs/${id}/heartbeat`, {
      lease_token,
      phase: 'denoise',
      step: 3,
      steps: 9,
    });
    expect(heartbeat.status).toBe(200);
    expect(Date.parse(heartbeat.json.data.lease_until)).toBeGreaterThanOrEqual(
      Date.parse(job.lease_until),
    );
    const asked = await work(`jobs/${id}/lease`, { lease_token });
    expect(asked.json.data).toEqual(heartbeat.json.data);
    // Another token of the same owner does not have it.
    const { owner } = await api.relay.keys.authenticate(`Bearer ${token}`, 'worker');
    const other = await api.workerToken(owner);
    const calls = [
      ['lease', { lease_token }],
      ['heartbeat', { lease_token, step: 4, steps: 9 }],
      ['release', { lease_token }],
      ['fail', { lease_token, code: 'X', message: 'x', retryable: true }],
      ['complete', completionOf(job)],
    ] as const;
    const expectLost = async (as = token) => {
      for (const [what, body] of calls) {
        expect(await work(`jobs/${id}/${what}`, body, as)).toMatchObject(lost);
      }
    };
    await expectLost(other);
    await api.send('POST', `/api/v3/predictions/${id}/cancel`, { key });
    await expectLost();
  });

  test.each([
    ['LORA_WRONG_BASE', 1401],
    ['PROMPT_REFUSED', 1200],
  ])('the failure %s ends the prediction with the worker’s message and %i', async (code, told) => {
    const { id } = await submit();
    const { lease_token } = await claimed();
    const failure = { code, message: 'It does not fit.', retryable: false };
    expect((await work(`jobs/${id}/fail`, { lease_token, ...failure })).json.data).toEqual({
      status: 'failed',
    });
    expect(await result(id)).toMatchObject({
      status: 'failed',
      error: 'It does not fit.',
      code: told,
      outputs: [],
      has_nsfw_contents: [],
    });
  });
});

describe('completing', () => {
  test('makes the video the output; the same completion again is no error', async () => {
    const { id } = await submit();
    const job = await claimed();
    expect(await work(`jobs/${id}/complete`, completionOf(job))).toMatchObject({ status: 409 });
    const done = await complete(job);
    expect(done).toMatchObject({ status: 200, json: { data: { status: 'completed' } } });
    expect(await work(`jobs/${id}/complete`, completionOf(job))).toMatchObject({
      status: 200,
      json: { data: { status: 'completed' } },
    });
    const prediction = await result(id);
    expect(prediction).toMatchObject({
      status: 'completed',
      has_nsfw_contents: [false],
      error: '',
      timings: { inference: 1234 },
    });
    expect(prediction).not.toHaveProperty('applied');
    expect(prediction.outputs).toEqual([expect.stringMatching(/^https:\/\/kinora\.test\/files\//)]);
    expect(prediction).not.toHaveProperty('queue_position');
    endpoints.result.answer.parse({ code: 200, message: 'success', data: prediction });
    // Another file under the same lease, after the end
    const other = { ...completionOf(job), sha256: 'f'.repeat(64) };
    expect(await work(`jobs/${id}/complete`, other)).toMatchObject(lost);
    const outputKey = (await api.relay.jobs.get(id))?.outputKey ?? '';
    expect(await api.relay.files.blobs.stat(outputKey)).not.toBeNull();
    const removed = await api.send('POST', '/api/v3/predictions/delete', {
      key,
      body: { ids: [id] },
    });
    expect(removed.json.data).toEqual({ deleted_count: 1 });
    expect(await api.relay.files.blobs.stat(outputKey)).toBeNull();
  });

  test('refuses a picture that is no JPEG, and leaves the lease as it is', async () => {
    await submit();
    const job = await claimed();
    const poster = Buffer.from('no picture').toString('base64');
    expect(await complete(job, { pictures: { poster } })).toMatchObject({
      status: 400,
      json: { error_code: 'INVALID_PARAMETER', details: [{ field: 'poster' }] },
    });
    expect(await complete(job)).toMatchObject({ status: 200 });
  });

  test('tells sampling and decoding apart, and what was applied, where the worker told it', async () => {
    const applied = {
      steps: 3,
      guidance_scale: 1,
      guided_steps: 0,
      scheduler: 'few-step',
      flow_shift: null,
      timesteps: [1000, 757, 522],
      adapter: { name: 'Turbo', licence: { name: 'CC BY-NC-SA 4.0', commercial: false } },
      decoder: 'tiny',
      cache: 'none',
      unused: ['num_inference_steps'],
    } satisfies Applied;
    const { id } = await submit();
    const job = await claimed();
    const told = { sampling_ms: 1000, decode_ms: 200, applied };
    expect(await complete(job, told)).toMatchObject({ status: 200 });
    const prediction = await result(id);
    expect(prediction).toMatchObject({
      timings: { inference: 1234, sampling: 1000, decode: 200 },
      applied,
    });
    endpoints.result.answer.parse({ code: 200, message: 'success', data: prediction });
  });

  test('a file that is not the requested video is refused, and the lease stays', async () => {
    const { id } = await submit();
    const job = await claimed();
    await upload(job, video.slice(0, video.length - 500));
    expect(await work(`jobs/${id}/complete`, completionOf(job))).toMatchObject({
      status: 422,
      json: { error_code: 'OUTPUT_REJECTED' },
    });
    expect((await work(`jobs/${id}/heartbeat`, { lease_token: job.lease_token })).status).toBe(200);
    expect((await complete(job)).status).toBe(200);
  });

  const flagged = { ...clearSafety, status: 'flagged', score: 0.9 } as const;
  const failed = safetySchema.parse({ status: 'unverified', reason: 'failed' });
  test.each<[flag: boolean, Safety]>([
    [false, clearSafety],
    [true, flagged],
    [true, failed],
    [false, { ...clearSafety, score: 0.55, threshold: 0.6 }],
  ])('result, list, events and webhook agree: %s for %o', async (flag, safety) => {
    const webhook = `${model}?webhook=https://93.184.215.14/hook`;
    const { id } = (await api.send('POST', webhook, { key, body: submission })).json.data;
    const { status, reason, score, model: checker, sha256: checkerSha256 } = safety;
    expect((await complete(await claimed(), { safety })).status).toBe(200);
    const told = {
      has_nsfw_contents: [flag],
      safety: { status, ...(reason && { reason }), score, model: checker, sha256: checkerSha256 },
    };
    expect(await result(id)).toMatchObject(told);
    const listed = await api.send('POST', '/api/v3/predictions', { key, body: {} });
    expect(listed.json.data.items).toMatchObject([{ id, ...told }]);
    const events = await api.open(`/api/v3/predictions/${id}/events`, key);
    expect(await events.text()).toContain(JSON.stringify(told.safety));
    const [delivery] = await api.relay.store.db
      .select()
      .from(deliveries)
      .where(eq(deliveries.jobId, id));
    expect(JSON.parse(delivery?.body ?? '')).toMatchObject(told);
    // The whole record is stored, with the worker that reported it.
    const row = await api.relay.jobs.get(id);
    expect(row).toMatchObject({ safety: status, safetyRecord: safety });
    expect([row?.workerId, row?.workerToken]).toEqual([expect.any(String), expect.any(String)]);
  });

  test('a report that contradicts the job is refused, and the lease stays', async () => {
    await submit();
    const job = await claimed();
    const safety = safetySchema.parse({ status: 'off' });
    expect(await complete(job, { safety })).toMatchObject({
      status: 400,
      json: { error_code: 'INVALID_PARAMETER', details: [{ field: 'safety.status' }] },
    });
    expect((await complete(job)).status).toBe(200);
  });

  test('tells the optimised prompt where it was asked for, and keeps the prompt as it was sent', async () => {
    const { id } = await submit({ ...submission, enable_prompt_optimizer: true });
    const record = promptOptimizationSchema.parse({
      status: 'used',
      original: submission.prompt,
      text: 'A boat drifts past; the camera holds still.',
      model: 'A model',
      sha256: 'd'.repeat(64),
      seed: 7,
    });
    expect(await result(id)).not.toHaveProperty('optimized_prompt');
    await complete(await claimed(), { prompt_optimization: record });
    const told = {
      optimized_prompt: record.text,
      prompt_optimization: { status: 'used', model: 'A model', sha256: record.sha256, seed: 7 },
    };
    expect(await result(id)).toMatchObject(told);
    const list = async (include_inputs: boolean) => {
      const body = { include_inputs };
      return (await api.send('POST', '/api/v3/predictions', { key, body })).json.data.items[0];
    };
    expect(await list(true)).toMatchObject({ ...told, input: { prompt: submission.prompt } });
    expect(await list(false)).not.toHaveProperty('optimized_prompt');
    const plain = await submit();
    await complete(await claimed());
    expect(await result(plain.id)).not.toHaveProperty('optimized_prompt');
  });

  test('an output that has expired is not linked, and the prediction says so', async () => {
    const { id } = await submit();
    await complete(await claimed());
    const row = await api.relay.jobs.get(id);
    if (!row) throw new Error('The job is gone.');
    const expired = { ...row, outputExpiresAt: new Date(Date.now() - 1000) };
    expect(await describeJob(api.relay, expired)).toMatchObject({
      status: 'completed',
      outputs: [],
      has_nsfw_contents: [],
      error: expect.stringContaining('expired'),
    });
  });
});

describe('events', () => {
  /** Reads events as they come. */
  async function* eventsOf(response: Response): AsyncGenerator<{ type: string; data: unknown }> {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      const parts = text.split('\n\n');
      text = parts.pop() ?? '';
      for (const part of parts) {
        const [, type = '', data = 'null'] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? [];
        if (type !== '') yield { type, data: JSON.parse(data) as unknown };
      }
    }
  }

  test('are the state at once, then steps and previews, then the terminal status', async () => {
    const { id } = await submit();
    const response = await api.open(`/api/v3/predictions/${id}/events`, key);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const events = eventsOf(response);
    const next = async () => (await events.next()).value;
    expect(await next()).toMatchObject({
      type: 'status',
      data: { prediction: { id, status: 'created', queue_position: 0 } },
    });
    const job = await claimed();
    expect(await next()).toMatchObject({
      type: 'status',
      data: { prediction: { status: 'processing' } },
    });
    const image = 'data:image/webp;base64,AAAA';
    const { lease_token } = job;
    const heartbeat = {
      lease_token,
      phase: 'denoise',
      step: 2,
      steps: 30,
      seconds_remaining: 61.5,
    };
    await work(`jobs/${id}/heartbeat`, { ...heartbeat, preview: image });
    const two = [await next(), await next()];
    expect(two).toContainEqual({
      type: 'step',
      data: { phase: 'denoise', step: 2, steps: 30, seconds_remaining: 61.5 },
    });
    expect(two).toContainEqual({ type: 'preview', data: { step: 2, image } });
    // A later reader gets state, step and preview at once.
    const late = eventsOf(await api.open(`/api/v3/predictions/${id}/events`, key));
    const heard: (string | undefined)[] = [];
    for (let i = 0; i < 3; i++) heard.push((await late.next()).value?.type);
    expect(heard).toEqual(['status', 'step', 'preview']);
    await complete(job);
    for (const stream of [events, late]) {
      expect((await stream.next()).value).toMatchObject({
        type: 'status',
        data: { prediction: { status: 'completed', outputs: [expect.any(String)] } },
      });
      expect((await stream.next()).done).toBe(true);
    }
  });

  test('end when the client disconnects, and remove their listeners', async () => {
    const { id } = await submit();
    const response = await api.open(`/api/v3/predictions/${id}/events`, key);
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.read();
    await reader?.cancel();
    const client = new AbortController();
    const cut = await api.open(`/api/v3/predictions/${id}/events`, key, client.signal);
    const text = cut.text().catch(() => 'cut');
    client.abort();
    await text;
    await expect.poll(() => api.relay.watches.count, { timeout: 20_000 }).toBe(0);
  });

  test('reach each of many readers', async () => {
    const { id } = await submit();
    const texts = Array.from({ length: 30 }, async () =>
      (await api.open(`/api/v3/predictions/${id}/events`, key)).text(),
    );
    await expect.poll(() => api.relay.watches.count, { timeout: 20_000 }).toBe(1);
    await api.send('POST', `/api/v3/predictions/${id}/cancel`, { key });
    for (const text of await Promise.all(texts)) expect(text).toContain('cancelled by user');
  });

  test('of another owner’s prediction are not found', async () => {
    const { id } = await submit();
    const foreign = await api.key('somebody-else');
    expect((await api.open(`/api/v3/predictions/${id}/events`, foreign)).status).toBe(404);
  });
});
