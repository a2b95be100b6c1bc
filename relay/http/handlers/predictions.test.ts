import { eq, sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { type ApiPrediction, type WorkerJob, webhookBodySchema } from '../../../lib/contract/v3';
import { deliveries } from '../../store/schema';
import { submission } from '../../testing/api';
import {
  api,
  claim,
  claimed,
  complete,
  key,
  model,
  result,
  send,
  submit,
  video,
  withApiOwner,
  work,
} from '../../testing/api-owner';

const hook = `${model}?webhook=https://93.184.215.14/hook`;
withApiOwner();

const listed = async (): Promise<ApiPrediction[]> =>
  (await api.send('GET', '/api/v3/predictions?include_inputs=true', { key })).json.data.items;
const heartbeat = ({ id, lease_token }: WorkerJob, more: object = {}) =>
  work(`jobs/${id}/heartbeat`, { lease_token, ...more });
/** Webhooks of a job in the outbox. */
const webhooksOf = async (id: string) => {
  const rows = await api.relay.store.db.select().from(deliveries).where(eq(deliveries.jobId, id));
  return rows.map(({ body, ...row }) => ({
    ...row,
    body: webhookBodySchema.parse(JSON.parse(body)),
  }));
};

test('the seed that is used is told from the submission on, in result, list and webhook', async () => {
  const { id, seed, input } = await submit({ ...submission, seed: -1 }, hook);
  expect(seed).toBeGreaterThanOrEqual(0);
  expect(input).toMatchObject({ seed: -1, prompt: submission.prompt });
  const first = await claimed();
  await work(`jobs/${id}/release`, { lease_token: first.lease_token });
  const second = await claimed();
  expect([first.parameters.seed, second.parameters.seed]).toEqual([seed, seed]);
  await complete(second);
  const told = { seed, input: { seed: -1 } };
  expect(await result(id)).toMatchObject(told);
  expect(await listed()).toMatchObject([told]);
  expect(await webhooksOf(id)).toMatchObject([{ body: told }]);
});

test('the progress of the running attempt is told; a cancelled prediction has its own code', async () => {
  const { id, progress } = await submit(submission, hook);
  expect(progress).toBeNull();
  const job = await claimed();
  expect((await result(id)).progress).toBeNull();
  const told = { phase: 'denoise', step: 3, steps: 30, seconds_remaining: 81.5 };
  const events = await api.open(`/api/v3/predictions/${id}/events`, key);
  await heartbeat(job, told);
  expect(await result(id)).toMatchObject({ status: 'processing', progress: told });
  await api.send('POST', `/api/v3/predictions/${id}/cancel`, { key });
  // A step is no new status: one event when it runs, or none as this one was read late, and one at the end.
  expect((await events.text()).match(/^event: status$/gm)?.length).toBeLessThanOrEqual(2);
  expect(await result(id)).toMatchObject({ status: 'failed', code: 1499, progress: null });
  expect(await webhooksOf(id)).toMatchObject([{ body: { status: 'failed', code: 1499 } }]);
});

test('a waiting prediction says for what, and the models say how many workers serve them', async () => {
  const serving = async () =>
    (await api.send('GET', '/api/v3/models', { key })).json.data.map(
      (entry: { workers: number }) => entry.workers,
    );
  const linked = await submit({ ...submission, image: 'https://93.184.215.14/a.png' });
  expect(linked).toMatchObject({ waiting_for: 'files' });
  const { id } = await submit({ ...submission, duration: 8 });
  expect(await result(id)).toMatchObject({ waiting_for: 'worker', queue_position: 0 });
  expect(await serving()).toEqual([0, 0, 0, 0, 0, 0]);
  // One that is connected, and takes only shorter videos.
  expect((await claim({ max_duration: 5 })).job).toBeNull();
  expect(await result(id)).toMatchObject({ waiting_for: 'worker' });
  expect(await serving()).toEqual([1, 1, 1, 1, 1, 1]);

  const next = await submit();
  expect((await claimed()).id).toBe(id);
  expect(await result(id)).toMatchObject({ status: 'processing', waiting_for: null });
  // An owner's queue is read once a second.
  await expect
    .poll(() => result(next.id), { timeout: 10_000 })
    .toMatchObject({ waiting_for: 'queue', queue_position: 0 });
  expect((await listed()).map(({ waiting_for }) => waiting_for)).toEqual(['queue', null, 'files']);
});

describe('enable_base64_output', () => {
  const asked = { ...submission, enable_base64_output: true };

  test('gives the video itself in result and synchronous answer, and its URL in lists', async () => {
    const held = submit({ ...asked, enable_sync_mode: true });
    await expect.poll(async () => (await listed()).length, { timeout: 20_000 }).toBe(1);
    const job = await claimed();
    expect(job.parameters).not.toHaveProperty('enable_base64_output');
    await complete(job);
    for (const { status, outputs, input } of [await held, await result(job.id)]) {
      expect({ status, count: outputs.length }).toEqual({ status: 'completed', count: 1 });
      expect(outputs[0]).toBe(Buffer.from(video).toString('base64'));
      expect(input).toMatchObject({ prompt: submission.prompt, enable_base64_output: true });
    }
    expect((await listed())[0]?.outputs).toEqual([expect.stringMatching(/^https:/)]);
    const limited = { ...api.relay.config, KINORA_MAX_BASE64_BYTES: video.length - 1 };
    const { answer } = await import('../answer');
    const large = await answer(
      { ...api.relay, config: limited },
      new Request(`http://localhost/api/v3/predictions/${job.id}/result`, {
        headers: { Authorization: `Bearer ${key}` },
      }),
    );
    expect(await large.json()).toMatchObject({
      data: {
        status: 'completed',
        outputs: [expect.stringMatching(/^https:/)],
        error: expect.stringContaining('outputs has its URL'),
      },
    });
  });

  test('is refused together with a webhook', async () => {
    expect(await send(asked, hook)).toMatchObject({
      status: 400,
      json: { message: expect.stringMatching(/^enable_base64_output cannot/) },
    });
    expect(await listed()).toEqual([]);
  });
});

describe('webhook_events', () => {
  test('without it exactly one webhook is sent, without fields of events', async () => {
    const { id } = await submit(submission, hook);
    const job = await claimed();
    await heartbeat(job, { step: 1 });
    await complete(job);
    const [webhook, ...others] = await webhooksOf(id);
    expect(others).toEqual([]);
    expect(webhook?.body.status).toBe('completed');
    expect(webhook?.body).not.toHaveProperty('event');
    expect(webhook?.body).not.toHaveProperty('progress');
    expect(webhook?.body.input).not.toHaveProperty('webhook_events');
  });

  test('start, progress at most every 10 seconds, and the end', async () => {
    const webhook_events = ['start', 'progress', 'completed'];
    const { id } = await submit({ ...submission, webhook_events }, hook);
    expect(await webhooksOf(id)).toEqual([]);
    const first = await claimed();
    expect(await webhooksOf(id)).toMatchObject([
      { event: 'start', body: { event: 'start', status: 'processing', input: { webhook_events } } },
    ]);
    const progress = async () => (await webhooksOf(id)).find(({ event }) => event === 'progress');
    await heartbeat(first, { step: 1, steps: 30 });
    const earlier = await progress();
    expect(earlier?.body).toMatchObject({ event: 'progress', progress: { step: 1, steps: 30 } });
    await heartbeat(first, { step: 2, steps: 30 });
    expect(await progress()).toEqual(earlier);
    await api.relay.store.db
      .update(deliveries)
      .set({ status: 'exhausted', createdAt: sql`now() - interval '10 seconds'` })
      .where(eq(deliveries.id, earlier?.id ?? ''));
    await heartbeat(first, { step: 3, steps: 30 });
    const later = await progress();
    expect(later).toMatchObject({ status: 'due', body: { progress: { step: 3 } } });
    // Another message has another id: receivers drop an id that they know.
    expect(later?.id).not.toBe(earlier?.id);

    await work(`jobs/${id}/release`, { lease_token: first.lease_token });
    await complete(await claimed());
    const all = await webhooksOf(id);
    expect(all.map(({ event }) => event).toSorted()).toEqual(['completed', 'progress', 'start']);
    expect(all.find(({ event }) => event === 'completed')?.body).toMatchObject({
      event: 'completed',
      status: 'completed',
      outputs: [expect.any(String)],
    });
  });

  test('the end alone may be left out; no event, an unknown one, and no webhook are refused', async () => {
    const { id } = await submit({ ...submission, webhook_events: ['start'] }, hook);
    await complete(await claimed());
    expect(await webhooksOf(id)).toMatchObject([{ event: 'start' }]);
    for (const webhook_events of [[], ['end'], 'start']) {
      expect((await send({ ...submission, webhook_events }, hook)).status).toBe(400);
    }
    expect(await send({ ...submission, webhook_events: ['start'] })).toMatchObject({
      status: 400,
      json: { message: expect.stringMatching(/^webhook_events needs a webhook\./) },
    });
  });
});
