import { EventEmitter } from 'node:events';
import { eq, type SQL } from 'drizzle-orm';
import type { PgColumn, PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { ApiError } from '../../lib/contract/v3';
import { within } from '../loop';
import type * as schema from './schema';

/** The database under Drizzle, whichever engine it is. A transaction has the same type. */
export type Database = PgDatabase<PgQueryResultHKT, typeof schema>;

/** Channels of messages between the nodes of one database; payloads stay under 200 bytes. */
export const channels = {
  /** A job became claimable; payload: `own:` or `shared:`, and its owner. */
  jobAvailable: 'kinora_job_available',
  /** A job's row, progress or preview changed; payload: `{id}:{status|step|preview}`. */
  jobChanged: 'kinora_job_changed',
  /** A webhook is due; payload: empty. */
  deliveryDue: 'kinora_delivery_due',
  /** A job waits for its image; payload: empty. */
  intakeDue: 'kinora_intake_due',
} as const;
export type Channel = keyof typeof channels;

/** An open database with its schema up to date. */
export interface Store {
  readonly db: Database;
  /** Sends a message to every node, this one too, soon. It may be lost: receivers also look at intervals. */
  notify(channel: Channel, payload: string): void;
  /** @returns a function that ends it */
  listen(channel: Channel, onMessage: (payload: string) => void): () => void;
  /** `select 1` within a second. @throws ApiError `STORAGE_DOWN` */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** @throws ApiError `STORAGE_DOWN` when it takes longer */
export async function withinASecond(work: PromiseLike<unknown>): Promise<void> {
  if (!(await within(1000, work))) throw new ApiError('STORAGE_DOWN');
}

/** Node's codes for a server that is not there or went away. */
const networkCodes =
  /^(ECONN(REFUSED|RESET|ABORTED)|E(HOST|NET)UNREACH|ENOTFOUND|EAI_AGAIN|EPIPE|ETIMEDOUT|ENOENT)$/;
/**
 * SQLSTATEs of a database that cannot work now: connection exceptions (class 08), lack of resources
 * (53: disk, memory, connections), shutdown and start-up (57P0x), a statement over its time (57014),
 * a read-only standby (25006), an input or output error of the disk (58). And a transaction
 * that was rolled back because of another one (40001, 40P01), which may be repeated.
 */
const unavailableStates = /^(08...|53...|57P0.|57014|25006|58...|40001|40P01)$/;
/** Messages of `pg` and PGlite without a code. */
const unavailableMessages =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Cannot use a pool after calling end|Client was closed|PGlite is clos)/;

/**
 * The API's error for an error of the database.
 *
 * @returns `STORAGE_DOWN` where the database could not be reached or cannot work now; null for any
 * other error, which is a fault of ours
 */
export function storageDown(thrown: unknown): ApiError | null {
  for (const error of causesOf(thrown)) {
    if (error instanceof ApiError) return error.code === 'STORAGE_DOWN' ? error : null;
    const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
    const isCode = networkCodes.test(code) || unavailableStates.test(code);
    if (isCode || unavailableMessages.test(error.message)) {
      return new ApiError('STORAGE_DOWN', undefined, { cause: error });
    }
  }
  return null;
}

/** Rows with this value in a column; every row where none is named. */
export function equals(column: PgColumn, value: string | undefined): SQL | undefined {
  return value === undefined ? undefined : eq(column, value);
}

/** An error, the errors of each address that was tried, and their causes, at most five deep. */
export function* causesOf(thrown: unknown, depth = 5): Generator<Error> {
  if (!(thrown instanceof Error) || depth === 0) return;
  yield thrown;
  const inner: readonly unknown[] = thrown instanceof AggregateError ? thrown.errors : [];
  for (const cause of [...inner, thrown.cause]) yield* causesOf(cause, depth - 1);
}

export interface Message {
  readonly channel: Channel;
  readonly payload: string;
}

/**
 * Gathers messages and sends them in batches: under load a NOTIFY for every submission would cost as
 * much as the submission. Equal messages of a batch are sent once.
 *
 * @param send never called twice at a time; its errors only reach `onError`, because
 * receivers also look at intervals
 */
export function createBatcher(
  send: (messages: readonly Message[]) => Promise<void>,
  onError: (error: unknown) => void,
): { add: Store['notify']; flushed(): Promise<void> } {
  let waiting = new Map<string, Message>();
  let running: Promise<void> | null = null;

  async function run(): Promise<void> {
    // Messages of the same turn of the event loop belong to the batch.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (waiting.size > 0) {
      const batch = [...waiting.values()];
      waiting = new Map();
      await send(batch).catch(onError);
    }
    running = null;
  }

  return {
    add(channel, payload) {
      waiting.set(`${channel} ${payload}`, { channel, payload });
      running ??= run();
    },
    flushed: () => running ?? Promise.resolve(),
  };
}

/** Listeners of this process. @param onError gets what a listener throws, which disturbs no other */
export function createListeners(onError: (error: unknown) => void) {
  const emitter = new EventEmitter().setMaxListeners(0);
  return {
    listen(channel: Channel, onMessage: (payload: string) => void) {
      const listener = (payload: string) => {
        try {
          onMessage(payload);
        } catch (error) {
          onError(error);
        }
      };
      emitter.on(channel, listener);
      return () => void emitter.off(channel, listener);
    },
    emit: (channel: Channel, payload: string) => void emitter.emit(channel, payload),
    clear: () => void emitter.removeAllListeners(),
  };
}
