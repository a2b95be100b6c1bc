import { and, desc, eq, lt, lte, sql } from 'drizzle-orm';
import { ApiError, type DeliveryRecord } from '../../lib/contract/v3';
import { type DeliveryRow, deliveries } from '../store/schema';
import type { Database } from '../store/store';
import { type DeliveryState, reduceDelivery } from './delivery';

/** Finished deliveries that one sweep removes. */
const sweepRows = 1000;

/** Due rows that a claim considers. */
const candidates = 512;

/** A time in milliseconds from the database's now, as the clocks of nodes may differ. */
const fromNow = (ms: number) => sql<Date>`now() + ${ms}::float8 * interval '1 millisecond'`;

/** The host of a delivery, with the port where it is not the usual one. */
export function hostOf(url: string): string {
  return url.split('/')[2] ?? '';
}

/**
 * Takes due deliveries for this node. Their next attempt is put `leaseMs` ahead: a node that dies in the
 * middle of its attempts leaves rows that become due again, and the time itself is the lease's token.
 *
 * @param options.underWay attempts of this node by host
 * @param options.perHost most attempts of this node for one host, those that are taken included
 */
export async function claimDue(
  db: Database,
  options: {
    readonly limit: number;
    readonly leaseMs: number;
    readonly perHost: number;
    readonly underWay: ReadonlyMap<string, number>;
  },
): Promise<DeliveryRow[]> {
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
  const taken = db
    .select({ id: deliveries.id })
    .from(deliveries)
    .where(
      and(
        eq(deliveries.status, 'due'),
        // Another node may have taken it meanwhile.
        lte(deliveries.nextAt, sql`now()`),
        sql`${deliveries.id} = any(array(${withinShare}))`,
      ),
    )
    .orderBy(deliveries.nextAt)
    .limit(limit)
    .for('update', { skipLocked: true });
  return (
    db
      .update(deliveries)
      .set({ nextAt: fromNow(leaseMs) })
      // As an array it is read once.
      .where(sql`${deliveries.id} = any(array(${taken}))`)
      .returning()
  );
}

/**
 * Writes the result of an attempt.
 *
 * @param claimed the row as {@link claimDue} gave it
 * @returns false where another node has taken it over, or it was replayed meanwhile; nothing is changed
 */
export async function settle(
  db: Database,
  claimed: Pick<DeliveryRow, 'id' | 'nextAt'>,
  state: DeliveryState,
): Promise<boolean> {
  const settled = await db
    .update(deliveries)
    .set(columnsOf(state))
    .where(
      and(
        eq(deliveries.id, claimed.id),
        eq(deliveries.status, 'due'),
        eq(deliveries.nextAt, claimed.nextAt),
      ),
    )
    .returning({ id: deliveries.id });
  return settled.length > 0;
}

/** Milliseconds until the next delivery becomes due; null when none is to come. */
export async function untilNextDue(db: Database): Promise<number | null> {
  const [row] = await db
    .select({
      ms: sql<number | string | null>`extract(epoch from min(${deliveries.nextAt}) - now()) * 1000`,
    })
    .from(deliveries)
    .where(and(eq(deliveries.status, 'due'), sql`${deliveries.nextAt} > now()`));
  return row === undefined || row.ms === null ? null : Number(row.ms);
}

/** Deliveries, newest first; of every owner where none is named. */
export async function listDeliveries(
  db: Database,
  owner: string | undefined,
  query: { page: number; pageSize: number; status?: DeliveryRow['status'] | undefined },
): Promise<DeliveryRecord[]> {
  const rows = await db
    .select()
    .from(deliveries)
    .where(
      and(
        owner === undefined ? undefined : eq(deliveries.owner, owner),
        query.status === undefined ? undefined : eq(deliveries.status, query.status),
      ),
    )
    .orderBy(desc(deliveries.createdAt), desc(deliveries.id))
    .limit(query.pageSize)
    .offset((query.page - 1) * query.pageSize);
  return rows.map(toRecord);
}

/**
 * Makes a delivery due again, whatever it is now, with a new set of attempts. One that is under way goes
 * on and is sent again: receivers tell by the `webhook-id`.
 *
 * @throws ApiError `NOT_FOUND`
 */
export function replayDelivery(
  db: Database,
  id: string,
  owner: string | undefined,
): Promise<DeliveryRecord> {
  return db.transaction(async (tx) => {
    const own = owner === undefined ? undefined : eq(deliveries.owner, owner);
    const [row] = await tx
      .select()
      .from(deliveries)
      .where(and(eq(deliveries.id, id), own))
      .for('update');
    if (!row) throw new ApiError('NOT_FOUND', 'There is no webhook with this id.');
    const state = reduceDelivery(row, { type: 'replayed' }, [], 0);
    const [replayed] = await tx
      .update(deliveries)
      .set(columnsOf(state))
      .where(eq(deliveries.id, id))
      .returning();
    return toRecord(replayed ?? row);
  });
}

function columnsOf({ delayMs, ...rest }: DeliveryState) {
  return delayMs === null
    ? { ...rest, finishedAt: sql<Date>`now()` }
    : { ...rest, finishedAt: null, nextAt: fromNow(delayMs) };
}

function toRecord(row: DeliveryRow): DeliveryRecord {
  return {
    id: row.id,
    prediction_id: row.jobId,
    event: row.event,
    url: row.url,
    status: row.status,
    attempts: row.attempts,
    next_at: row.status === 'due' ? row.nextAt.toISOString() : null,
    last_status: row.lastStatus,
    last_answer: row.lastAnswer,
    created_at: row.createdAt.toISOString(),
    finished_at: row.finishedAt?.toISOString() ?? null,
  };
}

/** Removes deliveries that ended more than `days` ago, {@link sweepRows} at most: the rest comes next time. */
export async function removeFinished(db: Database, days: number): Promise<void> {
  const old = db
    .select({ id: deliveries.id })
    .from(deliveries)
    .where(lt(deliveries.finishedAt, fromNow(-days * 86_400_000)))
    .limit(sweepRows)
    .for('update', { skipLocked: true });
  // As an array it is read once.
  await db.delete(deliveries).where(sql`${deliveries.id} = any(array(${old}))`);
}
