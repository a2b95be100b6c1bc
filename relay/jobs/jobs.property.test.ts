/** @module-tag full */
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../lib/contract/v3';
import { deliveries, type JobRow, jobs as jobsTable } from '../store/schema';
import type { Store } from '../store/store';
import {
  testCaller,
  testHeartbeat,
  testJob,
  testJobs,
  testResult,
  testWorker,
} from '../testing/jobs';
import { clearJobs, engines, withStore } from '../testing/store';
import type { Jobs } from './index';

/**
 * Random histories of the job store on both engines, with several workers and sweepers at once. There is
 * no model of what should happen, only what must hold whatever happens. `KINORA_SOAK` sets the number of
 * histories.
 */
const histories = Number(process.env.KINORA_SOAK ?? 5);

type Action =
  | { readonly type: 'submit'; readonly webhook: boolean; readonly ready: boolean }
  /** `at` chooses among the jobs, or among the leases of the worker. */
  | { readonly type: (typeof workerActions)[number] | 'cancel' | 'expire'; readonly at: number }
  | { readonly type: 'claim' | 'sweep' | 'intake' | 'crash' };
const workerActions = ['heartbeat', 'complete', 'fail', 'fatal', 'release', 'stale'] as const;

const at = fc.nat({ max: 7 });
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('submit' as const),
      webhook: fc.boolean(),
      ready: fc.boolean(),
    }),
  },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('claim' as const) }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constantFrom(...workerActions), at }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constantFrom('cancel' as const, 'expire' as const, 'expire' as const),
      at,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constantFrom('sweep' as const, 'intake' as const, 'crash' as const),
    }),
  },
);
/** What each of four actors does, one thing after the other; the actors run at once. */
const history = fc.array(fc.array(action, { minLength: 4, maxLength: 16 }), {
  minLength: 4,
  maxLength: 4,
});

const owner = testCaller('ada');
const token = testCaller('ada', { keyId: 'token' });

interface Lease {
  readonly id: string;
  readonly token: string;
  /** Grows with each lease of a job: an attempt that is handed back is counted among the releases. */
  readonly turn: number;
}

const turnOf = ({ attempt, releases }: JobRow) => attempt + releases;

/** One history as it runs, and what was seen of it. */
class World {
  readonly submitted: { readonly id: string; readonly webhook: boolean }[] = [];
  /** Every lease that was ever given. */
  readonly leases: Lease[] = [];
  /** Terminal rows as an accepted call answered them. */
  readonly ended = new Map<string, JobRow>();

  constructor(
    readonly store: Store,
    readonly jobs: Jobs,
  ) {}

  async act(actor: readonly Action[]): Promise<void> {
    const worker = testWorker();
    let mine: Lease[] = [];
    for (const action of actor) {
      const lease = 'at' in action ? mine[action.at % Math.max(1, mine.length)] : undefined;
      switch (action.type) {
        case 'submit': {
          const webhookUrl = action.webhook ? 'https://example.com/hook' : null;
          const job = testJob(owner, { webhookUrl, ready: action.ready });
          this.submitted.push({ id: job.id, webhook: action.webhook });
          await this.jobs.submit(job);
          break;
        }
        case 'claim': {
          const job = await this.jobs.claimNext(token, worker);
          if (!job) break;
          expect(job.status).toBe('processing');
          const given = { id: job.id, token: job.leaseToken, turn: turnOf(job) };
          mine.push(given);
          this.leases.push(given);
          break;
        }
        case 'crash':
          mine = [];
          break;
        case 'sweep':
          await this.jobs.sweep();
          break;
        case 'intake':
          for (const { id, image, loras } of await this.jobs.takeIntake(2, 60)) {
            if (image) await this.jobs.intakeDone(id, loras);
          }
          break;
        case 'cancel': {
          const id = this.submitted[action.at % Math.max(1, this.submitted.length)]?.id;
          if (id !== undefined) this.saw(await this.jobs.cancel(id, 'ada'));
          break;
        }
        case 'expire':
          await this.expire(action.at);
          break;
        case 'stale':
          await this.tryStale(action.at);
          break;
        default:
          if (lease) {
            const over = await this.work(action.type, lease);
            if (over) mine = mine.filter((other) => other !== lease);
          }
      }
    }
  }

  /** @returns whether the worker is done with its lease */
  async work(type: (typeof workerActions)[number], { id, token }: Lease): Promise<boolean> {
    const failure = { code: 'DEVICE_LOST', message: 'The GPU was lost.' };
    try {
      if (type === 'heartbeat') await this.jobs.heartbeat(id, token, testHeartbeat);
      if (type === 'complete') this.saw(await this.jobs.complete(id, token, testResult()));
      if (type === 'fail') {
        this.saw(await this.jobs.fail(id, token, { ...failure, retryable: true }));
        await this.forgive();
      }
      if (type === 'fatal')
        this.saw(await this.jobs.fail(id, token, { ...failure, retryable: false }));
      if (type === 'release') this.saw(await this.jobs.release(id, token));
      return type !== 'heartbeat';
    } catch (error) {
      if (error instanceof ApiError && error.code === 'LEASE_LOST') return true;
      throw error;
    }
  }

