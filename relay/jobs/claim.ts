import { randomBytes } from 'node:crypto';
import { and, eq, inArray, ne, or, type SQL, sql } from 'drizzle-orm';
import type { ClaimAnswer, SkipReason, WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { type Config, familiesOf, preferredTo } from '../config';
import { type JobRow, jobs, keys, workers } from '../store/schema';
import { inSeconds, type JobsDependencies, listedSeconds, workerName } from './context';

/** Waiting jobs of a pool that are counted to say why nothing was given. */
const countedJobs = 1000;

// Literals and not parameters: the planner uses a partial index only where it sees the condition, also in
// the generic plan of a prepared statement.
const waiting = sql`${jobs.status} = 'created' and ${jobs.ready}`;
const waitingShared = sql`${jobs.status} = 'created' and ${jobs.ready} and ${jobs.shared}`;

/** How long a job waits after a retryable failure, for each attempt so far. */
const retrySeconds = 5;
/** How long the worker that failed at a job does not get it again. */
const excludeSeconds = 30;

/** A job that the worker failed at lately. */
const failedBy = (caller: Caller, worker: WorkerDeclaration) =>
  sql`(${jobs.failedAt} + make_interval(secs => ${excludeSeconds}) > now()
    and ${jobs.failedWorker} = ${workerName(caller.keyId, worker.worker_id)})`;

/** A job that failed recently: no worker gets it at once, and its last worker only after a pause. */
function failedRecently(caller: Caller, worker: WorkerDeclaration): SQL {
  return sql`(${jobs.failedAt} is not null and (
    ${jobs.failedAt} + ${jobs.attempt} * make_interval(secs => ${retrySeconds}) > now()
    or ${failedBy(caller, worker)}))`;
}

/**
 * Why a job does not fit a worker, each as a condition on the job, in the order of reporting.
 *
 * @param declared the worker's declaration, as `jsonb`
 */
function misfits(declared: SQL): readonly (readonly [SkipReason, SQL])[] {
  return [
    ['model', sql`not (${jobs.models} && array[${declared} ->> 'model', '*'])`],
    ['precision', sql`not (${declared} ->> 'precision' = any(${jobs.precisions}))`],
    ['size', sql`not (${declared} -> 'sizes' @> to_jsonb(${jobs.size}))`],
    ['duration', sql`${jobs.duration} > (${declared} ->> 'max_duration')::int`],
    ['needs', sql`not (to_jsonb(${jobs.needs}) <@ (${declared} -> 'knows'))`],
    ['loras', sql`(${jobs.needsLora} and not ${declared} @> '{"loras": true}')`],
    ['checker', sql`(${jobs.needsChecker} and ${declared} ->> 'safety_checker' = 'none')`],
  ];
}

const anyOf = (reasons: readonly (readonly [SkipReason, SQL])[]) =>
  sql.join(
    reasons.map(([, condition]) => condition),
    sql` or `,
  );

/** Whether a worker of some kind is connected, may take the job, and was not the last one to fail at it. */
const anotherMay = (kind: SQL) => sql`exists (
  select 1 from ${workers}
  left join ${keys} on ${keys.id} = ${workers.tokenId}
  where ${workers.seenAt} > now() - make_interval(secs => ${listedSeconds})
    and ${workers.state} <> 'paused'
    and ${kind}
    and (${workers.owner} = ${jobs.owner} or (${jobs.shared} and ${keys.shared}))
    and not (${anyOf(misfits(sql`${workers.declaration}`))})
    and ${jobs.failedWorker} is distinct from ${workers.tokenId} || ' ' || ${workers.id})`;

/**
 * A job that asks for an optimised prompt, for a worker that has no language model: it waits as long as there is a
 * worker that has one.
 */
const waitsForOptimizer = sql`(${jobs.needsOptimizer} and ${anotherMay(
  sql`${workers.declaration} @> '{"prompt_optimizer": true}'`,
)})`;

/** A job of a family whose list has other models before this worker's, for as long as a worker that has one is idle. */
function waitsForPreferred(
  config: Config,
  { model }: WorkerDeclaration,
): (readonly [SkipReason, SQL])[] {
  const waits = [...familiesOf(config)].flatMap(([family, models]) => {
    const preferred = preferredTo(model, models);
    if (preferred.length === 0) return [];
    const kind = sql`${workers.state} = 'idle' and ${inArray(sql`${workers.declaration} ->> 'model'`, preferred)}`;
    return sql`(${jobs.model} like ${`${family}/%`} and ${anotherMay(kind)})`;
  });
  return waits.length === 0 ? [] : [['preferred', sql.join(waits, sql` or `)]];
}

/** Why a job is not given to a worker now, in the order of reporting. */
function mismatches(
  config: Config,
  caller: Caller,
  worker: WorkerDeclaration,
): readonly (readonly [SkipReason, SQL])[] {
  return [
    ...misfits(sql`${JSON.stringify(worker)}::jsonb`),
    ...(worker.prompt_optimizer ? [] : ([['optimizer', waitsForOptimizer]] as const)),
    ...waitsForPreferred(config, worker),
    ['back-off', failedRecently(caller, worker)],
  ];
}

/** Owners that are told apart; where jobs of more wait, any worker may find one. */
const mostOwners = 100;

/** The jobs among which a worker may choose, best first: its owner's, then those that are shared. */
function pools(caller: Caller): readonly SQL[] {
  const own = sql`${waiting} and ${eq(jobs.owner, caller.owner)}`;
  if (!caller.shared) return [own];
  return [own, sql`${waitingShared} and ${ne(jobs.owner, caller.owner)}`];
}

/** Which waiting jobs there are for a worker. */
export function createClaims({ store, config }: Pick<JobsDependencies, 'store' | 'config'>) {
  const { db } = store;
  return {
    /**
     * Whose jobs wait, by one look at an index for each owner, whatever the length of the queue.
     *
     * @returns whether a worker may find a job, or one whose files are being fetched; false is certain
     */
    async waitingPools(): Promise<(caller: Caller) => boolean> {
      const next = (after: SQL) =>
        sql`(select min(owner) from ${jobs} where ${waiting} and owner > ${after})`;
      const has = (condition: SQL) =>
        sql`exists (select 1 from ${jobs} where ${condition})`.mapWith(Boolean);
      const isFetched = sql`${jobs.status} = 'created' and not ${jobs.ready}`;
      const rows = await db
        .select({ owner: sql`owner`, hasShared: has(waitingShared), hasFetched: has(isFetched) })
        .from(sql`(with recursive pool(owner) as (
          select ${next(sql`''`)} union all select ${next(sql`pool.owner`)} from pool where owner is not null
        ) select owner from pool limit ${mostOwners + 1}::int) as pools`);
      const [first] = rows;
      const owners = new Set(rows.map(({ owner }) => owner));
      const anyMay = owners.size > mostOwners || first?.hasFetched === true;
      return ({ owner, shared }) =>
        anyMay || owners.has(owner) || (shared && first?.hasShared === true);
    },
    /** The number of jobs that wait for a worker of the caller. */
    countWaiting: (caller: Caller): Promise<number> => db.$count(jobs, or(...pools(caller))),
    /**
     * Gives the first waiting job that fits a worker to it, under a new lease. One statement: no two
     * workers get the same job, and none waits for another one's claim.
     *
     * @returns null where nothing fits
     */
    async takeNext(caller: Caller, worker: WorkerDeclaration): Promise<JobRow | null> {
      const mismatch = anyOf(mismatches(config, caller, worker));
      for (const pool of pools(caller)) {
        const first = db
          .select({ id: jobs.id })
          .from(jobs)
          .where(sql`${pool} and not (${mismatch})`)
          .orderBy(jobs.createdAt)
          .limit(1)
          .for('update', { skipLocked: true });
        const [job] = await db
          .update(jobs)
          .set({
            status: 'processing',
            attempt: sql`${jobs.attempt} + 1`,
            leaseToken: randomBytes(24).toString('base64url'),
            leaseUntil: inSeconds(config.KINORA_LEASE_SECONDS),
            deadline: inSeconds(config.KINORA_ATTEMPT_SECONDS),
            workerId: worker.worker_id,
            workerToken: caller.keyId,
            progress: null,
          })
          // With `=`, the query is read once; under IN a plan may read it again and lock more than it gives.
          .where(sql`${jobs.id} = (${first})`)
          .returning();
        if (job) return job;
      }
      return null;
    },
    /** Whether a waiting job is kept from this worker alone, as it failed at it lately. */
    async failedLately(caller: Caller, worker: WorkerDeclaration): Promise<boolean> {
      const failed = and(or(...pools(caller)), failedBy(caller, worker));
      return (await db.select({ id: jobs.id }).from(jobs).where(failed).limit(1)).length > 0;
    },
    /** Why nothing is given: the first waiting jobs, each counted under the first reason that keeps it. */
    async skippedFor(caller: Caller, worker: WorkerDeclaration): Promise<ClaimAnswer['skipped']> {
      const cases = mismatches(config, caller, worker).map(
        ([reason, condition]) => sql`when ${condition} then ${reason}::text`,
      );
      const mismatch = sql`case ${sql.join(cases, sql` `)} end`;
      const owned = eq(jobs.owner, caller.owner);
      const notReady = sql`${jobs.status} = 'created' and not ${jobs.ready} and ${
        caller.shared ? or(owned, jobs.shared) : owned
      }`;
      const counts: Partial<Record<SkipReason, number>> = {};
      const count = async (reason: SQL, condition: SQL) => {
        const first = db
          .select({ reason: reason.mapWith(String).as('reason') })
          .from(jobs)
          .where(condition)
          .orderBy(jobs.createdAt)
          .limit(countedJobs)
          .as('first');
        const rows = await db
          .select({ reason: first.reason, count: sql`count(*)::int`.mapWith(Number) })
          .from(first)
          .where(sql`${first.reason} is not null`)
          .groupBy(first.reason);
        for (const row of rows) {
          // The texts are those of `mismatches`.
          const name = row.reason as SkipReason;
          counts[name] = (counts[name] ?? 0) + row.count;
        }
      };
      for (const pool of pools(caller)) await count(mismatch, pool);
      await count(sql`'not-ready'`, notReady);
      return counts;
    },
  };
}
