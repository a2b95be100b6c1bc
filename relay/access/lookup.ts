import type { Logger } from 'pino';
import { Kept } from '../kept';
import { storageErrors, withoutValues } from '../store/errors';
import type { Database } from '../store/store';
import { type KeyRow, selectKey, touchRow } from './records';

/** How long a row is cached, in milliseconds: a revocation by another node is seen after this time. */
const freshMs = 3000;
/** Interval of writes of a key's last use, in milliseconds. */
const touchMs = 60_000;
/** Most cached rows; unknown ids are not cached. */
const mostRows = 10_000;

/** A cache of keys by id, so that a busy key costs no query per request. */
export class KeyLookup {
  readonly #rows = new Kept<KeyRow | null>(freshMs, mostRows);
  readonly #touchedAt = new Map<string, number>();

  constructor(
    private readonly db: Database,
    private readonly log: Logger,
  ) {}

  async get(id: string): Promise<KeyRow | null> {
    const row = await this.#rows.get(id, () => storageErrors(() => selectKey(this.db, id)));
    if (row === null) this.forget(id);
    return row;
  }

  /** Drops a cached row that this node has changed. */
  forget(id: string): void {
    this.#rows.forget(id);
  }

  /** Writes the last use in the background. */
  used({ id, lastUsedAt }: KeyRow): void {
    const now = Date.now();
    const last = Math.max(lastUsedAt?.getTime() ?? 0, this.#touchedAt.get(id) ?? 0);
    if (now - last < touchMs) return;
    this.#touchedAt.set(id, now);
    touchRow(this.db, id, touchMs).catch((error: unknown) => {
      this.log.warn(
        { keyId: id, err: withoutValues(error) },
        'the last use of a key could not be written',
      );
    });
  }
}
