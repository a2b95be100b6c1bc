import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openStore, type Store } from '../store';
import { fillQueue, testCaller, testJob, testJobs, testWorker } from '../testing/jobs';
import { clearJobs, engines, withStore } from '../testing/store';
import { type ClaimRequest, createHeldClaims, type HeldClaims } from './held-claims';
import { createWorkers, type Jobs } from './index';

const ada = testCaller('ada');
const token = testCaller('ada', { keyId: 'token-ada' });
const log = pino({ level: 'silent' });
const holdMs = 60_000;
const never = new AbortController().signal;

function heldClaimsOn(store: Store, jobs: Jobs, stopping: AbortController): HeldClaims {
  const workers = createWorkers(store);
  return createHeldClaims({ store, jobs, workers, log, stopping: stopping.signal });
}

/** One node's part of what a claim goes through. */
function nodeOn(store: Store) {
  const jobs = testJobs(store);
  const stopping = new AbortController();
  const claims = heldClaimsOn(store, jobs, stopping);
  return { jobs, claims, stopping };
}

const requestOf = (more: Partial<ClaimRequest> = {}): ClaimRequest => ({
  caller: token,
  worker: testWorker(),
  paused: false,
  ...more,
});

describe.each(engines)('held claims', (engine) => {
  withStore(engine, (fixture) => {
    let jobs: Jobs;
    let claims: HeldClaims;
    let stopping: AbortController;
    beforeEach(async () => {
      await clearJobs(fixture().store);
      ({ jobs, claims, stopping } = nodeOn(fixture().store));
      // The first statements of a connection take longer.
      await jobs.depth();
    });
    afterEach(() => stopping.abort());
    /** What is not the database's. */
    const once = it.runIf(engine === 'pglite');
    const waiting = (count: number) => expect.poll(() => claims.count).toBe(count);

    it('are answered at once where there is a job, and where they are not held', async () => {
      const { id } = await jobs.submit(testJob(ada));
      expect((await claims.claim(requestOf(), holdMs, never))?.id).toBe(id);
      expect(await claims.claim(requestOf(), 0, never)).toBeNull();
      expect(claims.count).toBe(0);
    });

    it('have a submitted job within half a second', async () => {
      const times: number[] = [];
      for (let round = 0; round < 3; round++) {
        const claim = claims.claim(requestOf(), holdMs, never);
        await waiting(1);
        const submittedAt = performance.now();
        const { id } = await jobs.submit(testJob(ada));
        expect((await claim)?.id).toBe(id);
        times.push(performance.now() - submittedAt);
      }
      // A machine may stand still now and then, but hardly three times.
      expect(Math.min(...times)).toBeLessThan(500);
    });

    it('are answered with requeued jobs and with jobs whose files arrive', async () => {
      await jobs.submit(testJob(ada));
      const first = await claims.claim(requestOf(), holdMs, never);
      const second = claims.claim(requestOf(), holdMs, never);
      await waiting(1);
      if (!first) throw new Error('No job was given.');
      await jobs.release(first.id, first.leaseToken);
      expect((await second)?.id).toBe(first.id);
      const { id } = await jobs.submit(testJob(ada, { ready: false }));
      const third = claims.claim(requestOf(), holdMs, never);
      await waiting(1);
      await jobs.intakeDone(id, []);
      expect((await third)?.id).toBe(id);
    });

    once('are served in the order of their waiting, one job each', async () => {
      const order: number[] = [];
      const held = [];
      for (let index = 0; index < 4; index++) {
        const claim = claims.claim(requestOf(), holdMs, never);
        held.push(claim.then((job) => job && order.push(index)));
        await waiting(index + 1);
      }
      for (let count = 0; count < 3; count++) {
        await jobs.submit(testJob(ada));
        await waiting(3 - count);
      }
      expect(order).toEqual([0, 1, 2]);
      stopping.abort();
      await Promise.all(held);
    });

    once('are tried once for each job and kind of claim, not for each claim', async () => {
      let tries = 0;
      const counting = {
        ...jobs,
        claimNext: (...asked: Parameters<Jobs['claimNext']>) => {
          tries += 1;
          return jobs.claimNext(...asked);
        },
      };
      stopping.abort();
      stopping = new AbortController();
      claims = heldClaimsOn(fixture().store, counting, stopping);
      const others = Array.from({ length: 60 }, () =>
        claims.claim(requestOf({ worker: testWorker({ model: 'else' }) }), holdMs, never),
      );
      const fitting = Array.from({ length: 10 }, () => claims.claim(requestOf(), holdMs, never));
      await waiting(70);
      await delay(100);
      tries = 0;
      const submitted = await Promise.all(
        Array.from({ length: 10 }, () => jobs.submit(testJob(ada))),
      );
      const given = (await Promise.all(fitting)).map((job) => job?.id);
      expect(given.sort()).toEqual(submitted.map(({ id }) => id).sort());
      // For each of at most ten announcements one of both kinds finds nothing, and by time now and then.
      expect(tries).toBeLessThan(60);
      stopping.abort();
      await Promise.all(others);
    });

    /** Claims over jobs that count what is asked of the database. */
    function counted() {
      const asked = { waitingPools: 0, claimNext: 0, skippedFor: 0 };
      const counting = {
        ...jobs,
        waitingPools: () => {
          asked.waitingPools += 1;
          return jobs.waitingPools();
        },
        claimNext: (...given: Parameters<Jobs['claimNext']>) => {
          asked.claimNext += 1;
          return jobs.claimNext(...given);
        },
        skippedFor: (...given: Parameters<Jobs['skippedFor']>) => {
          asked.skippedFor += 1;
          return jobs.skippedFor(...given);
        },
      };
      return { asked, node: heldClaimsOn(fixture().store, counting, stopping) };
    }

    /** Submits a job, and waits until this node has heard of it, as of one of another node. */
    async function submitHeard(job: ReturnType<typeof testJob>): Promise<string> {
      const { store } = fixture();
      const heard = new Promise<void>((resolve) => {
        const stop = store.listen('jobAvailable', () => resolve(stop()));
      });
      const { id } = await jobs.submit(job);
      await heard;
      return id;
    }

    it('that come together cost one query where nothing waits for them, of one owner or of many', async () => {
      const { asked, node } = counted();
      // Of no concern to the others.
      await submitHeard(testJob(testCaller('eve')));
      const together = Array.from({ length: 300 }, (_, index) => {
        const request = requestOf({ caller: index % 2 ? token : testCaller(`owner${index}`) });
        return node.claim(request, 0, never);
      });
      expect((await Promise.all(together)).every((job) => job === null)).toBe(true);
      expect(await node.skippedFor(requestOf())).toEqual({});
      expect(asked).toEqual({ waitingPools: 1, claimNext: 0, skippedFor: 0 });
    });

    it('of one kind that come together are told by one of them that nothing fits, and why', async () => {
      const { asked, node } = counted();
      await submitHeard(testJob(ada, { input: { size: '720*1280' } }));
      const flat = () => requestOf({ worker: testWorker({ sizes: ['1280*720'] }) });
      const together = Array.from({ length: 100 }, async () => {
        const request = flat();
        expect(await node.claim(request, 0, never)).toBeNull();
        return await node.skippedFor(request);
      });
      expect(await Promise.all(together)).toEqual(Array(100).fill({ size: 1 }));
      expect(asked).toEqual({ waitingPools: 1, claimNext: 1, skippedFor: 1 });
      // What was known is forgotten with the next job.
      const id = await submitHeard(testJob(ada));
      expect((await node.claim(flat(), 0, never))?.id).toBe(id);
    });

    it('that come together with jobs get one each', async () => {
      const { node } = counted();
      const submitted = await Promise.all(
        Array.from({ length: 5 }, () => jobs.submit(testJob(ada))),
      );
      const together = Array.from({ length: 40 }, () => node.claim(requestOf(), 0, never));
      const given = (await Promise.all(together)).flatMap((job) => job?.id ?? []);
      expect(given.toSorted()).toEqual(submitted.map(({ id }) => id).toSorted());
    });

    it('of one kind with a job for each are not tried one after the other', async () => {
      const submitted = await Promise.all(
        Array.from({ length: 7 }, () => jobs.submit(testJob(ada))),
      );
      let [tries, atOnce] = [0, 0];
      const slow = {
        ...jobs,
        claimNext: async (...asked: Parameters<Jobs['claimNext']>) => {
          tries += 1;
          atOnce = Math.max(atOnce, tries);
          await delay(50);
          tries -= 1;
          return jobs.claimNext(...asked);
        },
      };
      const node = heldClaimsOn(fixture().store, slow, stopping);
      const together = submitted.map(() => node.claim(requestOf(), 0, never));
      const given = (await Promise.all(together)).map((job) => job?.id);
      expect(given.toSorted()).toEqual(submitted.map(({ id }) => id).toSorted());
      // One, two behind it, four behind those.
      expect(atOnce).toBe(4);
    });

    it('of a worker that failed at a job do not hide it from others of its kind', async () => {
      const id = await submitHeard(testJob(ada));
      const failing = requestOf();
      const first = await claims.claim(failing, 0, never);
      const failure = { code: 'X', message: 'x', retryable: true };
      await jobs.fail(id, first?.leaseToken ?? '', failure, token.keyId);
      await fixture().store.db.execute(
        sql`update jobs set failed_at = failed_at - make_interval(secs => 10)`,
      );
      expect(await claims.claim(failing, 0, never)).toBeNull();
      expect((await claims.claim(requestOf(), 0, never))?.id).toBe(id);
    });

    it('find shared jobs, jobs whose files arrive, and those of one of very many owners', {
      tags: ['full'],
    }, async () => {
      const { node } = counted();
      const guest = { ...testCaller('guest'), shared: true };
      expect(await node.claim(requestOf({ caller: guest }), 0, never)).toBeNull();
      const shared = await submitHeard(testJob({ ...ada, shared: true }));
      const claimOf = async (caller = token) =>
        (await node.claim(requestOf({ caller }), 0, never))?.id;
      expect(await claimOf(guest)).toBe(shared);
      const { id } = await jobs.submit(testJob(ada, { ready: false }));
      expect(await claimOf()).toBeUndefined();
      expect(await node.skippedFor(requestOf())).toEqual({ 'not-ready': 1 });
      await jobs.intakeDone(id, []);
      await expect.poll(() => claimOf()).toBe(id);
      const owners = Array.from({ length: 120 }, (_, n) => testCaller(`of-many-${1000 + n}`));
      for (const owner of owners) await jobs.submit(testJob(owner));
      const last = owners.at(-1) ?? ada;
      await expect.poll(() => claimOf(last)).toBeDefined();
    });

    it('do not delay others when they fit no job', async () => {
      await fillQueue(fixture().store, 1000);
      const bench = { ...token, owner: 'bench' };
      const worker = testWorker({ sizes: ['720*1280'] });
      const misfit = claims.claim(requestOf({ caller: bench, worker }), holdMs, never);
      const own = claims.claim(requestOf(), holdMs, never);
      await waiting(2);
      const { id } = await jobs.submit(testJob(ada));
      expect((await own)?.id).toBe(id);
      const { id: upright } = await jobs.submit(
        testJob(testCaller('bench'), { input: { size: '720*1280' } }),
      );
      expect((await misfit)?.id).toBe(upright);
    });

    once(
      'end without a job: client disconnected, node stopped, time over, same worker again',
      async () => {
        const client = new AbortController();
        const request = requestOf();
        const cut = claims.claim(request, holdMs, client.signal);
        await waiting(1);
        client.abort();
        expect(await cut).toBeNull();
        expect(await claims.claim(request, 20, never)).toBeNull();
        const first = claims.claim(request, holdMs, never);
        await waiting(1);
        const second = claims.claim(request, holdMs, never);
        expect(await first).toBeNull();
        await waiting(1);
        expect(claims.isHeld(request)).toBe(true);
        stopping.abort();
        expect(await second).toBeNull();
        expect(claims.count).toBe(0);
        // What was waited for is not lost.
        const { id } = await jobs.submit(testJob(ada));
        expect((await jobs.claimNext(token, request.worker))?.id).toBe(id);
      },
    );

    once('release a job whose client disconnects while it is claimed', async () => {
      const client = new AbortController();
      const slow = {
        ...jobs,
        async claimNext(...asked: Parameters<Jobs['claimNext']>) {
          const job = await jobs.claimNext(...asked);
          if (job) client.abort();
          return job;
        },
      };
      const { store } = fixture();
      const cutting = heldClaimsOn(store, slow, stopping);
      const cut = cutting.claim(requestOf(), holdMs, client.signal);
      await expect.poll(() => cutting.count).toBe(1);
      const { id } = await jobs.submit(testJob(ada));
      expect(await cut).toBeNull();
      // Handed back at once, and given to the next that waits.
      expect(await claims.claim(requestOf(), holdMs, never)).toMatchObject({ id, attempt: 1 });
    });

    once('continue when another claim fails', async () => {
      const broken = requestOf();
      const failing = {
        ...jobs,
        claimNext: (...[caller, worker]: Parameters<Jobs['claimNext']>) =>
          worker.worker_id === broken.worker.worker_id && node.count > 0
            ? Promise.reject(new Error('A fault of this claim.'))
            : jobs.claimNext(caller, worker),
      };
      const { store } = fixture();
      const node = heldClaimsOn(store, failing, stopping);
      const first = node.claim(broken, holdMs, never);
      await expect.poll(() => node.count).toBe(1);
      const second = node.claim(requestOf(), holdMs, never);
      await expect.poll(() => node.count).toBe(2);
      const submittedAt = performance.now();
      const { id } = await jobs.submit(testJob(ada));
      expect((await second)?.id).toBe(id);
      // Not by the timer, which comes every 5 s.
      expect(performance.now() - submittedAt).toBeLessThan(2000);
      expect(node.count).toBe(1);
      stopping.abort();
      expect(await first).toBeNull();
    });

    once('of paused workers are held, and given nothing', async () => {
      const paused = claims.claim(requestOf({ paused: true }), 300, never);
      await waiting(1);
      await jobs.submit(testJob(ada));
      expect(await paused).toBeNull();
      expect(await claims.claim(requestOf(), 0, never)).not.toBeNull();
    });

    it.runIf(engine === 'postgres')('get jobs that were submitted to another node', async () => {
      const store = await openStore(fixture().settings);
      const other = nodeOn(store);
      try {
        const times: number[] = [];
        for (let round = 0; round < 3; round++) {
          const claim = claims.claim(requestOf(), holdMs, never);
          await waiting(1);
          const submittedAt = performance.now();
          const { id } = await other.jobs.submit(testJob(ada));
          expect((await claim)?.id).toBe(id);
          times.push(performance.now() - submittedAt);
        }
        expect(Math.min(...times)).toBeLessThan(500);
        // Both nodes hear of it, and one has it.
        const both = [claims, other.claims].map((node) => node.claim(requestOf(), 700, never));
        await waiting(1);
        const { id } = await jobs.submit(testJob(ada));
        const given = (await Promise.all(both)).map((job) => job?.id ?? null);
        expect(given.toSorted()).toEqual([id, null].toSorted());
      } finally {
        other.stopping.abort();
        await store.close();
      }
    });
  });
});
