import { existsSync } from 'node:fs';
import path from 'node:path';
import pino from 'pino';
import { z } from 'zod';
import { ApiError, type createKeySchema, endpoints, type KeyRecord } from '../../lib/contract/v3';
import type { Config } from '../config';
import { openDatabase } from '../database';
import { type Control, readControl } from './control';
import { createKeys } from './keys';
import { firstOwner } from './owner';

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
  const control = await readControl(config);
  if (control && (await answers(control))) return throughServer(control);
  return await throughStore(config);
}

/** The process of the control file may have died, and its number may be another's by now. */
async function answers({ origin }: Control): Promise<boolean> {
  try {
    await fetch(`${origin}/healthz`, { signal: AbortSignal.timeout(5000) });
    return true;
  } catch (error) {
    // Refused: nobody listens. Anything else may be a server that is busy.
    const cause = error instanceof Error ? error.cause : undefined;
    return !(cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED');
  }
}

function throughServer(control: Control): KeysDoor {
  const call = async <Answer extends z.ZodType>(
    endpoint: { method: string; path: string; answer: Answer },
    body?: unknown,
    path: string = endpoint.path,
  ): Promise<z.output<Answer>> => {
    const response = await fetch(control.origin + path, {
      method: endpoint.method,
      headers: {
        Authorization: `Bearer ${control.token}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok) return endpoint.answer.parse(answer);
    const refusal = z.object({ message: z.string() }).safeParse(answer);
    if (response.status === 404) throw new ApiError('NOT_FOUND', refusal.data?.message);
    throw new Error(refusal.data?.message ?? `The server answered ${response.status}.`);
  };
  return {
    running: true,
    publicUrl: control.publicUrl,
    madeIn: null,
    create: async (key) => (await call(endpoints.createKey, key)).data,
    list: async () => (await call(endpoints.listKeys)).data.keys,
    revoke: async (id) => {
      const path = endpoints.revokeKey.path.replace('{id}', encodeURIComponent(id));
      return await orNull(call(endpoints.revokeKey, undefined, path).then(({ data }) => data));
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
    throw thrown;
  }
}

function inDays(days: number): Date {
  return new Date(Date.now() + days * 24 * 3_600_000);
}
