import { eq, sql } from 'drizzle-orm';
import { type JobRow, jobs } from '../store/schema';
import type { Database } from '../store/store';

/** Jobs before a job are counted no further. */
export const maxPosition = 1000;
/** How long one look at a queue serves, in milliseconds, and how long when this node changed it. */
const keptMs = 1000;
const keptChangedMs = 50;
/** Owners whose queues are remembered. */
const maxOwners = 1000;

interface Look {
  readonly at: number;
  readonly places: Promise<ReadonlyMap<string, number>>;
  changed: boolean;
}

/**
 * Places in the queue. Every poll of a waiting prediction asks for one, so an owner's queue is looked at
 * once and not for each: an answer is up to a second old.
 */
export function createPositions(db: Database): {
  of(job: JobRow): Promise<number>;
  /** A job of this owner began, ended or came back. */
  changed(owner: string): void;
} {
  const looks = new Map<string, Look>();

  async function look(owner: string): Promise<ReadonlyMap<string, number>> {
    const first = await db
      .select({ id: jobs.id })
      .from(jobs)
      .where(sql`${jobs.status} = 'created' and ${jobs.ready} and ${eq(jobs.owner, owner)}`)
      .orderBy(sql`${jobs.priority} desc, ${jobs.createdAt}`)
      .limit(maxPosition);
    return new Map(first.map(({ id }, index) => [id, index]));
  }

  return {
    async of(job) {
      if (job.status !== 'created') return 0;
      const { owner } = job;
      let kept = looks.get(owner);
      const age = kept ? performance.now() - kept.at : 0;
      if (!kept || age > (kept.changed ? keptChangedMs : keptMs)) {
        kept = { at: performance.now(), places: look(owner), changed: false };
        looks.delete(owner);
        looks.set(owner, kept);
        const [oldest] = looks.keys();
        if (looks.size > maxOwners && oldest !== undefined) looks.delete(oldest);
        // A failure is this answer's, not that of the next second.
        kept.places.catch(() => looks.delete(owner));
      }
      const places = await kept.places;
      // Not seen: it came after the look, or waits further back than is counted.
      return places.get(job.id) ?? places.size;
    },
    changed(owner) {
      const kept = looks.get(owner);
      if (kept) kept.changed = true;
    },
  };
}
