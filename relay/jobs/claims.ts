import { randomBytes } from 'node:crypto';
import type { WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller, Jobs } from '../relay';
import { type Asking, claimJobs, skippedFor } from './claim';
import type { JobsDependencies } from './context';

type Answer = Awaited<ReturnType<Jobs['claim']>>;

interface Waiting extends Asking {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** Workers that share one statement. */
const batchSize = 64;

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
    const given = new Map(
      (await claimJobs(db, dependencies, batch)).map((job) => [job.leaseToken, job]),
    );
    const skipped = given.size < batch.length ? await skippedFor(db, caller, worker) : {};
    for (const { token, resolve } of batch) {
      const job = given.get(token) ?? null;
      resolve(job ? { job, skipped: {} } : { job, skipped });
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

function kindOf({ owner, shared }: Caller, worker: WorkerDeclaration): string {
  const { model, precision, sizes, loras, max_duration } = worker;
  return JSON.stringify([owner, shared, model, precision, [...sizes].sort(), loras, max_duration]);
}
