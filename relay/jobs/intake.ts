import { and, eq, type SQL, sql } from 'drizzle-orm';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import type { Size } from '../../lib/contract';
import { type JobLora, type JobRow, jobs } from '../store/schema';
import { type Apply, announce, inSeconds, type JobsDependencies } from './context';
import { maxIntakeAttempts } from './sweep';

/** A job that a node has taken for intake; its `intakeUntil` is the token. */
type TakenIntake = Pick<JobRow, 'id' | 'intakeUntil'>;

const waiting = sql`${jobs.status} = 'created' and not ${jobs.ready}`;

/** Jobs of an owner that are fetched at a time, on all nodes: in all, and from one host. */
const perOwner = 8;
const perHost = 2;
/** Jobs of an owner that are considered: slow hosts of an owner delay only that owner's jobs beyond them. */
const windowSize = 1000;

/**
 * The next jobs whose files are to be fetched. The owners take turns, and a slow host gets no more
 * than its share: a host that does not answer must not block the images of others.
 *
 * The owners are found one by one, each by the index `jobs_intake`: the length of the queue costs nothing.
 */
function nextInTurn(limit: number) {
  return sql`
    with recursive waiting_owners(owner) as (
      (select min(owner) from ${jobs} where status = 'created' and not ready)
      union all
      select (
        select min(j.owner) from ${jobs} as j
        where j.status = 'created' and not j.ready and j.owner > w.owner
      ) from waiting_owners as w where w.owner is not null
    ), hosts as (
      select o.owner, first.*, row_number() over (
        partition by o.owner, first.host order by first.busy desc, first.created_at
      ) as host_place
      from waiting_owners as o cross join lateral (
        select j.id, j.created_at,
          j.intake_until is not null and j.intake_until >= now() as busy,
          substring(
            case when j.image is null then j.input ->> 'image' else j.input ->> 'last_image' end
            from '^[^/]*//([^/?#]*)'
          ) as host
        from ${jobs} as j
        where j.status = 'created' and not j.ready and j.owner = o.owner
          and j.intake_attempts < ${maxIntakeAttempts}::int
          and (j.intake_retry_at is null or j.intake_retry_at <= now())
        order by j.created_at limit ${windowSize}::int
      ) as first
      where o.owner is not null
    ), placed as (
      select id, created_at, busy, row_number() over (
        partition by owner order by busy desc, host_place, created_at
      ) as place
      from hosts where host_place <= ${perHost}::int
    )
    select id from placed where not busy and place <= ${perOwner}::int
    order by place, created_at limit ${limit}::int`;
}

/**
 * The job that a node took, as long as no other has taken it over and nothing has come of it: the time
 * until which it was taken is the token. Both sides keep whole milliseconds, so it compares as it is.
 */
function takenBy({ id, intakeUntil }: TakenIntake) {
  // A job that was not taken has NULL here, which equals nothing.
  const isToken = eq(jobs.intakeUntil, sql.param(intakeUntil, jobs.intakeUntil));
  return and(eq(jobs.id, id), waiting, isToken);
}

/**
 * Pauses before an image of a job is fetched again, in seconds: a name that cannot be resolved, a host that
 * restarts or is busy comes back within them, ten minutes in all.
 */
const retrySeconds: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 120, 120, 120, 120];

/**
 * The files of jobs that wait for them. A method that returns null changed nothing, because another node has taken
 * the job over.
 */
export function createIntakes({ store }: JobsDependencies, apply: Apply) {
  const { db } = store;

  /** Changes a job that waits for its files. */
  async function update(where: SQL | undefined, set: PgUpdateSetSource<typeof jobs>) {
    const [job] = await db.update(jobs).set(set).where(where).returning();
    return job ?? null;
  }
  /** An attempt is not counted where its job is returned: attempts find jobs that end their node. */
  const uncounted = { intakeAttempts: sql`greatest(${jobs.intakeAttempts} - 1, 0)` };
  const fail = async (taken: TakenIntake, message: string): Promise<JobRow | null> => {
    const { before, job } = await apply(takenBy(taken), { type: 'intake-failed', message });
    return job ?? before ?? null;
  };

  return {
    /** Takes waiting jobs whose files are to be fetched, for this node and `seconds`. */
    async takeIntake(limit: number, seconds: number): Promise<JobRow[]> {
      const free = db
        .select({ id: jobs.id })
        .from(jobs)
        .where(
          and(
            sql`${jobs.id} = any(array(${nextInTurn(limit)}))`,
            waiting,
            sql`(${jobs.intakeUntil} is null or ${jobs.intakeUntil} < now())`,
            sql`(${jobs.intakeRetryAt} is null or ${jobs.intakeRetryAt} <= now())`,
          ),
        )
        .for('update', { skipLocked: true });
      return await db
        .update(jobs)
        .set({ intakeUntil: inSeconds(seconds), intakeAttempts: sql`${jobs.intakeAttempts} + 1` })
        // As an array it is read once; under IN a plan may read it again and lock more than the limit.
        .where(sql`${jobs.id} = any(array(${free}))`)
        .returning();
    },
    /** Stores where an image of a job is, so that it is not fetched again where another file fails. */
    imageStored: (
      id: string,
      images: Partial<Pick<JobRow, 'image' | 'lastImage'>>,
    ): Promise<JobRow | null> => update(and(eq(jobs.id, id), waiting), images),
    /**
     * The job may be claimed now. The first node that has all files calls it, so that a slow one does not repeat it.
     *
     * @param size where the image decides it
     */
    async intakeDone(id: string, loras: readonly JobLora[], size?: Size): Promise<JobRow | null> {
      const input = sql`jsonb_set(${jobs.input}, '{size}', ${JSON.stringify(size)}::jsonb)`;
      const set = { ready: true, loras, intakeUntil: null, ...(size && { size, input }) };
      const job = await update(and(eq(jobs.id, id), waiting), set);
      if (job) announce(store, job);
      return job;
    },
    intakeFailed: fail,
    /**
     * Lets any node fetch the image again after a pause; ends the job after the last one, about ten minutes later.
     *
     * @param error one sentence, which the record of the job shows
     */
    async intakePostponed(
      taken: TakenIntake & Pick<JobRow, 'intakeFailures'>,
      error: string,
    ): Promise<JobRow | null> {
      const { intakeFailures: failures } = taken;
      const pause = retrySeconds[failures];
      if (pause === undefined)
        return await fail(taken, `${error} It was tried ${failures + 1} times.`);
      const job = await update(takenBy(taken), {
        ...uncounted,
        intakeUntil: null,
        intakeFailures: sql`${jobs.intakeFailures} + 1`,
        intakeError: error,
        intakeRetryAt: inSeconds(pause),
      });
      if (job) store.notify('jobChanged', `${job.id}:status`);
      return job;
    },
    /** Gives a taken job back after `seconds`: the failure was not caused by its files. */
    async intakeReturned(taken: TakenIntake, seconds: number): Promise<void> {
      const intakeUntil = seconds === 0 ? null : inSeconds(seconds);
      await update(takenBy(taken), { ...uncounted, intakeUntil });
    },
  };
}
