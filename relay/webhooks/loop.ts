import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { within, workUntil } from '../loop';
import type { Metrics } from '../observe/metrics';
import type { Store } from '../store';
import type { DeliveryRow } from '../store/schema';
import { type Attempt, afterAttempt } from './delivery';
import { hostOf, type Outbox } from './outbox';

/** Limits of the loop; durations in milliseconds. */
export interface LoopLimits {
  /** Attempts at a time on this node. */
  readonly concurrency: number;
  /** Attempts at a time on this node for one host, so that a host without an answer cannot block all. */
  readonly perHost: number;
  /** When an attempt whose node has ended is repeated: longer than an attempt can take. */
  readonly leaseMs: number;
  /** Longest time between two reads of the outbox. */
  readonly pollMs: number;
  /** How long a stop waits for attempts before it interrupts them. */
  readonly stopMs: number;
}

/** What the loop works with. */
export interface LoopDependencies {
  readonly store: Store;
  readonly outbox: Outbox;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'delivery'>;
  /** Seconds before each attempt. */
  readonly delays: readonly number[];
  /** Makes one attempt; null where the signal has interrupted it. */
  readonly send: (delivery: DeliveryRow, stop: AbortSignal) => Promise<Attempt | null>;
}

/** Pause after an error of the database, in milliseconds. */
const errorPauseMs = 1000;
/** Reading the outbox takes longer than this where the backlog is long, in milliseconds. */
const slowMs = 50;

/**
 * Delivers what is due until the signal; then finishes what has begun. Any number of nodes may run it
 * on one database.
 */
export async function deliverUntil(
  signal: AbortSignal,
  parts: LoopDependencies,
  limits: LoopLimits,
): Promise<void> {
  const { store, outbox, log } = parts;
  const { concurrency, perHost, leaseMs, pollMs, stopMs } = limits;
  const hosts = new Map<string, number>();
  const interrupt = new AbortController();

  const attempt = async (row: DeliveryRow) => {
    const host = hostOf(row.url);
    const count = (change: number) => hosts.set(host, (hosts.get(host) ?? 0) + change);
    count(1);
    await attemptOf(row, parts, interrupt.signal);
    if (count(-1).get(host) === 0) hosts.delete(host);
  };
  const listen = (onNews: () => void) => store.listen('deliveryDue', onNews);
  const { running } = await workUntil(signal, { listen, log }, async (begin, underWay) => {
    const startedAt = performance.now();
    try {
      const limit = concurrency - underWay;
      if (limit <= 0) return pollMs;
      const rows = await outbox.claimDue({ limit, leaseMs, perHost, underWay: hosts });
      for (const row of rows) begin(attempt(row));
      // Behind the rows of a host that now has its share there may be others.
      if (rows.length > 0) return 0;
      return Math.min((await outbox.untilNextDue()) ?? pollMs, pollMs);
    } catch (thrown) {
      log.error({ err: thrown }, 'the outbox could not be read');
      return errorPauseMs;
    } finally {
      // Attempts and jobs end often: reading takes at most half of the time.
      const tookMs = Math.min(performance.now() - startedAt, pollMs);
      if (tookMs > slowMs) await delay(tookMs, undefined, { signal }).catch(() => undefined);
    }
  });
  await within(stopMs, running);
  interrupt.abort();
  await running;
}

/** One attempt from claim to record. Never rejects: a row that could not be written is retried. */
async function attemptOf(
  row: DeliveryRow,
  { outbox, log, metrics, delays, send }: LoopDependencies,
  stop: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  try {
    const attempt = await send(row, stop);
    const seconds = (performance.now() - startedAt) / 1000;
    // Progress that did not arrive is out of date: the next one follows.
    const schedule = row.event === 'progress' ? delays.slice(0, 1) : delays;
    const state = attempt && afterAttempt(row, attempt, schedule, Math.random());
    const isSettled = await outbox.settle(row, state);
    const about = { delivery: row.id, prediction: row.jobId, attempt: state?.attempts };
    if (!isSettled) log.warn(about, 'a webhook was taken over while it was being sent');
    if (!isSettled || !state) return;
    const outcome = state.status === 'due' ? 'retry' : state.status;
    metrics.delivery(outcome, seconds);
    const level = outcome === 'delivered' ? 'info' : 'warn';
    const host = hostOf(row.url);
    log[level]({ ...about, host, status: state.lastStatus, seconds }, `webhook ${outcome}`);
  } catch (thrown) {
    log.error({ err: thrown, delivery: row.id }, 'a webhook attempt was lost');
  }
}
