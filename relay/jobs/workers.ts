import { and, eq, gt, lt, sql } from 'drizzle-orm';
import type { WorkerDeclaration, WorkerRecord } from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { Kept } from '../kept';
import { type JobRow, jobs, keys, type WorkerRow, workers } from '../store/schema';
import { equals, type Store } from '../store/store';
import { listedSeconds } from './context';

const listedMs = listedSeconds * 1000;
/** Rows are deleted after a day, in milliseconds: until then a worker keeps the time since when it is connected. */
const keptMs = 24 * 3_600_000;
/** That the worker of a job is alive is written only this often, in milliseconds. */
const rewriteMs = 15_000;
/** How long the connected workers that were read once are used: every poll of a waiting job needs them. */
const readMs = 1000;

const isRecent = () => gt(workers.seenAt, new Date(Date.now() - listedMs));

/** The table of the workers of all nodes. Held claims and heartbeats tell which workers are connected. */
export function createWorkers(store: Pick<Store, 'db'>) {
  const { db } = store;
  /** When this node wrote last that the worker of a job is alive, by job. */
  const written = new Map<string, number>();
  /** Rows by id that {@link flush} writes. One that is `gone` has ended its connection: it counts as seen long ago. */
  const unwritten = new Map<
    string,
    Omit<WorkerRow, 'connectedAt' | 'seenAt'> & { readonly gone: boolean }
  >();
  let writing: Promise<unknown> = Promise.resolve();

  /** A worker has claimed, or waits. Written with the next {@link flush}: a thousand of them cost one statement. */
  function seen(
    { owner, keyId: tokenId }: Caller,
    declaration: WorkerDeclaration,
    state: WorkerRow['state'],
    gone = false,
  ): void {
    const id = declaration.worker_id;
    const before = unwritten.get(id);
    // An id belongs to the worker of the owner that used it first.
    if (before && (before.owner !== owner || (gone && before.state === 'busy'))) return;
    unwritten.set(id, { id, tokenId, owner, declaration, state, gone });
    read.forget('all');
  }

  /** Writes what was seen; one write comes after the other. */
  async function flush(): Promise<void> {
    const result = writing.then(write);
    writing = result.catch(() => undefined);
    await result;
  }

  async function write(): Promise<void> {
    const rows = [...unwritten.values()];
    if (rows.length === 0) return;
    unwritten.clear();
    try {
      // One parameter: of a thousand rows with one for each value a statement takes a second on PGlite. In the order of
      // the ids, so that two nodes do not wait for each other.
      await db.execute(sql`
        insert into ${workers} (id, token_id, owner, declaration, state, seen_at)
        select id, "tokenId", owner, declaration, state, case when gone then 'epoch' else now() end
        from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as seen(
          id text, "tokenId" text, owner text, declaration jsonb, state text, gone boolean
        ) order by id
        on conflict (id) do update set token_id = excluded.token_id, state = excluded.state,
          declaration = excluded.declaration, seen_at = excluded.seen_at
        -- As in seen(). The end of a connection says nothing of a worker that computes, or has come with another token.
        where ${workers.owner} = excluded.owner and (excluded.seen_at > 'epoch'
          or (${workers.state} <> 'busy' and ${workers.tokenId} = excluded.token_id))`);
    } catch (error) {
      for (const row of rows) if (!unwritten.has(row.id)) unwritten.set(row.id, row);
      throw error;
    }
  }

  /** The one list of all workers. */
  const read = new Kept<readonly ConnectedWorker[]>(readMs, 1);

  async function readConnected(): Promise<ConnectedWorker[]> {
    await flush();
    const rows = await db
      .select({
        owner: workers.owner,
        shared: keys.shared,
        state: workers.state,
        declaration: workers.declaration,
      })
      .from(workers)
      .leftJoin(keys, eq(keys.id, workers.tokenId))
      .where(isRecent());
    return rows.map((row) => ({ ...row, shared: row.shared === true }));
  }

  return {
    seen,
    flush,
    /** A heartbeat of a job: its worker is alive and busy. */
    async heartbeat(jobId: string): Promise<void> {
      const before = written.get(jobId) ?? Number.NEGATIVE_INFINITY;
      if (performance.now() - before < rewriteMs) return;
      written.set(jobId, performance.now());
      const worker = db.select({ id: jobs.workerId }).from(jobs).where(eq(jobs.id, jobId));
      await db
        .update(workers)
        .set({ seenAt: sql`now()`, state: 'busy' })
        .where(eq(workers.id, worker));
    },
    /** The connection of a waiting worker has ended. Written at once: it may come again, to another node. */
    async disconnected(caller: Caller, declaration: WorkerDeclaration): Promise<void> {
      // The earlier state must be known first: the end of a connection does not concern a busy worker.
      await flush();
      if (unwritten.has(declaration.worker_id)) return;
      seen(caller, declaration, 'paused', true);
      await flush();
    },
    /** Workers seen within a minute, on any node; of every owner where none is named. */
    async list(owner?: string): Promise<WorkerRecord[]> {
      await flush();
      const rows = await db
        .select()
        .from(workers)
        .where(and(isRecent(), equals(workers.owner, owner)))
        .orderBy(workers.connectedAt, workers.id);
      return rows.map((row) => ({
        id: row.id,
        owner: row.owner,
        name: row.declaration.name,
        model: row.declaration.model,
        precision: row.declaration.precision,
        state: row.state,
        connected_at: row.connectedAt.toISOString(),
        seen_at: row.seenAt.toISOString(),
      }));
    },
    /** The same of every owner, as far as jobs are matched with them; up to a second old. */
    connected: (): Promise<readonly ConnectedWorker[]> => read.get('all', readConnected),
    /** Deletes workers that were not seen for a day. */
    async sweep(): Promise<void> {
      const now = performance.now();
      for (const [job, at] of written) if (now - at > listedMs) written.delete(job);
      const before = new Date(Date.now() - keptMs);
      await db.delete(workers).where(lt(workers.seenAt, before));
    },
  };
}

