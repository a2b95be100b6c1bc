import { existsSync } from 'node:fs';
import path from 'node:path';
import pino from 'pino';
import type { z } from 'zod';
import { ApiError, type createKeySchema, endpoints, type KeyRecord } from '../../lib/contract/v3';
import type { Config } from '../config';
import { openDatabase } from '../database';
import type { Control } from './control';
import { createKeys } from './keys';
import { firstOwner } from './owner';
import { askServer, findServer, ServerRefusal } from './running-server';

/** The three things that the command does, wherever it does them. */
export interface KeysDoor {
  create(key: z.output<typeof createKeySchema>): Promise<{ key: string; record: KeyRecord }>;
  list(): Promise<KeyRecord[]>;
  /** @returns null where there is no such key */
  revoke(id: string): Promise<KeyRecord | null>;
  /** Whether the server runs: a link leads nowhere without it. */
  readonly running: boolean;
  readonly publicUrl: string;
  /** Folder of the database, where this command made it; null where it was there. */
  readonly madeIn: string | null;
  close(): Promise<void>;
}

/**
 * The running server where there is one, else the database itself.
 *
 * @throws Error with one sentence when the database belongs to another process
 */
export async function openDoor(config: Config): Promise<KeysDoor> {
  const server = await findServer(config);
  return server ? throughServer(server) : await throughStore(config);
}

function throughServer(control: Control): KeysDoor {
  return {
    running: true,
    publicUrl: control.publicUrl,
    madeIn: null,
    create: async (key) => (await askServer(control, endpoints.createKey, { body: key })).data,
    list: async () => (await askServer(control, endpoints.listKeys)).data.keys,
    revoke: async (id) => {
      const path = endpoints.revokeKey.path.replace('{id}', encodeURIComponent(id));
      return await orNull(
        askServer(control, endpoints.revokeKey, { path }).then(({ data }) => data),
      );
    },
    close: async () => {},
  };
}

async function throughStore(config: Config): Promise<KeysDoor> {
  const log = pino({ level: 'silent' });
  const isNew =
    config.DATABASE_URL === undefined && !existsSync(path.join(config.KINORA_DATA, 'db'));
  const store = await openDatabase(config, log);
  const keys = createKeys({ store, config, log });
  return {
    running: false,
    publicUrl: config.KINORA_PUBLIC_URL ?? `http://${config.KINORA_HOST}:${config.PORT}`,
    madeIn: isNew ? config.KINORA_DATA : null,
    create: async ({ kind, name, owner = firstOwner, scopes, shared, expires_in_days: days }) => {
      const ends = days === undefined ? {} : { expiresAt: inDays(days) };
      return await keys.create({ kind, name, owner, shared, ...(scopes && { scopes }), ...ends });
    },
    list: async () => await keys.list(),
    revoke: async (id) => await orNull(keys.revoke(id)),
    close: async () => await store.close(),
  };
}

async function orNull<Found>(work: Promise<Found>): Promise<Found | null> {
  try {
    return await work;
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.code === 'NOT_FOUND') return null;
    if (thrown instanceof ServerRefusal && thrown.status === 404) return null;
    throw thrown;
  }
}

function inDays(days: number): Date {
  return new Date(Date.now() + days * 24 * 3_600_000);
}
