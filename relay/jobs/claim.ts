import { eq, getTableColumns, inArray, ne, or, type SQL, sql } from 'drizzle-orm';
import type { ClaimAnswer, SkipReason, WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller } from '../relay';
import { type JobRow, jobs } from '../store/schema';
import type { Database } from '../store/store';
import { inSeconds, type JobsDependencies, now, workerName } from './context';
import { storable } from './text';

/**
 * Waiting jobs of a pool that are looked at, for a claim and to say why nothing was given: a worker that
 * fits nothing must not cost a look at the whole queue.
 */
export const windowSize = 1000;
/** Jobs that are looked up beyond those wanted: another node may be taking the first. */
const spare = 32;

/** The order in which jobs are given: that of the indexes `jobs_waiting` and `jobs_waiting_shared`. */
const queueOrder = sql`${jobs.priority} desc, ${jobs.createdAt}`;

// Written out, not as parameters: only so does the planner know that a partial index fits, also in
// the generic plan of a prepared statement.
const waiting = sql`${jobs.status} = 'created' and ${jobs.ready}`;
const waitingShared = sql`${jobs.status} = 'created' and ${jobs.ready} and ${jobs.shared}`;

/** How long a job waits after an attempt that failed in a way that may pass, for each attempt so far. */
const retrySeconds = 5;
/** How long the worker that failed at a job is not given it again: another may do better. */
export const passOverSeconds = 30;

/**
 * What was tried in vain a moment ago. Of workers that ask together, each is spared what one of them
 * failed at: {@link createClaimer} lets such a worker ask alone.
 */
function triedLately(asking: readonly Pick<Asking, 'caller' | 'worker'>[]): SQL {
  const workers = asking.map(
    ({ caller, worker }) => sql`${workerName(caller.keyId, worker.worker_id)}`,
  );
  return sql`(${jobs.failedAt} is not null and (
    ${jobs.failedAt} + ${jobs.attempt} * make_interval(secs => ${retrySeconds}) > now()
    or (${jobs.failedAt} + make_interval(secs => ${passOverSeconds}) > now()
      and ${jobs.failedWorker} = any(array[${sql.join(workers, sql`, `)}]::text[]))))`;
}

/** Why a job does not fit a worker, each as a condition on the job, in the order they are told. */
function misfits(
  asking: readonly [Pick<Asking, 'caller' | 'worker'>, ...Pick<Asking, 'caller' | 'worker'>[]],
): readonly (readonly [SkipReason, SQL])[] {
  const [{ worker }] = asking;
  const model = storable(worker.model);
  return [
    ['model', sql`not (${jobs.models} && array[${model}, '*']::text[])`],
    ['precision', sql`not (${worker.precision} = any(${jobs.precisions}))`],
    ['size', sql`not (${inArray(jobs.size, worker.sizes)})`],
    ['duration', sql`${jobs.duration} > ${worker.max_duration}`],
    ...(worker.loras ? [] : ([['loras', sql`${jobs.needsLora}`]] as const)),
    ['not-ready', triedLately(asking)],
  ];
}

/** The jobs among which a worker may choose, best first: its owner's, then those that are shared. */
function pools(caller: Caller): readonly SQL[] {
  const own = sql`${waiting} and ${eq(jobs.owner, caller.owner)}`;
  if (!caller.shared) return [own];
  return [own, sql`${waitingShared} and ${ne(jobs.owner, caller.owner)}`];
}

/** Ids of the first jobs of a pool that fit, stopping at what is enough. */
function fitting(
  db: Database,
  asking: readonly [Asking, ...Asking[]],
  pool: SQL,
  count: number,
  everything: boolean,
) {
  const misfit = sql.join(
    misfits(asking).map(([, condition]) => condition),
    sql` or `,
  );
  const looked = db
    .select({ id: jobs.id, fits: sql<boolean>`not (${misfit})`.as('fits') })
    .from(jobs)
    .where(pool)
    .orderBy(queueOrder);
  const first = (everything ? looked : looked.limit(windowSize)).as('looked');
  return db
    .select({ id: first.id })
    .from(first)
    .where(sql`${first.fits}`)
    .limit(count + spare);
}

/** A worker that asks, and the token that it gets with its job. */
export interface Asking {
  readonly caller: Caller;
  readonly worker: WorkerDeclaration;
  readonly token: string;
}

