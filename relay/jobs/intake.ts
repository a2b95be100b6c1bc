import { and, asc, eq, lt, sql } from 'drizzle-orm';
import { type JobImage, type JobLora, type JobRow, jobs } from '../store/schema';
import type { Database } from '../store/store';
import { inSeconds } from './context';
import { maxIntakeAttempts } from './sweep';
import { storableJson } from './text';

const waiting = sql`${jobs.status} = 'created' and not ${jobs.ready}`;

/** Takes jobs whose files are to be fetched, the oldest first. */
export async function takeWaiting(db: Database, limit: number, seconds: number): Promise<JobRow[]> {
  const free = db
    .select({ id: jobs.id })
    .from(jobs)
    .where(
      and(
        waiting,
        sql`(${jobs.intakeUntil} is null or ${jobs.intakeUntil} < now())`,
        lt(jobs.intakeAttempts, maxIntakeAttempts),
      ),
    )
    .orderBy(asc(jobs.createdAt))
    .limit(limit)
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

/** The files are there: the job may be claimed. @returns null where it no longer waits for them */
export async function finishIntake(
  db: Database,
  id: string,
  image: JobImage,
  loras: readonly JobLora[],
): Promise<JobRow | null> {
  const [job] = await db
    .update(jobs)
    .set({ ready: true, image, loras: storableJson(loras), intakeUntil: null })
    .where(and(eq(jobs.id, id), waiting))
    .returning();
  return job ?? null;
}
