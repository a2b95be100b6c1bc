import { and, eq, gt, lt, ne, sql } from 'drizzle-orm';
import type { WorkerDeclaration, WorkerRecord } from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { Kept } from '../kept';
import { type JobRow, jobs, keys, type WorkerRow, workers } from '../store/schema';
import { equals, type Store } from '../store/store';
import { listedSeconds } from './context';

const listedMs = listedSeconds * 1000;
/** Rows are deleted after a day, in milliseconds: until then a worker keeps the time since when it is connected. */
const keptMs = 24 * 3_600_000;
/** The row of a worker whose state is the same is written again only this often. */
const rewriteMs = 15_000;
/** How long the connected workers that were read once are used: every poll of a waiting job needs them. */
const readMs = 1000;

const isRecent = () => gt(workers.seenAt, new Date(Date.now() - listedMs));

/** The table of the workers of all nodes. Who is connected follows from held claims and heartbeats. */
export function createWorkers(store: Pick<Store, 'db'>) {
  const { db } = store;
  /** When this node wrote a worker's row last, and with which state; by worker or by job. */
  const written = new Map<string, { readonly state: WorkerRow['state']; readonly at: number }>();

  /** Whether a row is to be written; then it counts as written. */
  function isChanged(key: string, state: WorkerRow['state']): boolean {
    const before = written.get(key);
    if (before?.state === state && performance.now() - before.at < rewriteMs) return false;
    written.set(key, { state, at: performance.now() });
    read.forget('all');
    return true;
  }

  /** The one list of all workers. */
  const read = new Kept<readonly ConnectedWorker[]>(readMs, 1);

  async function readConnected(): Promise<ConnectedWorker[]> {
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
    /** A worker has claimed, or waits. */
    async seen(
      caller: Caller,
      declaration: WorkerDeclaration,
      state: WorkerRow['state'],
    ): Promise<void> {
      const id = declaration.worker_id;
      if (!isChanged(id, state)) return;
      const { owner, keyId: tokenId } = caller;
      await db
        .insert(workers)
        .values({ id, tokenId, owner, declaration, state })
        .onConflictDoUpdate({
          target: workers.id,
          set: { tokenId, declaration, state, seenAt: sql`now()` },
          // An id that another owner's worker has stays that one's.
          setWhere: eq(workers.owner, owner),
        });
    },
    /** A heartbeat of a job: its worker is alive and busy. */
    async heartbeat(jobId: string): Promise<void> {
      if (!isChanged(jobId, 'busy')) return;
      const worker = db.select({ id: jobs.workerId }).from(jobs).where(eq(jobs.id, jobId));
      await db
        .update(workers)
        .set({ seenAt: sql`now()`, state: 'busy' })
        .where(eq(workers.id, worker));
    },
    /** The connection of a waiting worker has ended. */
    async disconnected(caller: Caller, { worker_id: id }: WorkerDeclaration): Promise<void> {
      written.delete(id);
      read.forget('all');
      const idle = and(eq(workers.id, id), ne(workers.state, 'busy'));
      await db.delete(workers).where(and(idle, eq(workers.tokenId, caller.keyId)));
    },
    /** Workers seen within a minute, on any node; of every owner where none is named. */
    async list(owner?: string): Promise<WorkerRecord[]> {
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
      for (const [key, { at }] of written) if (now - at > listedMs) written.delete(key);
      const before = new Date(Date.now() - keptMs);
      await db.delete(workers).where(lt(workers.seenAt, before));
    },
  };
}

export type Workers = ReturnType<typeof createWorkers>;

/** A connected worker, as far as jobs are matched with it. */
export interface ConnectedWorker {
  readonly owner: string;
  /** Whether its token takes other owners' jobs. */
  readonly shared: boolean;
  readonly state: WorkerRow['state'];
  readonly declaration: WorkerDeclaration;
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
