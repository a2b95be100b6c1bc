import { and, eq, sql } from 'drizzle-orm';
import { type JobImages, type JobLora, type JobRow, jobs } from '../store/schema';
import type { Database } from '../store/store';
import { inSeconds } from './context';
import { maxIntakeAttempts } from './sweep';

/** A job that a node has taken for intake; its `intakeUntil` is the token. */
export type TakenIntake = Pick<JobRow, 'id' | 'intakeUntil'>;

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

/** Takes jobs whose files are to be fetched. */
export async function takeWaiting(db: Database, limit: number, seconds: number): Promise<JobRow[]> {
  const free = db
    .select({ id: jobs.id })
    .from(jobs)
    .where(
      and(
        sql`${jobs.id} = any(array(${nextInTurn(limit)}))`,
        waiting,
        // Another node may have taken it meanwhile.
        sql`(${jobs.intakeUntil} is null or ${jobs.intakeUntil} < now())`,
        sql`(${jobs.intakeRetryAt} is null or ${jobs.intakeRetryAt} <= now())`,
      ),
    )
    .for('update', { skipLocked: true });
  return (
    db
      .update(jobs)
      .set({ intakeUntil: inSeconds(seconds), intakeAttempts: sql`${jobs.intakeAttempts} + 1` })
      // As an array it is read once; under IN a plan may read it again and lock more than the limit.
      .where(sql`${jobs.id} = any(array(${free}))`)
      .returning()
  );
}

/**
 * The job that a node took, as long as no other has taken it over and nothing has come of it: the time
 * until which it was taken is the token. Both sides keep whole milliseconds, so it compares as it is.
 */
export function takenBy({ id, intakeUntil }: TakenIntake) {
  return and(
    eq(jobs.id, id),
    waiting,
    // A job that was not taken has NULL here, which equals nothing.
    eq(jobs.intakeUntil, sql.param(intakeUntil, jobs.intakeUntil)),
  );
}

/**
 * Pauses before an image of a job is fetched again, in seconds: a name that cannot be resolved, a host that
 * restarts or is busy comes back within them, ten minutes in all.
 */
const retrySeconds: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 120, 120, 120, 120];

/** The pause after so many failures before; null where none is left. */
export function retryPause(failures: number): number | null {
  return retrySeconds[failures] ?? null;
}

/**
 * Returns a job for the next try after a pause. The attempt is not counted: attempts find jobs that end their node.
 *
 * @param error why an image could not be fetched, one sentence, which the record of the job shows; null where its
 *   files were not the cause
 * @returns null where another node has taken the job over
 */
export async function returnIntake(
  db: Database,
  taken: TakenIntake,
  seconds: number,
  error: string | null = null,
): Promise<JobRow | null> {
  const again = seconds === 0 ? null : inSeconds(seconds);
  const [job] = await db
    .update(jobs)
    .set({
      intakeUntil: error === null ? again : null,
      intakeAttempts: sql`greatest(${jobs.intakeAttempts} - 1, 0)`,
      ...(error !== null && {
        intakeFailures: sql`${jobs.intakeFailures} + 1`,
        intakeError: error,
        intakeRetryAt: again,
      }),
    })
    .where(takenBy(taken))
    .returning();
  return job ?? null;
}

/**
 * Stores where an image is, so that it is not fetched again where another file fails.
 *
 * @returns null where the job no longer waits for it
 */
export async function storeImages(
  db: Database,
  id: string,
  images: JobImages,
): Promise<JobRow | null> {
  const unfinished = and(eq(jobs.id, id), waiting);
  const [job] = await db.update(jobs).set(images).where(unfinished).returning();
  return job ?? null;
}

/**
 * Ends the intake of a job whose images are stored; the job may be claimed now. Another node may have taken the intake over
 * meanwhile: the first one that has the files ends it, so that a slow storage does not repeat it for ever.
 *
 * @returns null where it no longer waits for them
 */
export async function finishIntake(
  db: Database,
  id: string,
  loras: readonly JobLora[],
): Promise<JobRow | null> {
  const [job] = await db
    .update(jobs)
    .set({ ready: true, loras, intakeUntil: null })
    .where(and(eq(jobs.id, id), waiting))
    .returning();
  return job ?? null;
}
