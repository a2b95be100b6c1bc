import { and, eq } from 'drizzle-orm';
import { type JobRow, jobs } from '../store/schema';
import { createClaims } from './claim';
import { createSteps, type JobsDependencies } from './context';
import { createIntakes } from './intake';
import { createLeases } from './lease';
import { createJobReader, createQueries } from './queries';
import { createSubmissions } from './submit';
import { sweepJobs } from './sweep';

export type { JobsDependencies } from './context';
export { createHeldClaims, type HeldClaims } from './held-claims';
export { type ClaimedJob, isClaimed } from './lease';
export { isTerminal } from './status';
export { createSweeper } from './sweep';
export { createWatches, type Watches } from './watches';
export { canTake, createWorkers, takesFor, type Workers } from './workers';

/**
 * The jobs of an installation: leases per attempt with a fencing token (README.md). Every method is one
 * transaction.
 */
export function createJobs(dependencies: JobsDependencies) {
  const { db } = dependencies.store;
  const apply = createSteps(dependencies);
  const { takeNext, ...claims } = createClaims(dependencies);
  return {
    get: createJobReader(db),
    ...createSubmissions(dependencies),
    ...createQueries(db),
    ...claims,
    ...createLeases(dependencies, apply, takeNext),
    ...createIntakes(dependencies, apply),
    /**
     * Ends a job at once as failed, "cancelled by user"; a finished job stays as it is. The answer to its next
     * heartbeat tells the worker.
     */
    async cancel(id: string, owner: string): Promise<JobRow | null> {
      const own = and(eq(jobs.id, id), eq(jobs.owner, owner));
      const { before, job } = await apply(own, { type: 'cancelled' });
      return job ?? before ?? null;
    },
    /**
     * Requeues or fails what has lost its lease or passed its deadline. Any node, any number at once.
     *
     * @param which lost leases alone, or all but them; everything where absent
     */
    sweep: (which?: 'leases' | 'others') => sweepJobs(dependencies, apply, which),
  };
}

/** The one place that changes a job's row. */
export type Jobs = ReturnType<typeof createJobs>;
