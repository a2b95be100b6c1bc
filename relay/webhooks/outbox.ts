import { and, desc, eq, lt, lte, sql } from 'drizzle-orm';
import { bareAddress } from '../../lib/contract';
import { ApiError, type DeliveryRecord } from '../../lib/contract/v3';
import { type DeliveryRow, deliveries } from '../store/schema';
import { type Database, equals } from '../store/store';

/** Finished deliveries that one sweep removes. */
const sweepRows = 1000;
/** Due rows that a claim considers. */
const candidates = 512;

/** The columns of a delivery that an attempt changes. */
export type DeliveryState = Pick<
  DeliveryRow,
  'status' | 'attempts' | 'lastStatus' | 'lastAnswer'
> & {
  /** Milliseconds from now until the next attempt; null when there is none to come. */
  readonly delayMs: number | null;
};

/** A time in milliseconds from the database's now, as the clocks of nodes may differ. */
const fromNow = (ms: number) => sql<Date>`now() + ${ms}::float8 * interval '1 millisecond'`;

/** The host of a delivery, with the port where it is not the usual one. */
export function hostOf(url: string): string {
  return url.split('/')[2] ?? '';
}

export function createOutbox(db: Database) {
  return {
    /**
     * Takes due deliveries for this node. Their next attempt is put `leaseMs` ahead: a node that dies in the
     * middle of its attempts leaves rows that become due again, and the time itself is the lease's token.
     *
     * @param options.underWay attempts of this node by host
     * @param options.perHost most attempts of this node for one host, those that are taken included
     */
    async claimDue(options: {
      readonly limit: number;
      readonly leaseMs: number;
      readonly perHost: number;
      readonly underWay: ReadonlyMap<string, number>;
    }): Promise<DeliveryRow[]> {
      const { limit, leaseMs, perHost, underWay } = options;
      const counts = JSON.stringify(Object.fromEntries(underWay));
      const withinShare = sql`
        select id from (
          select id, busy + row_number() over (partition by host order by next_at) as place
          from (
            select id, next_at, host, coalesce((${counts}::jsonb ->> host)::int, 0) as busy
            from (
              select id, next_at, split_part(url, '/', 3) as host
              from ${deliveries} where status = 'due' and next_at <= now()
            ) as waiting
            where coalesce((${counts}::jsonb ->> host)::int, 0) < ${perHost}::int
            order by next_at limit ${candidates}::int
          ) as first
        ) as placed where place <= ${perHost}::int`;
      const isDue = and(eq(deliveries.status, 'due'), lte(deliveries.nextAt, sql`now()`));
      const taken = db
        .select({ id: deliveries.id })
        .from(deliveries)
        .where(and(isDue, sql`${deliveries.id} = any(array(${withinShare}))`))
        .orderBy(deliveries.nextAt)
        .limit(limit)
        .for('update', { skipLocked: true });
      return await db
        .update(deliveries)
        .set({ nextAt: fromNow(leaseMs) })
        // As an array it is read once.
        .where(sql`${deliveries.id} = any(array(${taken}))`)
        .returning();
    },
    /**
     * Writes the result of an attempt.
     *
     * @param claimed the row as `claimDue` gave it
     * @param state null where the attempt does not count, and may be made again at once
     * @returns false where another node has taken it over, or it was replayed meanwhile; nothing is changed
     */
    async settle(
      { id, nextAt }: Pick<DeliveryRow, 'id' | 'nextAt'>,
      state: DeliveryState | null,
    ): Promise<boolean> {
      const { delayMs, ...columns } = state ?? { delayMs: 0 };
      const next = delayMs === null ? { finishedAt: sql`now()` } : { nextAt: fromNow(delayMs) };
      const isOwn = and(eq(deliveries.status, 'due'), eq(deliveries.nextAt, nextAt));
      const settled = await db
        .update(deliveries)
        .set({ ...columns, ...next })
        .where(and(eq(deliveries.id, id), isOwn))
        .returning({ id: deliveries.id });
      return settled.length > 0;
    },
    /** Milliseconds until the next delivery becomes due; null when none is to come. */
    async untilNextDue(): Promise<number | null> {
      const ms = sql<
        number | string | null
      >`extract(epoch from min(${deliveries.nextAt}) - now()) * 1000`;
      const [row] = await db
        .select({ ms })
        .from(deliveries)
        .where(and(eq(deliveries.status, 'due'), sql`${deliveries.nextAt} > now()`));
      return row === undefined || row.ms === null ? null : Number(row.ms);
    },
    /** Deliveries, newest first; of every owner where none is named. */
    async list(
      owner: string | undefined,
      query: { page: number; pageSize: number; status?: DeliveryRow['status'] | undefined },
    ): Promise<DeliveryRecord[]> {
      const { page, pageSize, status } = query;
      const rows = await db
        .select()
        .from(deliveries)
        .where(and(equals(deliveries.owner, owner), equals(deliveries.status, status)))
        .orderBy(desc(deliveries.createdAt), desc(deliveries.id))
        .limit(pageSize)
        .offset((page - 1) * pageSize);
      return rows.map(toRecord);
    },
    /**
     * Makes a delivery due again, whatever it is now, with a new set of attempts. One that is under way goes
     * on and is sent again: receivers tell by the `webhook-id`.
     *
     * @throws ApiError `NOT_FOUND`
     */
    async replay(id: string, owner: string | undefined): Promise<DeliveryRecord> {
      const [row] = await db
        .update(deliveries)
        .set({
          status: 'due',
          attemptsBefore: sql`${deliveries.attempts}`,
          nextAt: sql`now()`,
          finishedAt: null,
        })
        .where(and(eq(deliveries.id, id), equals(deliveries.owner, owner)))
        .returning();
      if (!row) throw new ApiError('NOT_FOUND', 'There is no webhook with this id.');
      return toRecord(row);
    },
    /** Removes deliveries that ended more than `days` ago, {@link sweepRows} at most: the rest comes next time. */
    async removeFinished(days: number): Promise<void> {
      const old = db
        .select({ id: deliveries.id })
        .from(deliveries)
        .where(lt(deliveries.finishedAt, fromNow(-days * 86_400_000)))
        .limit(sweepRows)
        .for('update', { skipLocked: true });
      // As an array it is read once.
      await db.delete(deliveries).where(sql`${deliveries.id} = any(array(${old}))`);
    },
  };
}

function toRecord(row: DeliveryRow): DeliveryRecord {
  return {
    id: row.id,
    prediction_id: row.jobId,
    event: row.event,
    url: bareAddress(row.url),
    status: row.status,
    attempts: row.attempts,
    next_at: row.status === 'due' ? row.nextAt.toISOString() : null,
    last_status: row.lastStatus,
    last_answer: row.lastAnswer,
    created_at: row.createdAt.toISOString(),
    finished_at: row.finishedAt?.toISOString() ?? null,
  };
}
