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
  let first: Promise<void> | null = null;
  let loop: Promise<void> = Promise.resolve();

  /** @returns false when the listener is being closed; only its signal rejects a pause */
  const pause = (ms: number): Promise<boolean> =>
    delay(ms, true, { signal: stop.signal, ref: false }).catch(() => false);

  /** Listens until the connection has ended or no longer answers. */
  async function listenOnce(started: () => void): Promise<void> {
    const client = new pg.Client({ ...connection, query_timeout: 5_000 });
    const ended = new Promise<boolean>((resolve) => {
      for (const event of ['error', 'end'] as const) client.on(event, () => resolve(false));
    });
    client.on('notification', ({ channel, payload }) => {
      const known = names.find((name) => channels[name] === channel);
      if (known) listeners.emit(known, payload ?? '');
    });
    try {
      await client.connect();
      await client.query(names.map((name) => `listen ${channels[name]}`).join(';'));
      started();
      while (await Promise.race([ended, pause(checkMs)])) await client.query('select 1');
    } finally {
      // It may be broken, or never have been open.
      await client.end().catch(() => undefined);
    }
  }

  async function run(started: () => void): Promise<void> {
    let retryMs = firstRetryMs;
    do {
      await listenOnce(() => {
        retryMs = firstRetryMs;
        started();
      }).catch((error: unknown) =>
        log?.warn({ err: error }, 'the listener has no connection to the database'),
      );
      started();
      retryMs = Math.min(2 * retryMs, longestRetryMs);
    } while (await pause(retryMs / 2));
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
      await loop;
    },
  };
}
