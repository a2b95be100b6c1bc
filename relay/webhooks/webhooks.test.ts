import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { and, eq, lte, sql } from 'drizzle-orm';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { userAgent } from '../../lib/contract/user-agent';
import { webhookBodySchema } from '../../lib/contract/v3';
import { createGuard } from '../guard/guard';
import { deliveries, type JobRow } from '../store/schema';
import { testCaller, testJob, testJobs } from '../testing/jobs';
import { startReceiver } from '../testing/receiver';
import { clearJobs, engines, withStore } from '../testing/store';
import { createOutbox } from './outbox';
import { insert, newDelivery, rowOf, testSecret, webhooksOn } from './testing/webhooks';
import type { Webhooks } from './webhooks';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Runs a delivery loop until the end of the test, or until it is stopped. */
function running(webhooks: Webhooks): { stop(): Promise<void> } {
  const stop = new AbortController();
  const ended = webhooks.run(stop.signal);
  const handle = {
    stop: () => {
      stop.abort();
      return ended;
    },
  };
  closers.push(handle.stop);
  return handle;
}

async function receiver(...given: Parameters<typeof startReceiver>) {
  const started = await startReceiver(...given);
  closers.push(started.close);
  return started;
}

const eventually = <T>(check: () => T | Promise<T>) =>
  vi.waitFor(check, { timeout: 50_000, interval: 10 });

