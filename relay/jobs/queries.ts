import { and, desc, eq, getTableColumns, gte, inArray, lt, sql } from 'drizzle-orm';
import { type JobRow, jobs, previews } from '../store/schema';
import type { Database } from '../store/store';
import { storable } from './text';
import type { Jobs, ListedJob } from './types';

/** Ids as they can be in the table; anything else is not there, and may not be storable either. */
const idForm = /^[0-9a-f]{32}$/;
/** Rows that a list may pass over: far more pages than anybody reads. */
const maxOffset = 1_000_000;

/** @returns null where it does not exist, or is another owner's */
export async function getJob(db: Database, id: string, owner?: string): Promise<JobRow | null> {
  if (!idForm.test(id)) return null;
  const [job] = await db.select().from(jobs).where(eq(jobs.id, id));
  return job && (owner === undefined || job.owner === owner) ? job : null;
}

const { input, ...columns } = getTableColumns(jobs);

/** An owner's jobs, the newest first. */
export async function listJobs(
  db: Database,
  owner: string,
  { page, pageSize, model, status, after, before, withInput = false }: Parameters<Jobs['list']>[1],
): Promise<ListedJob[]> {
  const offset = (page - 1) * pageSize;
  if (offset > maxOffset) return [];
  const none = sql<null>`null::jsonb`;
  return db
    .select({ ...columns, input: withInput ? input : none })
    .from(jobs)
    .where(
      and(
        eq(jobs.owner, owner),
        model === undefined ? undefined : eq(jobs.model, storable(model)),
        status === undefined ? undefined : eq(jobs.status, status),
        after === undefined ? undefined : gte(jobs.createdAt, after),
        before === undefined ? undefined : lt(jobs.createdAt, before),
      ),
    )
    .orderBy(desc(jobs.createdAt), desc(jobs.id))
    .limit(pageSize)
    .offset(offset);
}

/** Deletes finished jobs of an owner; the others stay. */
export async function removeJobs(
  db: Database,
  ids: readonly string[],
  owner: string,
): Promise<JobRow[]> {
  const known = ids.filter((id) => idForm.test(id));
  if (known.length === 0) return [];
  return db
    .delete(jobs)
    .where(
      and(
        inArray(jobs.id, known),
        eq(jobs.owner, owner),
        sql`${jobs.status} in ('completed', 'failed')`,
      ),
    )
    .returning();
}

/** How much waits and runs, and for how many seconds the oldest has waited. */
export async function queueDepth(db: Database): Promise<Awaited<ReturnType<Jobs['depth']>>> {
  const [row] = await db
    .select({
      waiting: sql`(count(*) filter (where ${jobs.status} = 'created'))::int`.mapWith(Number),
      processing: sql`(count(*) filter (where ${jobs.status} = 'processing'))::int`.mapWith(Number),
      oldestSeconds: sql`coalesce(extract(epoch from
        now() - min(${jobs.createdAt}) filter (where ${jobs.status} = 'created')), 0)::float8`.mapWith(
        Number,
      ),
    })
    .from(jobs)
    .where(sql`${jobs.status} in ('created', 'processing')`);
  return row ?? { waiting: 0, processing: 0, oldestSeconds: 0 };
}

/** The latest picture of a running job. */
export async function previewOf(
  db: Database,
  id: string,
): Promise<{ step: number; image: string } | null> {
  if (!idForm.test(id)) return null;
  const [row] = await db
    .select({ step: previews.step, image: previews.image })
    .from(previews)
    .innerJoin(jobs, and(eq(jobs.id, previews.jobId), sql`${jobs.status} = 'processing'`))
    .where(eq(previews.jobId, id));
  return row ?? null;
}
