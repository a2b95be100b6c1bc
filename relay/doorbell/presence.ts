import { and, eq, gt, lt, ne, sql } from 'drizzle-orm';
import type { WorkerDeclaration, WorkerRecord } from '../../lib/contract/v3';
import type { Caller } from '../relay';
import { storageErrors } from '../store/errors';
import { jobs, type WorkerRow, workers } from '../store/schema';
import type { Store } from '../store/store';

/** A worker that was not heard of for so long is not listed. */
export const listedMs = 60_000;
/** A row is forgotten after a day; until then a worker that comes back keeps its count of jobs. */
const keptMs = 24 * 3_600_000;
/** A worker that nothing changed about is written down again only this often. */
const rewriteMs = 15_000;

/** The table of connected workers of all nodes: who was heard of, by doorbell or by HTTP. */
export class Presence {
  /** When this node wrote a worker's row last, and with which state. */
  readonly #written = new Map<string, { state: WorkerRow['state']; at: number }>();

  constructor(readonly store: Store) {}

  /** Writes down that a worker is there. An id that another owner's worker has stays that one's. */
  async seen(
    caller: Caller,
    declaration: WorkerDeclaration,
    state: WorkerRow['state'],
  ): Promise<void> {
    const id = declaration.worker_id;
    const before = this.#written.get(id);
    if (before?.state === state && performance.now() - before.at < rewriteMs) return;
    this.#written.set(id, { state, at: performance.now() });
    const { owner, keyId: tokenId } = caller;
    await storageErrors(() =>
      this.store.db
        .insert(workers)
        .values({ id, tokenId, owner, declaration, state })
        .onConflictDoUpdate({
          target: workers.id,
          set: { tokenId, declaration, state, seenAt: sql`now()` },
          setWhere: eq(workers.owner, owner),
        }),
    );
  }

  /** A beat of a job: its worker lives and is busy, even without a socket. */
  async beating(jobId: string): Promise<void> {
    const before = this.#written.get(jobId);
    if (before !== undefined && performance.now() - before.at < rewriteMs) return;
    this.#written.set(jobId, { state: 'busy', at: performance.now() });
    await storageErrors(() =>
      this.store.db
        .update(workers)
        .set({ seenAt: sql`now()`, state: 'busy' })
        .where(eq(workers.id, this.#workerOf(jobId))),
    );
  }

  /** One more job done by the worker that had it. */
  async done(jobId: string): Promise<void> {
    this.#written.delete(jobId);
    await storageErrors(() =>
      this.store.db
        .update(workers)
        .set({ seenAt: sql`now()`, jobsDone: sql`${workers.jobsDone} + 1` })
        .where(eq(workers.id, this.#workerOf(jobId))),
    );
  }

  #workerOf(jobId: string) {
    return this.store.db.select({ id: jobs.workerId }).from(jobs).where(eq(jobs.id, jobId));
  }

  /** Its socket closed. A worker with a job goes on by HTTP; time takes it away if it does not. */
  async gone(id: string): Promise<void> {
    this.#written.delete(id);
    await storageErrors(() =>
      this.store.db.delete(workers).where(and(eq(workers.id, id), ne(workers.state, 'busy'))),
    );
  }

  /** Those heard of within a minute, on any node. */
  async list(owner?: string): Promise<WorkerRecord[]> {
    const recently = gt(workers.seenAt, new Date(Date.now() - listedMs));
    const rows = await storageErrors(() =>
      this.store.db
        .select()
        .from(workers)
        .where(owner === undefined ? recently : and(recently, eq(workers.owner, owner)))
        .orderBy(workers.connectedAt, workers.id),
    );
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
  }

  /** Forgets rows, and what this node remembers of them. */
  async sweep(): Promise<void> {
    const now = performance.now();
    for (const [id, { at }] of this.#written) if (now - at > listedMs) this.#written.delete(id);
    const before = new Date(Date.now() - keptMs);
    await storageErrors(() => this.store.db.delete(workers).where(lt(workers.seenAt, before)));
  }
}

const presences = new WeakMap<Store, Presence>();

/** The one of a node. */
export function presenceOf(store: Store): Presence {
  const presence = presences.get(store) ?? new Presence(store);
  presences.set(store, presence);
  return presence;
}
