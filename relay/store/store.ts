import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
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
  readonly engine: 'pglite' | 'postgres';
  readonly db: Database;
  /** Sends a message to every node, this one too. It may be lost: receivers also look at intervals. */
  notify(channel: Channel, payload: string): Promise<void>;
  /** @returns a function that ends it */
  listen(channel: Channel, onMessage: (payload: string) => void): Promise<() => Promise<void>>;
  /** `select 1` within a second. @throws ApiError `STORAGE_DOWN` */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** @throws ApiError `STORAGE_DOWN` when it takes longer */
export async function withinASecond(work: PromiseLike<unknown>): Promise<void> {
  if (!(await within(1000, work))) throw new ApiError('STORAGE_DOWN');
}
