import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Signal } from '../../lib/contract/signal';
import { within } from '../loop';
import type { Metrics } from '../observe/metrics';
import { type Store, withoutValues } from '../store';
import type { DeliveryRow } from '../store/schema';
import { type DeliveryEvent, reduceDelivery } from './delivery';
import { claimDue, hostOf, settle, untilNextDue } from './rows';

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
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'delivery'>;
  /** Seconds before each attempt. */
  readonly delays: readonly number[];
  readonly send: (delivery: DeliveryRow, stop: AbortSignal) => Promise<DeliveryEvent>;
}

/** Pause after an error of the database. */
const errorPauseMs = 1000;
/** Reading the outbox takes longer than this where the backlog is long. */
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
  const { store, log } = parts;
  const { concurrency, perHost, leaseMs, pollMs, stopMs } = limits;
  const wake = new Signal();
  const running = new Set<Promise<void>>();
  const hosts = new Map<string, number>();
  const interrupt = new AbortController();
  const onStop = () => wake.raise();
  signal.addEventListener('abort', onStop);

  const begin = (row: DeliveryRow) => {
    const host = hostOf(row.url);
    const count = (change: number) => hosts.set(host, (hosts.get(host) ?? 0) + change);
    count(1);
    const attempt = attemptOf(row, parts, interrupt.signal).finally(() => {
      running.delete(attempt);
      if (count(-1).get(host) === 0) hosts.delete(host);
      wake.raise();
    });
    running.add(attempt);
  };
  /** @returns the time until the next round, in milliseconds, unless a message comes */
  const round = async (): Promise<number> => {
    const limit = concurrency - running.size;
    if (limit <= 0) return pollMs;
    const rows = await claimDue(store.db, { limit, leaseMs, perHost, underWay: hosts });
    for (const row of rows) begin(row);
    // Behind the rows of a host that now has its share there may be others.
    if (rows.length > 0) return 0;
    return Math.min((await untilNextDue(store.db)) ?? pollMs, pollMs);
  };

  let stopListening = async () => {};
  try {
    stopListening = await store.listen('deliveryDue', () => wake.raise());
  } catch (thrown) {
    log.warn(
      { err: withoutValues(thrown) },
      'webhooks are not announced to this node and are found at intervals',
    );
  }
  while (!signal.aborted) {
    const startedAt = performance.now();
    const waitMs = await round().catch((thrown: unknown) => {
      log.error({ err: withoutValues(thrown) }, 'the outbox could not be read');
      return errorPauseMs;
    });
    // Attempts and jobs end often: reading takes at most half of the time.
    const tookMs = Math.min(performance.now() - startedAt, pollMs);
    if (tookMs > slowMs) await delay(tookMs, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await wake.wait(waitMs);
  }
  signal.removeEventListener('abort', onStop);
  // The connection may be broken.
  await stopListening().catch(() => undefined);
  await within(stopMs, Promise.all(running));
  interrupt.abort();
  await Promise.all(running);
}

/** One attempt from claim to record. Never rejects: a row that could not be written is retried. */
async function attemptOf(
  row: DeliveryRow,
  { store, log, metrics, delays, send }: LoopDependencies,
  stop: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  try {
    const event = await send(row, stop);
    const seconds = (performance.now() - startedAt) / 1000;
    // Progress that did not arrive is out of date: the next one follows.
    const schedule = row.event === 'progress' ? delays.slice(0, 1) : delays;
    const state = reduceDelivery(row, event, schedule, Math.random());
    const about = { delivery: row.id, prediction: row.jobId, attempt: state.attempts };
    if (!(await settle(store.db, row, state))) {
      log.warn(about, 'a webhook was taken over while it was being sent');
      return;
    }
    if (event.type === 'interrupted') return;
    const outcome = state.status === 'due' ? 'retry' : state.status;
    metrics.delivery(outcome, seconds);
    const level = outcome === 'delivered' ? 'info' : 'warn';
    const host = hostOf(row.url);
    log[level]({ ...about, host, status: state.lastStatus, seconds }, `webhook ${outcome}`);
  } catch (thrown) {
    log.error({ err: withoutValues(thrown), delivery: row.id }, 'a webhook attempt was lost');
  }
}
