import { eq, sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { claimSchema, listBodySchema, type WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { createLog } from '../observe/log';
import { deliveries, jobs as jobsTable, previews, workers as workersTable } from '../store/schema';
import {
  fillQueue,
  testCaller,
  testHeartbeat,
  testJob,
  testJobs,
  testResult,
  testWorker,
} from '../testing/jobs';
import { clearJobs, engines, withStore } from '../testing/store';
import type { Jobs } from './index';
import { createWorkers } from './workers';

const ada = testCaller('ada');
const bob = testCaller('bob');
const adasWorker = testCaller('ada', { keyId: 'token-ada' });
const lost = { code: 'LEASE_LOST' };

describe.each(engines)('jobs', (engine) => {
  withStore(engine, (fixture) => {
    let jobs: Jobs;
    beforeEach(async () => {
      await clearJobs(fixture().store);
      jobs = testJobs(fixture().store);
    });
    /** A claim as a worker sees it: a job, or why there is none. */
    const claim = async (caller = adasWorker, worker = testWorker()) => {
      const job = await jobs.claimNext(caller, worker);
      return { job, skipped: job ? {} : await jobs.skippedFor(caller, worker) };
    };
    const claimOne = async (caller = adasWorker, worker = testWorker()) => {
      const { job } = await claim(caller, worker);
      if (!job) throw new Error('No job was given.');
      return { id: job.id, token: job.leaseToken, job };
    };
    /** Puts a time of a running job into the past, by the database's clock. */
    const overdue = (column: 'lease_until' | 'deadline', id: string) =>
      fixture().store.db.execute(
        sql`update jobs set ${sql.identifier(column)} = now() - interval '1 second' where id = ${id}`,
      );

    it('answers a submission with the stored row', async () => {
      const submitted = await Promise.all([
        jobs.submit(testJob(ada, { webhookUrl: 'https://example.com/', input: { seed: 7 } })),
        jobs.submit(testJob(ada, { ready: false, image: null })),
        jobs.submit(testJob({ ...bob, shared: true }, { input: { size: '720*1280' } })),
      ]);
      for (const row of submitted) expect(await jobs.get(row.id)).toEqual(row);
      expect(submitted[0].seed).toBe(7);
      expect(await jobs.get(submitted[0].id, 'bob')).toBeNull();
    });

    it('reads what is asked for at once together, and gives each its own', async () => {
      const [first, second] = await Promise.all([
        jobs.submit(testJob(ada)),
        jobs.submit(testJob(bob)),
      ]);
      const missing = '0'.repeat(32);
      const asked = [first.id, second.id, missing, 'no-id', first.id];
      const found = await Promise.all(asked.map((id) => jobs.get(id, 'ada')));
      expect(found).toEqual([first, null, null, null, first]);

      // A read that begins after a change sees it, also beside one that began before.
      const before = jobs.get(first.id);
      await jobs.cancel(first.id, 'ada');
      const after = await jobs.get(first.id);
      expect(after?.status).toBe('failed');
      expect((await before)?.id).toBe(first.id);
    });

    it('holds the limit of a key, also for submissions at once', async () => {
      jobs = testJobs(fixture().store, { KINORA_JOBS_PER_KEY: 3 });
      const all = await Promise.allSettled(
        Array.from({ length: 8 }, () => jobs.submit(testJob(ada))),
      );
      expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
      const refused = all.find(({ status }) => status === 'rejected');
      expect(refused).toMatchObject({ reason: { code: 'TOO_MANY_JOBS' } });
      await jobs.submit(testJob(bob));
      expect(await jobs.unfinishedOf(ada.keyId)).toBe(3);

      const { id, token } = await claimOne();
      await jobs.complete(id, token, testResult());
      await jobs.submit(testJob(ada));
      await expect(jobs.submit(testJob(ada))).rejects.toMatchObject({ code: 'TOO_MANY_JOBS' });
      // 0 means no limit.
      await testJobs(fixture().store, { KINORA_JOBS_PER_KEY: 0 }).submit(testJob(ada));
      expect(await jobs.unfinishedOf(ada.keyId)).toBe(3);
    });

    it('refuses an id that is taken, does not count it, and reports no prompt', async () => {
      jobs = testJobs(fixture().store, { KINORA_JOBS_PER_KEY: 2 });
      const job = testJob(ada);
      await jobs.submit(job);
      const err: unknown = await jobs.submit(job).catch((thrown) => thrown);
      let logged = '';
      createLog({ KINORA_LOG: 'info' }, { write: (line) => (logged += line) }).error(
        { err },
        'refused',
      );
      expect(logged).toMatch(/duplicate key/);
      expect(logged).not.toContain('A boat');
      await jobs.submit(testJob(ada));
      await expect(jobs.submit(testJob(ada))).rejects.toMatchObject({ code: 'TOO_MANY_JOBS' });
    });

    it('gives the oldest job first, and each to one worker', async () => {
      const submitted = [];
      for (let count = 0; count < 4; count++) {
        submitted.push((await jobs.submit(testJob(ada))).id);
        await fixture().store.db.execute(sql`select pg_sleep(0.002)`);
      }
      expect(await Promise.all(submitted.map(async (id) => place(id)))).toEqual([0, 1, 2, 3]);
      expect((await claimOne()).id).toBe(submitted[0]);
      const rest = await Promise.all(Array.from({ length: 6 }, () => claim()));
      const given = rest.flatMap(({ job }) => job?.id ?? []);
      expect(given.sort()).toEqual(submitted.slice(1).sort());
    });
    const place = async (id: string) => {
      const job = await jobs.get(id);
      return job ? jobs.position(job) : -1;
    };

    it('gives shared jobs to shared workers only, after their own', async () => {
      const shared = await jobs.submit(testJob({ ...bob, shared: true }));
      await jobs.submit(testJob(bob));
      const own = await jobs.submit(testJob(ada));
      const sharing = { ...adasWorker, shared: true };
      expect((await claimOne(sharing)).id).toBe(own.id);
      expect(await claim()).toEqual({ job: null, skipped: {} });
      expect((await claimOne(sharing)).id).toBe(shared.id);
      expect((await claim(sharing, testWorker())).job).toBeNull();
    });

    it('says why nothing was given', async () => {
      jobs = testJobs(fixture().store, { KINORA_SERVING_PRECISIONS: ['f32'] });
      const lora = { path: 'a/b', scale: 1, from: 'hub', repository: 'a/b', file: null } as const;
      await jobs.submit(testJob(ada, { loras: [lora] }));
      await jobs.submit(testJob(ada, { input: { size: '720*1280' } }));
      await jobs.submit(testJob(ada, { input: { duration: 8 } }));
      await jobs.submit(testJob(ada, { input: { upscale: 2 } }));
      await jobs.submit(testJob(ada, { ready: false }));
      const lacks = { sizes: ['1280*720' as const], loras: false, knows: ['loop', 'last_image'] };
      const narrow = testWorker({ ...lacks, max_duration: 5 });
      expect(await claim(adasWorker, narrow)).toEqual({
        job: null,
        skipped: { loras: 1, size: 1, duration: 1, needs: 1, 'not-ready': 1 },
      });
      const other = await claim(adasWorker, testWorker({ model: 'else' }));
      expect(other.skipped).toEqual({ model: 4, 'not-ready': 1 });
      const eighth = await claim(adasWorker, testWorker({ precision: 'int8' }));
      expect(eighth.skipped).toEqual({ precision: 4, 'not-ready': 1 });
    });

    it('gives a job with LoRAs to workers that they fit; one that names none of their needs takes neither', async () => {
      const lora = { path: 'a/b', scale: 1, from: 'hub', repository: 'a/b', file: null } as const;
      const parsed = (worker: object) => claimSchema.parse({ ...testWorker(), ...worker });
      const [other, small, large] = [
        parsed({ knows: ['loop'] }),
        parsed({ knows: ['lora_5b'] }),
        parsed({ knows: ['lora_14b'] }),
      ];
      await jobs.submit(testJob(ada, { loras: [{ ...lora, need: 'lora_14b' }] }));
      expect((await claim(adasWorker, other)).skipped).toEqual({ needs: 1 });
      expect((await claim(adasWorker, small)).skipped).toEqual({ needs: 1 });
      expect((await claimOne(adasWorker, large)).job.needs).toEqual(['lora_14b']);
      await jobs.submit(testJob(ada, { loras: [{ ...lora, need: 'lora_5b' }] }));
      expect((await claim(adasWorker, large)).skipped).toEqual({ needs: 1 });
      expect((await claim(adasWorker, other)).skipped).toEqual({ needs: 1 });
      await claimOne(adasWorker, small);
      await jobs.submit(testJob(ada, { loras: [{ ...lora, need: null }] }));
      await claimOne(adasWorker, large);
    });

    it('gives a job to the model that its family names first, where a worker with it is idle', async () => {
      jobs = testJobs(fixture().store, {
        KINORA_FAMILIES: ['kinora/wan-2.2=others', 'kinora/wan-2.1=large+others'],
        KINORA_SERVING_MODELS: ['mini', 'else'],
      });
      const family = { model: 'kinora/wan-2.1/i2v-720p-lora' };
      const large = testWorker({ model: 'large' });
      const workers = createWorkers(fixture().store);
      const see = async (state: 'idle' | 'busy') => {
        workers.seen(adasWorker, large, state);
        await workers.flush();
      };
      await see('idle');
      const { id } = await jobs.submit(testJob(ada, family));
      expect(await claim()).toEqual({ job: null, skipped: { preferred: 1 } });
      expect((await claimOne(adasWorker, large)).id).toBe(id);
      await see('busy');
      await jobs.submit(testJob(ada, family));
      await claimOne();
      // A family that names none before the others waits for none, and has not that model.
      await see('idle');
      await jobs.submit(testJob(ada));
      expect((await claim(adasWorker, large)).skipped).toEqual({ model: 1 });
      await claimOne();
    });

    it('gives a job that asks for the check to workers that have the checker', async () => {
      const checked = await jobs.submit(testJob(ada));
      const none = testWorker({ safety_checker: 'none' });
      expect(await claim(adasWorker, none)).toEqual({ job: null, skipped: { checker: 1 } });
      const unchecked = await jobs.submit(
        testJob(ada, { input: { enable_safety_checker: false } }),
      );
      expect((await claimOne(adasWorker, none)).id).toBe(unchecked.id);
      const demonstration = testWorker({ safety_checker: 'demonstration' });
      expect((await claimOne(adasWorker, demonstration)).id).toBe(checked.id);
    });

    it('gives a job that asks for an optimised prompt to a worker with a language model, if one is connected', async () => {
      const { store } = fixture();
      const workers = createWorkers(store);
      const plain = testWorker({ prompt_optimizer: false });
      const { id } = await jobs.submit(testJob(ada, { input: { enable_prompt_optimizer: true } }));
      /** Whether a worker without one is given the job while another worker is connected. */
      const isGiven = async (caller: Caller, worker: WorkerDeclaration, state?: 'paused') => {
        await store.db.delete(workersTable);
        workers.seen(caller, worker, state ?? 'busy');
        await workers.flush();
        const { job, skipped } = await claim(adasWorker, plain);
        if (job) await jobs.release(job.id, job.leaseToken);
        expect(skipped).toEqual(job ? {} : { optimizer: 1 });
        return job !== null;
      };
      expect(await isGiven(adasWorker, testWorker())).toBe(false);
      expect(await isGiven(adasWorker, testWorker(), 'paused')).toBe(true);
      // One that may not take the job does not keep it from others.
      expect(await isGiven(testCaller('bob'), testWorker())).toBe(true);
      for (const unfit of [
        { prompt_optimizer: false },
        { model: 'else' },
        { sizes: ['720*1280'] },
        { safety_checker: 'none' },
      ] satisfies Partial<WorkerDeclaration>[]) {
        expect(await isGiven(adasWorker, testWorker(unfit)), JSON.stringify(unfit)).toBe(true);
      }
      const able = testWorker();
      expect(await isGiven(adasWorker, able)).toBe(false);
      const failed = await claimOne(adasWorker, able);
      await jobs.fail(failed.id, failed.token, failure(true));
      await later(6);
      expect((await claimOne(adasWorker, plain)).id).toBe(id);
      await jobs.release(id, (await jobs.get(id))?.leaseToken ?? '');
      expect(await isGiven(adasWorker, testWorker())).toBe(false);
      await store.db.execute(sql`update workers set seen_at = now() - interval '61 seconds'`);
      expect((await claimOne(adasWorker, plain)).id).toBe(id);
    });

    it('finds what waits behind any number of jobs that do not fit', async () => {
      await fillQueue(fixture().store, 1010);
      const bench = testCaller('bench');
      const upright = testWorker({ sizes: ['720*1280'] });
      // Counted no further, whatever the length of the queue.
      expect(await claim(bench, upright)).toEqual({ job: null, skipped: { size: 1000 } });
      const last = await jobs.submit(testJob(bench, { input: { size: '720*1280' } }));
      expect((await claim(bench, upright)).job?.id).toBe(last.id);
    });

    it('takes any model where the configuration says so', async () => {
      jobs = testJobs(fixture().store, { KINORA_SERVING_MODELS: ['*'] });
      const { id } = await jobs.submit(testJob(ada));
      expect((await claimOne(adasWorker, testWorker({ model: 'else' }))).id).toBe(id);
    });

    it('completes with the webhook in one transaction, and the same again', async () => {
      await jobs.submit(testJob(ada, { webhookUrl: 'https://example.com/' }));
      const { id, token } = await claimOne();
      await expect(jobs.complete(id, 'stale', testResult())).rejects.toMatchObject(lost);
      const done = await jobs.complete(id, token, testResult());
      expect(done).toMatchObject({ status: 'completed', inferenceMs: 1500, outputBytes: 1000 });
      expect(await jobs.complete(id, token, testResult())).toEqual(done);
      const other = testResult('b'.repeat(64));
      await expect(jobs.complete(id, token, other)).rejects.toMatchObject(lost);
      await expect(jobs.heartbeat(id, token, testHeartbeat)).rejects.toMatchObject(lost);
      expect(await fixture().store.db.select().from(deliveries)).toMatchObject([
        { jobId: id, body: 'completed' },
      ]);
      expect(await jobs.cancel(id, 'ada')).toEqual(done);
    });

    it('undoes the terminal status when the webhook cannot be written', async () => {
      await jobs.submit(testJob(ada, { webhookUrl: 'https://example.com/' }));
      const { id, token } = await claimOne();
      await fixture().store.db.execute(
        sql`update jobs set webhook_url = repeat('x', 10) where id = ${id}`,
      );
      await fixture().store.db.execute(
        sql`alter table deliveries add constraint refuse check (length(url) > 10)`,
      );
      try {
        await expect(jobs.complete(id, token, testResult())).rejects.toMatchObject({
          cause: { message: expect.stringMatching(/refuse/) },
        });
      } finally {
        await fixture().store.db.execute(sql`alter table deliveries drop constraint refuse`);
      }
      expect((await jobs.get(id))?.status).toBe('processing');
      expect((await jobs.complete(id, token, testResult())).status).toBe('completed');
    });

    it('extends a lease with heartbeats, and ends expired leases and passed deadlines', async () => {
      await jobs.submit(testJob(ada));
      const first = await claimOne();
      await overdue('lease_until', first.id);
      await jobs.heartbeat(first.id, first.token, { ...testHeartbeat, phase: 'denoise', step: 4 });
      expect(await jobs.sweep()).toEqual({ requeued: 0, failed: 0 });
      expect((await jobs.lease(first.id, first.token)).progress).toMatchObject({ step: 4 });
      await overdue('lease_until', first.id);
      expect(await jobs.sweep()).toEqual({ requeued: 1, failed: 0 });
      await expect(jobs.lease(first.id, first.token)).rejects.toMatchObject(lost);
      const second = await claimOne();
      expect(second.job).toMatchObject({ attempt: 2, progress: null });
      await overdue('deadline', second.id);
      expect(await jobs.sweep()).toEqual({ requeued: 1, failed: 0 });
      const third = await claimOne();
      await overdue('lease_until', third.id);
      expect(await jobs.sweep()).toEqual({ requeued: 0, failed: 1 });
      expect(await jobs.get(third.id)).toMatchObject({ status: 'failed', code: 5003, attempt: 3 });
      await expect(jobs.fail(first.id, first.token, failure(true))).rejects.toMatchObject(lost);
    });
    /** As if the latest failures were so long ago. */
    const later = (seconds: number) =>
      fixture().store.db.execute(
        sql`update jobs set failed_at = failed_at - make_interval(secs => ${seconds})`,
      );
    const failure = (retryable: boolean) => ({
      code: 'DEVICE_LOST',
      message: 'The GPU was lost.',
      retryable,
    });

    it('retries after a retryable failure, and counts no attempt for a release', async () => {
      await jobs.submit(testJob(ada));
      const first = await claimOne();
      expect((await jobs.fail(first.id, first.token, failure(true))).status).toBe('created');
      await later(6);
      const second = await claimOne();
      expect((await jobs.release(second.id, second.token)).attempt).toBe(1);
      const third = await claimOne();
      expect(third.job.attempt).toBe(2);
      expect(await jobs.fail(third.id, third.token, failure(false))).toMatchObject({
        status: 'failed',
        error: 'The GPU was lost.',
        code: 1403,
      });
    });

    it('gives a job that failed to another worker first, and not at once', async () => {
      await jobs.submit(testJob(ada));
      const [broken, sound] = [testWorker(), testWorker()];
      const first = await claimOne(adasWorker, broken);
      await jobs.fail(first.id, first.token, failure(true));
      const nothing = { job: null, skipped: { 'back-off': 1 } };
      expect(await claim(adasWorker, sound)).toEqual(nothing);
      await later(6);
      const asked = await Promise.all(
        [testWorker({ loras: false }), broken, broken, sound, broken].map((worker) =>
          claim(adasWorker, { ...worker, model: worker.loras ? 'mini' : 'else' }),
        ),
      );
      expect(asked.map(({ job }) => job?.workerId)).toEqual([
        undefined,
        undefined,
        undefined,
        sound.worker_id,
        undefined,
      ]);
      await jobs.fail(first.id, asked[3]?.job?.leaseToken ?? 'no job', failure(true));
      await later(6);
      // The second wait is longer.
      expect(await claim(adasWorker, broken)).toEqual(nothing);
      await later(5);
      const third = await claimOne(adasWorker, broken);
      await jobs.release(third.id, third.token);
      expect(await claim(adasWorker, sound)).toEqual(nothing);
      await later(20);
      expect((await claimOne(adasWorker, sound)).id).toBe(first.id);
    });

    it('shares the fetching of images between owners and hosts', async () => {
      const waiting = (owner: typeof ada, image: string) =>
        jobs.submit(testJob(owner, { ready: false, image: null, input: { image } }));
      const hanging = [];
      for (let count = 0; count < 20; count += 1) {
        hanging.push(await waiting(ada, `https://slow.example/${count}.png`));
      }
      const quick = await waiting(ada, 'https://quick.example/a.png');
      const bobs = await waiting(bob, 'https://slow.example/b.png');
      expect((await jobs.takeIntake(2, 60)).map(({ owner }) => owner).sort()).toEqual([
        'ada',
        'bob',
      ]);
      const taken = await jobs.takeIntake(16, 60);
      expect(taken).toHaveLength(2);
      expect(taken.map(({ id }) => id)).toContain(quick.id);
      expect(await jobs.takeIntake(16, 60)).toEqual([]);
      // A place that is given back, at no cost, is taken again.
      const held = async () => (await jobs.get(bobs.id)) ?? bobs;
      await jobs.intakeReturned(await held(), 60);
      expect(await jobs.get(bobs.id)).toMatchObject({ intakeAttempts: 0, ready: false });
      expect(await jobs.takeIntake(16, 60)).toEqual([]);
      await jobs.intakeReturned(await held(), 0);
      expect(await jobs.takeIntake(16, 60)).toMatchObject([{ id: bobs.id, intakeAttempts: 1 }]);
      for (let host = 0; host < 20; host += 1) await waiting(bob, `https://h${host}.example/a`);
      expect(await jobs.takeIntake(16, 60)).toHaveLength(7);
    });

    it('returns the latest preview while the job runs', async () => {
      await jobs.submit(testJob(ada));
      const { id, token } = await claimOne();
      const preview = 'data:image/png;base64,AAAA';
      await jobs.heartbeat(id, token, { ...testHeartbeat, preview });
      await jobs.heartbeat(id, token, { ...testHeartbeat, step: 2, preview });
      expect(await jobs.preview(id)).toEqual({ step: 2, image: preview });
      await jobs.release(id, token);
      expect(await jobs.preview(id)).toBeNull();
      expect(await fixture().store.db.select().from(previews)).toEqual([]);
    });

    it('cancels at once, and refuses the next heartbeat of the worker', async () => {
      const waiting = await jobs.submit(testJob(ada));
      expect(await jobs.cancel(waiting.id, 'bob')).toBeNull();
      expect(await jobs.cancel(waiting.id, 'ada')).toMatchObject({
        status: 'failed',
        code: 1499,
        error: 'cancelled by user',
      });
      await jobs.submit(testJob(ada));
      const { id, token } = await claimOne();
      await jobs.cancel(id, 'ada');
      await expect(jobs.heartbeat(id, token, testHeartbeat)).rejects.toMatchObject(lost);
      await expect(jobs.complete(id, token, testResult())).rejects.toMatchObject(lost);
    });

    it('assigns the fetching of images to one node at a time, and fails a job after five attempts', async () => {
      const { id } = await jobs.submit(testJob(ada, { ready: false, image: null }));
      expect((await claim()).job).toBeNull();
      expect(await jobs.takeIntake(10, 60)).toMatchObject([{ id, intakeAttempts: 1 }]);
      expect(await jobs.takeIntake(10, 60)).toEqual([]);
      const image = { key: 'images/b.png', type: 'image/png', bytes: 5 };
      expect(await jobs.imageStored(id, { image })).toMatchObject({ ready: false, image });
      expect(await jobs.intakeDone(id, [])).toMatchObject({ ready: true, image });
      expect(await jobs.imageStored(id, { image })).toBeNull();
      expect(await jobs.intakeDone(id, [])).toBeNull();

      await jobs.submit(testJob(ada, { ready: false, image: null }));
      const [gone] = await jobs.takeIntake(10, 60);
      expect(gone && (await jobs.intakeFailed(gone, 'It answered 404.'))).toMatchObject({
        status: 'failed',
        code: 1402,
        error: 'It answered 404.',
      });
      const poisoned = await jobs.submit(testJob(ada, { ready: false, image: null }));
      await fixture()
        .store.db.update(jobsTable)
        .set({ intakeAttempts: 5, intakeUntil: new Date(0) })
        .where(eq(jobsTable.id, poisoned.id));
      expect(await jobs.takeIntake(10, 60)).toEqual([]);
      expect(await jobs.sweep()).toEqual({ requeued: 0, failed: 1 });
    });

    it('refuses a node that fails or returns a job after another node took it over or finished it', async () => {
      const { id } = await jobs.submit(testJob(ada, { ready: false, image: null }));
      const take = async () => {
        const [taken] = await jobs.takeIntake(10, 60);
        if (!taken) throw new Error('Nothing was taken.');
        return taken;
      };
      const early = await take();
      await fixture()
        .store.db.update(jobsTable)
        .set({ intakeUntil: new Date(0) })
        .where(eq(jobsTable.id, id));
      const late = await take();
      const unchanged = async () => expect(await jobs.get(id)).toEqual(late);
      expect(await jobs.intakeFailed(early, 'It answered 404.')).toBeNull();
      await unchanged();
      await jobs.intakeReturned(early, 0);
      await unchanged();
      // What it brings is as good as the other's.
      const image = { key: 'images/b.png', type: 'image/png', bytes: 5 };
      await jobs.imageStored(id, { image });
      const ready = await jobs.intakeDone(id, []);
      expect(ready).toMatchObject({ ready: true, image });
      expect(await jobs.intakeFailed(late, 'It answered 404.')).toBeNull();
      await jobs.intakeReturned(late, 5);
      expect(await jobs.intakeFailed({ id, intakeUntil: null }, 'Not taken.')).toBeNull();
      expect(await jobs.get(id)).toEqual(ready);
    });

    it('sweeps lost leases separately, and accepts results under them until then', async () => {
      await Promise.all([jobs.submit(testJob(ada)), jobs.submit(testJob(ada))]);
      const [silent, long] = [await claimOne(), await claimOne()];
      await overdue('lease_until', silent.id);
      await overdue('deadline', long.id);
      expect(await jobs.sweep('others')).toEqual({ requeued: 1, failed: 0 });
      expect((await jobs.get(long.id))?.status).toBe('created');
      const done = await jobs.complete(silent.id, silent.token, testResult());
      expect(done.status).toBe('completed');
      const again = await claimOne();
      await overdue('lease_until', again.id);
      expect(await jobs.sweep('leases')).toEqual({ requeued: 1, failed: 0 });
    });

    it('lists, counts and removes', async () => {
      await jobs.submit(testJob(ada));
      await jobs.submit(testJob(bob));
      const { id } = await claimOne();
      expect(await jobs.depth()).toMatchObject({ waiting: 1, processing: 1 });
      const list = async (query: Partial<z.output<typeof listBodySchema>>) =>
        (await jobs.list('ada', { ...listBodySchema.parse({ page_size: 10 }), ...query })).jobs;
      expect(await list({})).toMatchObject([{ id, input: null }]);
      expect(await list({ include_inputs: true })).toEqual([await jobs.get(id)]);
      expect(await list({ page: 2 })).toEqual([]);
      expect(await list({ page: 2 ** 52, page_size: 100 })).toEqual([]);
      expect(await list({ status: 'failed' })).toEqual([]);
      expect(await jobs.remove([id], 'ada')).toEqual([]);
      await jobs.cancel(id, 'ada');
      expect(await jobs.remove([id], 'bob')).toEqual([]);
      expect(await jobs.remove([id, 'no id'], 'ada')).toMatchObject([{ id }]);
    });
  });
});
