import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Metrics } from '../relay';
import { type Store, withoutValues } from '../store';
import type { DeliveryRow } from '../store/schema';
import { Backlog, type BacklogLimits } from './backlog';
import { type DeliveryEvent, reduceDelivery } from './delivery';
import { claimDue, receiverOf, settle, untilNextDue } from './rows';
import { Wake } from './wake';

/** How much at a time, and how long. Durations in milliseconds. */
export interface LoopLimits extends BacklogLimits {
  /** How long a claimed delivery may wait for its receiver's turn. */
  readonly queueMs: number;
  /** When an attempt that nobody finished is made again: longer than the wait and an attempt can take. */
  readonly leaseMs: number;
  /** Longest time between two looks at the outbox. */
  readonly pollMs: number;
  /** How long a stop lets attempts go on before it breaks them off. */
  readonly stopMs: number;
}

/** What the loop works with. */
export interface LoopParts {
  readonly store: Store;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'delivery'>;
  /** Seconds before each attempt. */
  readonly delays: readonly number[];
  readonly send: (delivery: DeliveryRow, stop: AbortSignal) => Promise<DeliveryEvent>;
}

/** Wait after the database failed. */
const troubleMs = 1000;
/** A look at the outbox that takes longer is one at a long backlog. */
const slowMs = 50;

/**
 * Delivers what is due until the signal; then finishes what is under way. Any number of nodes may run it
 * on one database.
 */
export async function deliverUntil(
  signal: AbortSignal,
  parts: LoopParts,
  limits: LoopLimits,
): Promise<void> {
  const { store, log } = parts;
  const wake = new Wake();
  const backlog = new Backlog(limits);
  const underWay = new Set<Promise<void>>();
  const breakOff = new AbortController();
  const onStop = () => wake.ring();
  signal.addEventListener('abort', onStop);

  const begin = () => {
    for (;;) {
      const row = signal.aborted ? null : backlog.take(performance.now());
      if (row === null) return;
      const attempt = attemptOf(row, parts, breakOff.signal).finally(() => {
        underWay.delete(attempt);
        if (backlog.ended(receiverOf(row.url))) wake.ring();
        begin();
      });
      underWay.add(attempt);
    }
  };
  /** @returns how long there is nothing to do */
  const round = async (): Promise<number> => {
    const { capacity } = backlog;
    const held = backlog.held();
    const limit = capacity.total - [...held.values()].reduce((sum, count) => sum + count, 0);
    if (limit <= 0) return limits.pollMs;
    const startBy = performance.now() + limits.queueMs;
    const { leaseMs } = limits;
    const { perReceiver } = capacity;
    const rows = await claimDue(store.db, { limit, leaseMs, held, perReceiver });
    backlog.add(rows, startBy);
    begin();
    // Behind the rows of a receiver that now has its share there may be others.
    if (rows.length > 0) return 0;
    return Math.min((await untilNextDue(store.db)) ?? limits.pollMs, limits.pollMs);
  };

  let stopListening = async () => {};
  try {
    stopListening = await store.listen('deliveryDue', () => wake.ring());
  } catch (thrown) {
    log.warn({ err: withoutValues(thrown) }, 'webhooks are found by time alone');
  }
  while (!signal.aborted) {
    const startedAt = performance.now();
    const waitMs = await round().catch((thrown: unknown) => {
      log.error({ err: withoutValues(thrown) }, 'the outbox could not be read');
      return troubleMs;
    });
    // Rings come as often as jobs end; looking takes at most half of the time, however long it takes.
    const tookMs = Math.min(performance.now() - startedAt, limits.pollMs);
    if (tookMs > slowMs) await delay(tookMs, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await wake.wait(waitMs);
  }
  signal.removeEventListener('abort', onStop);
  await stopListening().catch(() => undefined);
  const givenBack = backlog.clear().map(async (row) => {
    const state = reduceDelivery(row, { type: 'interrupted' }, parts.delays, 0);
    await settle(store.db, row, state).catch(() => undefined);
  });
  await Promise.all(givenBack);
  const patience = new AbortController();
  await Promise.race([
    Promise.all(underWay),
    delay(limits.stopMs, undefined, { signal: patience.signal }).catch(() => undefined),
  ]);
  patience.abort();
  breakOff.abort();
  await Promise.all(underWay);
}

/** One attempt from claim to record. Never rejects: a row that could not be written is retried. */
async function attemptOf(
  row: DeliveryRow,
  { store, log, metrics, delays, send }: LoopParts,
  stop: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  try {
    const event = await send(row, stop);
    const seconds = (performance.now() - startedAt) / 1000;
    const state = reduceDelivery(row, event, delays, Math.random());
    const about = { delivery: row.id, prediction: row.jobId, attempt: state.attempts };
    if (!(await settle(store.db, row, state))) {
      log.warn(about, 'a webhook was taken over while it was being sent');
      return;
    }
    if (event.type === 'interrupted') return;
    const outcome = state.status === 'due' ? 'retry' : state.status;
    metrics.delivery(outcome, seconds);
    const level = outcome === 'delivered' ? 'info' : 'warn';
    const receiver = receiverOf(row.url);
    log[level]({ ...about, receiver, status: state.lastStatus, seconds }, `webhook ${outcome}`);
  } catch (thrown) {
    log.error({ err: withoutValues(thrown), delivery: row.id }, 'a webhook attempt was lost');
  }
}