export type Workers = ReturnType<typeof createWorkers>;

/** A connected worker, as far as jobs are matched with it. */
export interface ConnectedWorker extends Pick<WorkerRow, 'owner' | 'state' | 'declaration'> {
  /** Whether its token takes other owners' jobs. */
  readonly shared: boolean;
}

/** Jobs of one key, whatever their parameters. */
type KeyJobs = Pick<JobRow, 'owner' | 'shared' | 'models' | 'precisions'>;

/** Whether a worker takes jobs of this key: theirs or shared ones, with its model and precision. */
export function takesFor(worker: ConnectedWorker, jobs: KeyJobs): boolean {
  const { model, precision } = worker.declaration;
  return (
    worker.state !== 'paused' &&
    (worker.owner === jobs.owner || (worker.shared && jobs.shared)) &&
    (jobs.models.includes('*') || jobs.models.includes(model)) &&
    jobs.precisions.includes(precision)
  );
}

/**
 * Whether a worker can take a job: the conditions of a claim (`misfits` in `claim.ts`), except those that
 * pass with time. For people and programs that ask what a job waits for; a claim itself is one statement.
 */
export function canTake(
  worker: ConnectedWorker,
  job: KeyJobs & Pick<JobRow, 'size' | 'duration' | 'needs' | 'needsLora' | 'needsChecker'>,
): boolean {
  const { sizes, max_duration, knows, loras, safety_checker } = worker.declaration;
  return (
    takesFor(worker, job) &&
    sizes.some((size) => size === job.size) &&
    job.duration <= max_duration &&
    job.needs.every((need) => knows.includes(need)) &&
    (loras || !job.needsLora) &&
    (safety_checker !== 'none' || !job.needsChecker)
  );
}