  /** The time is over in which a job that failed is not given. */
  async forgive(): Promise<void> {
    // Locked in one order: two at once would else wait for each other.
    await this.store.db.execute(
      sql`update jobs set failed_at = failed_at - interval '1 minute'
        from (select id as locked from jobs where status = 'created' order by id for update) as them
        where id = locked`,
    );
  }

  /** A terminal row that was returned once never changes. */
  saw(job: JobRow | null): void {
    if (!job || (job.status !== 'completed' && job.status !== 'failed')) return;
    const before = this.ended.get(job.id);
    if (before) expect(job).toEqual(before);
    else this.ended.set(job.id, job);
  }

  /** A worker's time is over: half of the leases by its heartbeats, half by the deadline. */
  async expire(index: number): Promise<void> {
    const lease = this.leases[index % Math.max(1, this.leases.length)];
    if (!lease) return;
    const column = sql.identifier(index % 2 === 0 ? 'lease_until' : 'deadline');
    await this.store.db.execute(
      sql`update jobs set ${column} = now() - interval '1 second'
        where id = ${lease.id} and status = 'processing'`,
    );
  }

  /**
   * A lease that has certainly been succeeded by another is never accepted. Answers of two claims may
   * come in another order than they were made in.
   */
  async tryStale(index: number): Promise<void> {
    const stale = this.leases.filter(({ id, turn }) =>
      this.leases.some((other) => other.id === id && other.turn > turn),
    );
    const lease = stale[index % Math.max(1, stale.length)];
    if (!lease) return;
    for (const call of [
      () => this.jobs.heartbeat(lease.id, lease.token, testHeartbeat),
      () => this.jobs.complete(lease.id, lease.token, testResult('f'.repeat(64))),
      () => this.jobs.release(lease.id, lease.token),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'LEASE_LOST' });
    }
  }

  async check(): Promise<void> {
    const rows = await this.store.db.select().from(jobsTable);
    const hooks = await this.store.db.select().from(deliveries);
    expect(rows.map(({ id }) => id).sort()).toEqual(this.submitted.map(({ id }) => id).sort());
    for (const row of rows) {
      const terminal = row.status === 'completed' || row.status === 'failed';
      const { webhook } = this.submitted.find(({ id }) => id === row.id) ?? {};
      const written = hooks.filter(({ jobId }) => jobId === row.id);
      expect(written).toHaveLength(terminal && webhook ? 1 : 0);
      for (const { body } of written) expect(body).toBe(row.status);
      expect(row.attempt).toBeLessThanOrEqual(3);
      expect(row.outputSha256).toBe(row.status === 'completed' ? 'a'.repeat(64) : null);
      expect(row.finishedAt === null).toBe(!terminal);
      const seen = this.ended.get(row.id);
      if (seen) expect(row).toEqual(seen);
      if (row.status === 'created') expect(row.leaseToken).toBeNull();
      if (row.status !== 'processing') continue;
      // The lease in the row is one that was given, so exactly one worker has it.
      expect(this.leases.filter((lease) => lease.token === row.leaseToken)).toMatchObject([
        { id: row.id },
      ]);
    }
    expect(new Set(this.leases.map((lease) => lease.token)).size).toBe(this.leases.length);
  }

  /** Whatever state the history left behind, every job ends. */
  async finish(): Promise<void> {
    for (;;) {
      const taken = await this.jobs.takeIntake(1000, 60);
      if (taken.length === 0) break;
      for (const { id, image, loras } of taken) {
        if (image) await this.jobs.intakeDone(id, loras);
      }
    }
    await this.store.db.execute(
      sql`update jobs set lease_until = now() - interval '1 second' where status = 'processing'`,
    );
    await Promise.all([this.jobs.sweep(), this.jobs.sweep()]);
    const worker = testWorker();
    for (;;) {
      const job = await this.jobs.claimNext(token, worker);
      if (!job) break;
      const lease = { id: job.id, token: job.leaseToken, turn: turnOf(job) };
      this.leases.push(lease);
      await this.work('complete', lease);
    }
    const left = await this.jobs.depth();
    expect(left).toMatchObject({ waiting: 0, processing: 0 });
  }
}

describe.each(engines)('any history of jobs', (engine) => {
  withStore(engine, (fixture) => {
    it('ends each job once with one webhook, and refuses every stale lease', async () => {
      const { store } = fixture();
      await fc.assert(
        fc.asyncProperty(history, async (actors) => {
          await clearJobs(store);
          const world = new World(store, testJobs(store));
          await Promise.all(actors.map((actor) => world.act(actor)));
          await world.check();
          await world.finish();
          await world.check();
        }),
        { numRuns: histories, endOnFailure: histories <= 5 },
      );
    }, 3_600_000);
  });
});