for (const engine of engines) {
  withStore(engine, (fixture) => {
    beforeEach(() => clearJobs(fixture().store));
    /** What is not the database's. */
    const once = test.runIf(engine === 'pglite');

    test('only deliveries that ended long ago are removed', async () => {
      const { store } = fixture();
      const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
      const url = 'https://hooks.example.com/';
      const finished = (days: number, status: 'delivered' | 'exhausted') =>
        newDelivery(url, { status, createdAt: daysAgo(90), finishedAt: daysAgo(days) });
      const old = [finished(29, 'delivered'), finished(60, 'exhausted')];
      const kept = [
        finished(27, 'delivered'),
        finished(0, 'exhausted'),
        newDelivery(url, { createdAt: daysAgo(90), nextAt: daysAgo(-1) }),
      ];
      await store.db.insert(deliveries).values([...old, ...kept]);
      await webhooksOn(store).webhooks.sweep();
      const left = await store.db.select({ id: deliveries.id }).from(deliveries);
      expect(left.map(({ id }) => id).sort()).toEqual(kept.map(({ id }) => id).sort());
    });

    once('the outbox row of a finished job has the body of README.md', async () => {
      const { store } = fixture();
      const { webhooks } = webhooksOn(store);
      const webhookUrl = 'https://hooks.example.com/a?b=c';
      const job = await testJobs(store).submit(testJob(testCaller('ada'), { webhookUrl }));
      expect(
        webhooks.outboxRow({ ...job, status: 'completed', webhookUrl: null }, 'completed'),
      ).toBeNull();
      expect(webhooks.outboxRow({ ...job, status: 'processing' }, 'completed')).toBeNull();

      const done: JobRow = { ...job, status: 'completed', outputKey: 'outputs/a.mp4' };
      const row = webhooks.outboxRow(done, 'completed');
      if (!row) throw new Error('no row');
      expect(row).toMatchObject({ jobId: done.id, owner: 'ada', url: done.webhookUrl });
      expect(row.id).toMatch(/^msg_[0-9a-f]{32}$/);
      const body = JSON.parse(row.body);
      expect(webhookBodySchema.parse(body)).toEqual(body);
      expect(body).toMatchObject({
        id: done.id,
        input: done.input,
        outputs: ['https://kinora.example/outputs/a.mp4'],
        urls: { get: `https://kinora.example/api/v3/predictions/${done.id}/result` },
        has_nsfw_contents: [false],
        status: 'completed',
        created_at: done.createdAt.toISOString(),
        error: '',
      });
      await insert(store, row);
      expect(await rowOf(store, row.id)).toMatchObject({ status: 'due', attempts: 0 });

      const failed: JobRow = { ...job, status: 'failed', error: 'No GPU.', outputKey: 'x' };
      const failedBody = JSON.parse(webhooks.outboxRow(failed, 'completed')?.body ?? '');
      expect(webhookBodySchema.parse(failedBody)).toEqual(failedBody);
      expect(failedBody).toMatchObject({
        status: 'failed',
        error: 'No GPU.',
        has_nsfw_contents: [],
      });
      expect(failedBody).not.toHaveProperty('outputs');
    });

    once('a webhook arrives with signatures that three verifiers accept', async () => {
      const { store } = fixture();
      const { webhooks, outcomes } = webhooksOn(store);
      running(webhooks);
      const hook = await receiver((response) => response.end('thanks'));
      // Old enough that a timestamp of the row instead of the attempt would be refused.
      const row = newDelivery(`${hook.url}?a=b`, { createdAt: new Date(Date.now() - 3_600_000) });
      await insert(store, row);
      const [got] = await eventually(() => {
        expect(hook.received).toHaveLength(1);
        return hook.received;
      });
      if (!got) throw new Error('nothing arrived');
      const headers = got.headers as Record<string, string>;
      expect(got.body).toBe(row.body);
      expect(got.path).toBe('/hook?a=b');
      expect(headers).toMatchObject({
        'content-type': 'application/json',
        'user-agent': userAgent(),
        'webhook-id': row.id,
      });
      const svix = new SvixWebhook(testSecret);
      svix.verify(got.body, headers);
      expect(() => svix.verify(`${got.body} `, headers)).toThrow();
      new StandardWebhook(testSecret).verify(got.body, {
        'webhook-id': headers['svix-id'] ?? '',
        'webhook-timestamp': headers['svix-timestamp'] ?? '',
        'webhook-signature': headers['svix-signature'] ?? '',
      });
      const v3 = createHmac('sha256', testSecret.slice('whsec_'.length))
        .update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${got.body}`)
        .digest('hex');
      expect(headers['webhook-signature']).toBe(`v3,${v3}`);
      const after = await eventually(async () => {
        const now = await rowOf(store, row.id);
        expect(now.status).toBe('delivered');
        return now;
      });
      expect(after).toMatchObject({ attempts: 1, lastStatus: 200, lastAnswer: 'thanks' });
      expect(after.finishedAt).not.toBeNull();
      // Counted after it is written: another connection may see the row before.
      await eventually(() => expect(outcomes).toEqual(['delivered']));
    });

    once('a failure or a redirect is retried under the same id', async () => {
      const { store } = fixture();
      const { webhooks, outcomes } = webhooksOn(store);
      running(webhooks);
      const hook = await receiver((response, _, count) => {
        if (count === 1) response.writeHead(500).end('broken');
        else if (count === 2) response.writeHead(302, { location: '/elsewhere' }).end();
        else if (count === 3) response.destroy();
        else response.writeHead(204).end();
      });
      const row = newDelivery(hook.url);
      await insert(store, row);
      await eventually(async () => {
        expect(await rowOf(store, row.id)).toMatchObject({ status: 'delivered', attempts: 4 });
      });
      await eventually(() => expect(outcomes).toEqual(['retry', 'retry', 'retry', 'delivered']));
      expect(hook.received.map(({ path }) => path)).toEqual(['/hook', '/hook', '/hook', '/hook']);
      for (const { headers, body } of hook.received) {
        expect(headers['webhook-id']).toBe(row.id);
        new SvixWebhook(testSecret).verify(body, headers as Record<string, string>);
      }
    });

    test('one that fails four times is exhausted, and can be replayed', async () => {
      const { store } = fixture();
      const { webhooks, outcomes } = webhooksOn(store);
      running(webhooks);
      let well = false;
      const hook = await receiver((response) => response.writeHead(well ? 200 : 500).end());
      const row = newDelivery(hook.url);
      await insert(store, row);
      await eventually(async () => {
        expect(await rowOf(store, row.id)).toMatchObject({ status: 'exhausted', attempts: 4 });
      });
      await eventually(() => expect(outcomes).toEqual(['retry', 'retry', 'retry', 'exhausted']));
      const [listed] = await webhooks.list('ada', { page: 1, pageSize: 10, status: 'exhausted' });
      expect(listed).toMatchObject({ id: row.id, attempts: 4, next_at: null });

      await expect(webhooks.replay(row.id, 'bob')).rejects.toMatchObject({ code: 'NOT_FOUND' });
      well = true;
      const replayed = await webhooks.replay(row.id, 'ada');
      expect(replayed).toMatchObject({ id: row.id, status: 'due', attempts: 4, finished_at: null });
      await eventually(async () => {
        expect(await rowOf(store, row.id)).toMatchObject({
          status: 'delivered',
          attempts: 5,
          attemptsBefore: 4,
        });
      });
    });

    once('progress that did not arrive is not sent again', async () => {
      const { store } = fixture();
      running(webhooksOn(store).webhooks);
      const hook = await receiver((response) => response.writeHead(500).end());
      const row = newDelivery(hook.url, { event: 'progress' });
      await insert(store, row);
      await eventually(async () => {
        expect(await rowOf(store, row.id)).toMatchObject({ status: 'exhausted', attempts: 1 });
      });
    });

    once.each<[string, (response: ServerResponse) => void, number, object]>([
      ['410', (response) => response.writeHead(410).end('gone'), 15_000, { lastStatus: 410 }],
      [
        'no answer',
        () => undefined,
        60,
        { lastStatus: null, lastAnswer: '127.0.0.1 took too long to answer.' },
      ],
    ])('%s in the only attempt exhausts the delivery', async (_, answer, totalMs, recorded) => {
      const { store } = fixture();
      const { webhooks } = webhooksOn(store, { delays: [0], limits: { totalMs } });
      running(webhooks);
      const hook = await receiver(answer);
      const row = newDelivery(hook.url);
      await insert(store, row);
      await eventually(async () => {
        const expected = { status: 'exhausted', attempts: 1, ...recorded };
        expect(await rowOf(store, row.id)).toMatchObject(expected);
      });
    });

    once('Retry-After is followed up to 15 minutes', async () => {
      const { store } = fixture();
      const { webhooks } = webhooksOn(store);
      running(webhooks);
      const hook = await receiver((response, { path }) => {
        response.writeHead(503, { 'retry-after': path === '/hook' ? '600' : '100000' }).end();
      });
      const patient = newDelivery(hook.url);
      const stubborn = newDelivery(`${hook.url}/day`);
      await insert(store, patient, stubborn);
      await eventually(async () => {
        expect((await rowOf(store, patient.id)).attempts).toBe(1);
        expect((await rowOf(store, stubborn.id)).status).toBe('exhausted');
      });
      const { status, nextAt } = await rowOf(store, patient.id);
      expect(status).toBe('due');
      expect(nextAt.getTime() - Date.now()).toBeGreaterThan(550_000);
    });

    once('a long answer is cut, and NUL is left out', async () => {
      const { store } = fixture();
      const { webhooks } = webhooksOn(store);
      running(webhooks);
      let sent = 0;
      const hook = await receiver((response) => {
        response.write(`\0a${'ü'.repeat(600)}`);
        const more = (): void => {
          while (response.writable && response.write(Buffer.alloc(16_384))) sent += 16_384;
          response.once('drain', more);
        };
        more();
      });
      const row = newDelivery(hook.url);
      await insert(store, row);
      await eventually(async () => {
        expect((await rowOf(store, row.id)).status).toBe('delivered');
      });
      // 1,024 bytes: NUL, "a" and 511 of the two-byte letters.
      expect((await rowOf(store, row.id)).lastAnswer).toBe(`a${'ü'.repeat(511)}`);
      expect(sent).toBeLessThan(20_000_000);
    });

    once('an address that the guard refuses is a failed attempt with a reason', async () => {
      const { store } = fixture();
      const guard = createGuard({
        allowPrivate: false,
        lookup: async () => [{ address: '127.0.0.1', family: 4 }],
      });
      closers.push(() => guard.close());
      const { webhooks } = webhooksOn(store, { guard });
      running(webhooks);
      const hook = await receiver((response) => response.end());
      const row = newDelivery(`https://hooks.example.com:${hook.port}/`);
      await insert(store, row);
      await eventually(async () => {
        expect(await rowOf(store, row.id)).toMatchObject({
          status: 'exhausted',
          lastAnswer: 'hooks.example.com is not a host of the public internet.',
        });
      });
      expect(hook.connections()).toBe(0);
    });

    test('an attempt of a dead node is repeated, and its late result is refused', async () => {
      const { store } = fixture();
      const { webhooks } = webhooksOn(store);
      const hook = await receiver((response) => response.end());
      const row = newDelivery(hook.url, { nextAt: new Date(Date.now() - 1000) });
      await insert(store, row);
      const claim = { limit: 10, leaseMs: 60_000, underWay: new Map(), perHost: 8 };
      const [taken, ...others] = await createOutbox(store.db).claimDue(claim);
      if (!taken) throw new Error('not claimed');
      expect(others).toHaveLength(0);
      expect(await createOutbox(store.db).claimDue(claim)).toEqual([]);
      // A minute passes.
      await store.db.update(deliveries).set({ nextAt: new Date(Date.now() - 1) });
      running(webhooks);
      await eventually(async () => {
        expect(await rowOf(store, row.id)).toMatchObject({ status: 'delivered', attempts: 1 });
      });
      const last = { lastStatus: 500, lastAnswer: '' };
      const late = { ...last, status: 'exhausted', attempts: 1, delayMs: null } as const;
      expect(await createOutbox(store.db).settle(taken, late)).toBe(false);
      expect((await rowOf(store, row.id)).status).toBe('delivered');
    });

    test('two loops on one database deliver each webhook once', { tags: ['full'] }, async () => {
      const { store } = fixture();
      const hook = await receiver((response) => response.end());
      const rows = Array.from({ length: 60 }, () => newDelivery(hook.url));
      const nodes = [webhooksOn(store), webhooksOn(store)];
      for (const { webhooks } of nodes) running(webhooks);
      await insert(store, ...rows);
      await eventually(async () => {
        const due = await store.db.select().from(deliveries).where(eq(deliveries.status, 'due'));
        expect(due).toHaveLength(0);
      });
      const ids = hook.received.map(({ headers }) => headers['webhook-id']);
      expect(new Set(ids)).toEqual(new Set(rows.map(({ id }) => id)));
      expect(ids).toHaveLength(rows.length);
    });

    test('a receiver that does not answer delays no other', async () => {
      const { store } = fixture();
      const { webhooks } = webhooksOn(store, {
        // None of the dead one's attempts ends by itself.
        limits: { concurrency: 6, perHost: 4, totalMs: 600_000 },
        stopSeconds: 0.01,
      });
      const dead = await receiver(() => undefined);
      const alive = await receiver((response) => response.end());
      const past = (ms: number) => new Date(Date.now() - ms);
      const deadRows = Array.from({ length: 30 }, () =>
        newDelivery(dead.url, { nextAt: past(60_000) }),
      );
      const rows = Array.from({ length: 10 }, () => newDelivery(alive.url, { nextAt: past(1000) }));
      await insert(store, ...deadRows, ...rows);
      const loop = running(webhooks);
      await eventually(() => expect(alive.received).toHaveLength(10));
      expect(dead.connections()).toBeLessThanOrEqual(4);

      // What a stop breaks off has lost no attempt and is due for the next node.
      await loop.stop();
      const dueNow = and(eq(deliveries.status, 'due'), lte(deliveries.nextAt, sql`now()`));
      await eventually(async () => {
        // A look, not a claim: what a claim took would not be due at the next look. A time is kept in
        // whole milliseconds, so that "now" may lie half of one ahead.
        const left = await store.db.select().from(deliveries).where(dueNow);
        expect(left).toHaveLength(30);
        expect(left.every(({ attempts }) => attempts === 0)).toBe(true);
      });
      const claim = { limit: 100, leaseMs: 60_000, underWay: new Map(), perHost: 100 };
      expect(await createOutbox(store.db).claimDue(claim)).toHaveLength(30);
    });

    test('a stop waits for running attempts and starts no new ones', async () => {
      const { store } = fixture();
      const { webhooks } = webhooksOn(store, { limits: { perHost: 1 }, stopSeconds: 30 });
      let answer = () => {};
      const hook = await receiver((response) => {
        answer = () => response.end();
      });
      const [first, second] = [newDelivery(hook.url), newDelivery(hook.url)];
      const loop = running(webhooks);
      await insert(store, first, second);
      await eventually(() => expect(hook.received).toHaveLength(1));
      const stopped = loop.stop();
      answer();
      await stopped;
      const statuses = [await rowOf(store, first.id), await rowOf(store, second.id)];
      expect(statuses.map(({ status }) => status).sort()).toEqual(['delivered', 'due']);
      expect(hook.received).toHaveLength(1);
    });

    test('lists are of one owner, newest first, page by page', async () => {
      const { store } = fixture();
      const { webhooks } = webhooksOn(store);
      const at = (second: number) => ({ createdAt: new Date(Date.UTC(2030, 0, 1, 0, 0, second)) });
      const rows = [1, 2, 3].map((second) => newDelivery('https://a.example.com/', at(second)));
      const other = newDelivery('https://a.example.com/', { owner: 'bob' });
      await store.db.insert(deliveries).values([...rows, other]);
      const list = async (page: number) =>
        (await webhooks.list('ada', { page, pageSize: 2 })).map(({ id }) => id);
      expect(await list(1)).toEqual([rows[2]?.id, rows[1]?.id]);
      expect(await list(2)).toEqual([rows[0]?.id]);
      expect(await webhooks.list('ada', { page: 1, pageSize: 2, status: 'exhausted' })).toEqual([]);
      const [bobs] = await webhooks.list('bob', { page: 1, pageSize: 2 });
      expect(bobs).toMatchObject({ id: other.id, prediction_id: other.jobId, status: 'due' });
    });

    once('an address is checked at submission', () => {
      const guard = createGuard({ allowPrivate: false });
      closers.push(() => guard.close());
      const { webhooks } = webhooksOn(fixture().store, { guard });
      expect(webhooks.checkUrl('https://Hooks.example.com:8443/a?b=c')).toBe(
        'https://hooks.example.com:8443/a?b=c',
      );
      for (const url of ['', 'http://hooks.example.com/', 'https://127.0.0.1/', 'https://a']) {
        expect(() => webhooks.checkUrl(url)).toThrow(
          expect.objectContaining({ code: 'INVALID_WEBHOOK', status: 400 }),
        );
      }
    });
  });
}
