import { randomBytes } from 'node:crypto';
import type { WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller, Jobs } from '../relay';
import type { JobRow } from '../store/schema';
import { type Asking, claimJobs, passOverSeconds, skippedFor, windowSize } from './claim';
import { type JobsDependencies, workerName } from './context';

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
export function createClaimer(dependencies: Pick<JobsDependencies, 'store' | 'config'>): {
  readonly claim: Jobs['claim'];
  /** A worker failed at a job that others may do: what it is spared must not be kept from others. */
  failed(worker: string): void;
} {
  const { db } = dependencies.store;
  /** By what a claim looks at. A kind is there while one of its statements is under way. */
  const kinds = new Map<string, Waiting[]>();
  /** Workers that failed lately at a job, and until when they ask alone. */
  const failedUntil = new Map<string, number>();
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
    // Told as soon as it is given: what fails after it must not lose it.
    const tellGiven = () => {
      for (const { token, resolve } of batch) {
        const job = given.get(token);
        if (job) resolve({ job, skipped: {} });
      }
    };
    give(await claimJobs(db, dependencies, batch));
    tellGiven();
    const [first, ...others] = batch.filter(({ token }) => !given.has(token));
    if (!first) return;
    const skipped = await skippedFor(db, caller, worker);
    if (isFull(skipped)) give(await lookBehind([first, ...others]));
    tellGiven();
    for (const { token, resolve } of batch) if (!given.has(token)) resolve({ job: null, skipped });
  }

  /** What a claim looks at; a worker that failed lately is a kind of its own. */
  function kindOf({ owner, shared, keyId }: Caller, worker: WorkerDeclaration): string {
    const { model, precision, sizes, loras, max_duration } = worker;
    const name = workerName(keyId, worker.worker_id);
    const alone = (failedUntil.get(name) ?? 0) > performance.now() ? name : '';
    const sorted = [...sizes].sort();
    return JSON.stringify([owner, shared, model, precision, sorted, loras, max_duration, alone]);
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

  const claim: Jobs['claim'] = (caller, worker) =>
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
  return {
    claim,
    failed(worker) {
      const time = performance.now();
      for (const [name, until] of failedUntil) if (until <= time) failedUntil.delete(name);
      failedUntil.set(worker, time + passOverSeconds * 1000);
    },
  };
}

/** Whether so much did not fit that there may be more behind it. */
function isFull({ 'not-ready': _, ...misfits }: Answer['skipped']): boolean {
  return Object.values(misfits).reduce((sum, count) => sum + count, 0) >= windowSize;
}