/**
 * Gives the first waiting jobs that fit to workers of one owner that can do the same: one statement, so
 * that no two workers get the same (v3-api.md §3).
 *
 * The jobs are chosen in a WITH query because that is read once: a subquery that locks rows may be read
 * again by another plan, and would then lock more than it gives.
 *
 * @param options.everything looks at the whole queue; else at its first {@link windowSize} jobs
 * @returns the given jobs, each with the token of its worker
 */
export async function claimJobs(
  db: Database,
  { config }: Pick<JobsDependencies, 'config'>,
  asking: readonly [Asking, ...Asking[]],
  { everything = false } = {},
): Promise<JobRow[]> {
  const [{ caller }] = asking;
  const jobsGiven: JobRow[] = [];
  for (const pool of pools(caller)) {
    const rest = asking.slice(jobsGiven.length);
    if (rest.length === 0) break;
    const chosen = db
      .select({ id: jobs.id })
      .from(jobs)
      // As an array, and without the rest of the pool's conditions, which never change: so the rows
      // are found by their ids, and not by another look at the queue.
      .where(
        sql`${jobs.id} = any(array(${fitting(db, asking, pool, rest.length, everything)}))
          and ${jobs.status} = 'created'`,
      )
      .orderBy(queueOrder)
      .limit(rest.length)
      .for('update', { skipLocked: true });
    const takers = sql.join(
      rest.map(
        ({ token, ...taker }, index) =>
          sql`(${index + 1}::int, ${token}, ${taker.worker.worker_id}, ${taker.caller.keyId})`,
      ),
      sql`, `,
    );
    const given = db.$with('given', { jobId: sql<string>`job_id`.as('job_id') }).as(
      sql`select c.id as job_id, t.token, t.worker, t.key
        from (select id, row_number() over () as n from (${chosen}) as o) as c
        join (values ${takers}) as t(n, token, worker, key) on t.n = c.n`,
    );
    const update = db
      .with(given)
      .update(jobs)
      .set({
        status: 'processing',
        attempt: sql`${jobs.attempt} + 1`,
        leaseToken: sql`given.token`,
        leaseUntil: inSeconds(config.KINORA_LEASE_SECONDS),
        deadline: inSeconds(config.KINORA_ATTEMPT_SECONDS),
        workerId: sql`given.worker`,
        workerToken: sql`given.key`,
        startedAt: now,
        progress: null,
      })
      .from(sql`given`)
      .where(sql`${jobs.id} = given.job_id`)
      .returning(getTableColumns(jobs));
    try {
      jobsGiven.push(...(await update));
    } catch (error) {
      // What the first pool gave is under way: it must reach its workers.
      if (jobsGiven.length === 0) throw error;
      break;
    }
  }
  return jobsGiven;
}

/** Why nothing was given: the first waiting jobs, each counted under the first reason that keeps it. */
export async function skippedFor(
  db: Database,
  caller: Caller,
  worker: WorkerDeclaration,
): Promise<ClaimAnswer['skipped']> {
  const reasons = misfits([{ caller, worker }]);
  const cases = reasons.map(([reason, condition]) => sql`when ${condition} then ${reason}::text`);
  const counts: Partial<Record<SkipReason, number>> = {};
  const owned = eq(jobs.owner, caller.owner);
  const notReady = sql`${jobs.status} = 'created' and not ${jobs.ready} and ${
    caller.shared ? or(owned, jobs.shared) : owned
  }`;
  const windows: readonly (readonly [SQL, SQL, SQL])[] = [
    ...pools(caller).map(
      (pool) => [sql`case ${sql.join(cases, sql` `)} end`, pool, queueOrder] as const,
    ),
    [sql`'not-ready'`, notReady, sql`${jobs.createdAt}`],
  ];
  for (const [reason, condition, order] of windows) {
    const looked = db
      .select({ reason: reason.mapWith(String).as('reason') })
      .from(jobs)
      .where(condition)
      .orderBy(order)
      .limit(windowSize)
      .as('looked');
    const rows = await db
      .select({ reason: looked.reason, count: sql`count(*)::int`.mapWith(Number) })
      .from(looked)
      .where(sql`${looked.reason} is not null`)
      .groupBy(looked.reason);
    for (const row of rows) {
      // The texts are ours, from `misfits`.
      const name = row.reason as SkipReason;
      counts[name] = (counts[name] ?? 0) + row.count;
    }
  }
  return counts;
}
