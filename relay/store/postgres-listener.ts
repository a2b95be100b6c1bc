import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from 'pino';
import { Listeners } from './notifier';
import { type Channel, channels, type Store } from './store';

const firstRetryMs = 200;
const longestRetryMs = 10_000;
/** Interval at which a connection is checked, in milliseconds: a lost one may report no error. */
const checkMs = 20_000;
const names = Object.keys(channels) as Channel[];

/**
 * One connection that listens to every channel and reconnects when it breaks. Messages meanwhile are lost;
 * receivers also look at intervals.
 */
export function startListener(
  connection: pg.ClientConfig,
  log?: Logger,
): { listen: Store['listen']; close(): Promise<void> } {
  const listeners = new Listeners((error) =>
    log?.error({ err: error }, 'a listener of the store failed'),
  );
  const stop = new AbortController();
  let client: pg.Client | null = null;
  let first: Promise<void> | null = null;
  let loop: Promise<void> = Promise.resolve();

  /** Connects and listens. @returns a promise that resolves when the connection has ended */
  async function connect(): Promise<{ ended: Promise<void> }> {
    const next = new pg.Client({ ...connection, query_timeout: 5_000 });
    const ended = new Promise<void>((resolve) => {
      next.on('error', () => resolve());
      next.on('end', () => resolve());
    });
    next.on('notification', ({ channel, payload }) => {
      const known = names.find((name) => channels[name] === channel);
      if (known) listeners.emit(known, payload ?? '');
    });
    try {
      await next.connect();
      await next.query(
        Object.values(channels)
          .map((name) => `listen ${name}`)
          .join(';'),
      );
    } catch (error) {
      // It may never have been open.
      await next.end().catch(() => undefined);
      throw error;
    }
    client = next;
    return { ended: Promise.race([ended, watch(next)]) };
  }

  /** Resolves when the connection no longer answers. */
  async function watch(watched: pg.Client): Promise<void> {
    while (client === watched && (await pause(checkMs))) {
      try {
        await watched.query('select 1');
      } catch {
        return;
      }
    }
  }

  async function run(started: () => void): Promise<void> {
    let retryMs = firstRetryMs;
    while (!stop.signal.aborted) {
      try {
        const { ended } = await connect();
        started();
        retryMs = firstRetryMs;
        await ended;
      } catch (error) {
        log?.warn({ err: error }, 'the listener could not connect to the database');
      }
      const broken = client;
      client = null;
      // It is replaced in any case.
      await broken?.end().catch(() => undefined);
      started();
      if (!(await pause(retryMs))) return;
      retryMs = Math.min(2 * retryMs, longestRetryMs);
    }
  }

  /** @returns false when the listener is being closed */
  function pause(ms: number): Promise<boolean> {
    // Only its signal rejects a pause.
    return delay(ms, true, { signal: stop.signal, ref: false }).catch(() => false);
  }

  return {
    async listen(channel, onMessage) {
      const remove = listeners.add(channel, onMessage);
      // The first listener opens the connection; a database that is down now is tried again later.
      first ??= new Promise((started) => {
        loop = run(started);
      });
      await first;
      return async () => remove();
    },
    async close() {
      stop.abort();
      listeners.clear();
      // It may be broken.
      await client?.end().catch(() => undefined);
      await loop;
    },
  };
}
