import { randomBytes } from 'node:crypto';
import type { WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller, Jobs } from '../relay';
import type { JobRow } from '../store/schema';
import { type Asking, claimJobs, skippedFor, windowSize } from './claim';
import type { JobsDependencies } from './context';

type Answer = Awaited<ReturnType<Jobs['claim']>>;

interface Waiting extends Asking {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** Workers that share one statement. */
const batchSize = 64;
/** Share of the time in which a node looks at queues as a whole. */
const behindShare = 0.05;

/**
 * Gives jobs to workers. A new job rings every tab, and all of them ask at once: those of one owner that
 * can do the same go together in one statement, which costs about as much as one for a single worker.
 */
export function createClaimer(
  dependencies: Pick<JobsDependencies, 'store' | 'config'>,
): Jobs['claim'] {
  const { db } = dependencies.store;
  /** By what a claim looks at. A kind is there while one of its statements is under way. */
  const kinds = new Map<string, Waiting[]>();
  /** When the whole queue may be looked at again. */
  let nextLookBehind = 0;

  async function run(kind: string, waiting: Waiting[]): Promise<void> {
    for (;;) {
      const [first, ...others] = waiting.splice(0, batchSize);
      if (!first) break;
      const batch = [first, ...others] as const;
      try {
        await answer(batch);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    kinds.delete(kind);
  }

  async function answer(batch: readonly [Waiting, ...Waiting[]]): Promise<void> {
    const [{ caller, worker }] = batch;
    const given = new Map<string | null, JobRow>();
    const give = (rows: readonly JobRow[]) => {
      for (const job of rows) given.set(job.leaseToken, job);
    };
    give(await claimJobs(db, dependencies, batch));
    const [first, ...others] = batch.filter(({ token }) => !given.has(token));
    const skipped = first ? await skippedFor(db, caller, worker) : {};
    if (first && isFull(skipped)) give(await lookBehind([first, ...others]));
    for (const { token, resolve } of batch) {
      const job = given.get(token) ?? null;
      resolve(job ? { job, skipped: {} } : { job, skipped });
    }
  }

  /**
   * What waits behind the window must come to its turn, even if nobody ever takes what waits before it.
   * So the whole queue is looked at too, but for no more than a {@link behindShare} of the time,
   * whatever its length and however often workers ask.
   */
  async function lookBehind(asking: readonly [Waiting, ...Waiting[]]): Promise<readonly JobRow[]> {
    const start = performance.now();
    if (start < nextLookBehind) return [];
    nextLookBehind = Number.POSITIVE_INFINITY;
    try {
      return await claimJobs(db, dependencies, asking, { everything: true });
    } finally {
      const end = performance.now();
      nextLookBehind = end + (end - start) / behindShare;
    }
  }

  return (caller, worker) =>
    new Promise((resolve, reject) => {
      const token = randomBytes(24).toString('base64url');
      const asking = { caller, worker, token, resolve, reject };
      const kind = kindOf(caller, worker);
      const waiting = kinds.get(kind);
      if (waiting) {
        waiting.push(asking);
        return;
      }
      const begun = [asking];
      kinds.set(kind, begun);
      void run(kind, begun);
    });
}

/** Whether so much did not fit that there may be more behind it. */
function isFull({ 'not-ready': _, ...misfits }: Answer['skipped']): boolean {
  return Object.values(misfits).reduce((sum, count) => sum + count, 0) >= windowSize;
}

function kindOf({ owner, shared }: Caller, worker: WorkerDeclaration): string {
  const { model, precision, sizes, loras, max_duration } = worker;
  return JSON.stringify([owner, shared, model, precision, [...sizes].sort(), loras, max_duration]);
}
