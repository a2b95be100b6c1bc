import { and, desc, eq, getTableColumns, gte, inArray, lt, sql } from 'drizzle-orm';
import type { z } from 'zod';
import { cursorForm, type listBodySchema, type PredictionStatus } from '../../lib/contract/v3';
import { Kept } from '../kept';
import { type JobRow, jobs, previews } from '../store/schema';
import { type Database, equals } from '../store/store';

/** A job of a list, without its parameters and its prompt where they were not asked for. */
export type ListedJob = Omit<JobRow, 'input'> & { readonly input: JobRow['input'] | null };

/** Largest offset of a list. */
const maxOffset = 1_000_000;

const { input, promptOptimization, ...columns } = getTableColumns(jobs);

/** Jobs before a job are counted no further. */
const maxPosition = 1000;
/** How long a queue that was read once is used, in milliseconds. */
const queueMs = 1000;
/** Owners whose queues are kept. */
const maxOwners = 1000;

/** Years 1970 to 9999: beyond, JavaScript writes years in a way that PostgreSQL does not read. */
function instantOf(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const latest = Date.UTC(9999, 0);
  return new Date(Math.min(latest, Math.max(0, Date.parse(text))));
}

/** @returns undefined for a text that is no cursor */
function readCursor(cursor: string): { at: string; id: string } | undefined {
  const [, ms, id] = cursorForm.exec(cursor) ?? [];
  if (ms === undefined || id === undefined) return undefined;
  return { at: new Date(Number(ms)).toISOString(), id };
}

/** Queries of jobs, and their removal. */
export function createQueries(db: Database) {
  const queues = new Kept<readonly string[]>(queueMs, maxOwners);

  async function readQueue(owner: string): Promise<string[]> {
    const first = await db
      .select({ id: jobs.id })
      .from(jobs)
      .where(sql`${jobs.status} = 'created' and ${jobs.ready} and ${eq(jobs.owner, owner)}`)
      .orderBy(jobs.createdAt)
      .limit(maxPosition);
    return first.map(({ id }) => id);
  }

  return {
    /**
     * An owner's jobs, the newest first. A cursor names the last job of the page before, so that jobs which were
     * submitted meanwhile shift nothing, and a late page costs no more than the first.
     *
     * @returns `total` is null unless it was asked for, and `next`, the cursor of the next page, after the last
     */
    async list(owner: string, query: z.output<typeof listBodySchema>) {
      const { page, page_size: pageSize, cursor, model, status } = query;
      const after = instantOf(query.created_after);
      const before = instantOf(query.created_before);
      const fitting = and(
        eq(jobs.owner, owner),
        equals(jobs.model, model),
        equals(jobs.status, status),
        after === undefined ? undefined : gte(jobs.createdAt, after),
        before === undefined ? undefined : lt(jobs.createdAt, before),
      );
      const last = cursor === undefined ? undefined : readCursor(cursor);
      const offset = last ? 0 : (page - 1) * pageSize;
      const isLater =
        last && sql`(${jobs.createdAt}, ${jobs.id}) < (${last.at}::timestamptz, ${last.id})`;
      const none = sql<null>`null::jsonb`;
      // Up to 120 kB each.
      const texts = query.include_inputs
        ? { input, promptOptimization }
        : { input: none, promptOptimization: none };
      const total = query.include_total ? await db.$count(jobs, fitting) : null;
      if (offset > maxOffset) return { jobs: [] as ListedJob[], total, next: null };
      const rows = await db
        .select({ ...columns, ...texts })
        .from(jobs)
        .where(and(fitting, isLater))
        .orderBy(desc(jobs.createdAt), desc(jobs.id))
        // One more than asked for says whether there is a next page.
        .limit(pageSize + 1)
        .offset(offset);
      const shown = rows.slice(0, pageSize);
      const end = rows.length > pageSize ? shown.at(-1) : undefined;
      const next = end ? `${end.createdAt.getTime()}.${end.id}` : null;
      return { jobs: shown as ListedJob[], total, next };
    },
    /** Deletes finished jobs of an owner; the others stay. @returns the deleted rows, for their files */
    async remove(ids: readonly string[], owner: string): Promise<JobRow[]> {
      const known = ids.filter((id) => idForm.test(id));
      const hasEnded = sql`${jobs.status} in ('completed', 'failed')`;
      if (known.length === 0) return [];
      return db
        .delete(jobs)
        .where(and(inArray(jobs.id, known), eq(jobs.owner, owner), hasEnded))
        .returning();
    },
    /**
     * The number of jobs that come before this one among those its workers choose from; 0 is next. Every poll of a
     * waiting prediction asks for it, so an owner's queue is read once a second and not for each poll.
     */
    async position(job: Pick<JobRow, 'id' | 'owner' | 'status'>): Promise<number> {
      const { id, owner, status } = job;
      if (status !== 'created') return 0;
      const ids = await queues.get(owner, () => readQueue(owner));
      const place = ids.indexOf(id);
      // A job that is not in the list came later, or waits further back than is counted.
      return place < 0 ? ids.length : place;
    },
    /** Jobs that wait and that run, and the age in seconds of the one that has waited longest. */
    async depth() {
      const count = (status: PredictionStatus) =>
        sql`(count(*) filter (where ${eq(jobs.status, status)}))::int`.mapWith(Number);
      const oldest = sql`min(${jobs.createdAt}) filter (where ${jobs.status} = 'created')`;
      const [row] = await db
        .select({
          waiting: count('created'),
          processing: count('processing'),
          oldestSeconds: sql`coalesce(extract(epoch from now() - ${oldest}), 0)::float8`.mapWith(
            Number,
          ),
        })
        .from(jobs)
        .where(sql`${jobs.status} in ('created', 'processing')`);
      return row ?? { waiting: 0, processing: 0, oldestSeconds: 0 };
    },
    async preview(id: string): Promise<{ step: number; image: string } | null> {
      if (!idForm.test(id)) return null;
      const [row] = await db
        .select({ step: previews.step, image: previews.image })
        .from(previews)
        .where(eq(previews.jobId, id));
      return row ?? null;
    },
  };
}

/** Ids as they can be in the table; anything else is not there, and may not be storable either. */
export const idForm = /^[0-9a-f]{32}$/;

type Rows = Map<string, JobRow>;

/**
 * Reads jobs by id. What is asked for within one turn of the event loop is read by one statement, which starts after
 * all of it was asked (../store/README.md).
 *
 * @returns a function whose result is null where the job does not exist, or is another owner's
 */
export function createJobReader(db: Database) {
  const statement = db
    .select()
    .from(jobs)
    .where(sql`${jobs.id} = any(${sql.placeholder('ids')})`)
    // Without a name: a pooler between us and PostgreSQL may not know named statements.
    .prepare('');
  let next: { readonly ids: Set<string>; readonly rows: Promise<Rows> } | null = null;

  function startNext() {
    const ids = new Set<string>();
    const rows = new Promise<Rows>((resolve, reject) => {
      setImmediate(() => {
        next = null;
        const read = statement.execute({ ids: [...ids] });
        read.then((jobRows) => resolve(new Map(jobRows.map((job) => [job.id, job]))), reject);
      });
    });
    return { ids, rows };
  }

  return async (id: string, owner?: string): Promise<JobRow | null> => {
    if (!idForm.test(id)) return null;
    next ??= startNext();
    next.ids.add(id);
    const job = (await next.rows).get(id);
    return job && (owner === undefined || job.owner === owner) ? job : null;
  };
}
