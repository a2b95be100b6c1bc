import type { Logger } from 'pino';
import { storageErrors, withoutValues } from '../store/errors';
import type { Database } from '../store/store';
import { type KeyRow, selectKey, touchRow } from './records';

/** How long a row is believed, in milliseconds: as late a revocation on another node is seen here. */
const freshMs = 3000;
/** How often the last use of a key is written, in milliseconds. */
const touchMs = 60_000;
/** Rows kept at most; made-up ids leave none. */
const mostRows = 10_000;

/** Rows of keys by id, kept for a few seconds, so that a busy key costs no query per request. */
export class KeyLookup {
  readonly #db: Database;
  readonly #log: Logger;
  readonly #rows = new Map<string, { readonly row: Promise<KeyRow | null>; readonly at: number }>();
  readonly #touchedAt = new Map<string, number>();

  constructor(db: Database, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  async get(id: string): Promise<KeyRow | null> {
    const kept = this.#rows.get(id);
    if (kept && performance.now() - kept.at < freshMs) return await kept.row;
    if (this.#rows.size >= mostRows) this.#rows.clear();
    const entry = { row: storageErrors(() => selectKey(this.#db, id)), at: performance.now() };
    this.#rows.set(id, entry);
    const drop = () => {
      if (this.#rows.get(id) === entry) this.#rows.delete(id);
    };
    try {
      const row = await entry.row;
      if (row === null) drop();
      return row;
    } catch (thrown) {
      drop();
      throw thrown;
    }
  }

  /** The next look reads the row again: it was changed by this node. */
  forget(id: string): void {
    this.#rows.delete(id);
  }

  /** Notes a use, without making anybody wait for it. */
  used({ id, lastUsedAt }: KeyRow): void {
    const now = Date.now();
    const last = Math.max(lastUsedAt?.getTime() ?? 0, this.#touchedAt.get(id) ?? 0);
    if (now - last < touchMs) return;
    this.#touchedAt.set(id, now);
    touchRow(this.#db, id, touchMs).catch((error: unknown) => {
      this.#log.warn(
        { keyId: id, err: withoutValues(error) },
        'the last use of a key could not be written',
      );
    });
  }
}
