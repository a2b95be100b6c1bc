import type { WorkerDeclaration } from '../../lib/contract/v3';
import type { JobRow, WorkerRow } from '../store/schema';

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
