import { randomBytes } from 'node:crypto';
import { and, desc, eq, gt, isNotNull, isNull, lt, ne, or, type SQL, sql } from 'drizzle-orm';
import { ApiError, type KeyRecord, type Scope, scopes } from '../../lib/contract/v3';
import { keys, owners, settings } from '../store/schema';
import type { Database } from '../store/store';
import { hashKey, hintOf, isKeyId, type KeyKind, mintKey } from './format';
import { sessionSeconds } from './session';

/** Rows of the tables `keys`, `owners` and `settings`; callers of these functions check permissions. */
export type KeyRow = typeof keys.$inferSelect;

/** How long a sign-in token may wait to be used, in milliseconds: 1 h. */
const signInMs = 3_600_000;

/** A key to be made. */
export interface NewKey {
  readonly kind: KeyKind;
  readonly owner: string;
  readonly name: string;
  readonly scopes?: readonly Scope[];
  readonly shared?: boolean;
  readonly expiresAt?: Date;
  /** Version of the terms of use that was accepted for it. */
  readonly termsVersion?: string;
}

/** Inserts a key, and its owner where there is none of that name. */
export async function insertKey(
  db: Database,
  input: NewKey,
): Promise<{ key: string; row: KeyRow }> {
  await ensureOwner(db, input.owner);
  for (;;) {
    const { id, key } = mintKey(input.kind);
    const [row] = await db
      .insert(keys)
      .values({
        id,
        kind: input.kind,
        owner: input.owner,
        name: input.name,
        hash: hashKey(key),
        last4: key.slice(-4),
        scopes: scopesOf(input),
        shared: input.shared ?? false,
        termsVersion: input.termsVersion ?? null,
        expiresAt: input.expiresAt ?? (input.kind === 'sign-in' ? inAnHour() : null),
      })
      // Of 62⁸ ids two are rarely the same; then another is drawn.
      .onConflictDoNothing({ target: keys.id })
      .returning();
    if (row) return { key, row };
  }
}

function inAnHour(): Date {
  return new Date(Date.now() + signInMs);
}

function scopesOf({ kind, scopes: asked }: NewKey): Scope[] {
  if (kind === 'worker') return [];
  if (kind === 'sign-in') return [...scopes];
  return asked ? [...new Set(asked)] : scopes.filter((scope) => scope !== 'admin');
}

async function ensureOwner(db: Database, name: string): Promise<void> {
  const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`;
  await db.insert(owners).values({ name, webhookSecret }).onConflictDoNothing();
}

/** The secret of an owner's webhooks; a missing owner is made. */
export async function ownerSecret(db: Database, name: string): Promise<string> {
  for (;;) {
    const [row] = await db
      .select({ secret: owners.webhookSecret })
      .from(owners)
      .where(eq(owners.name, name));
    if (row) return row.secret;
    await ensureOwner(db, name);
  }
}

/** Newest first. Sign-in tokens only while they can be used or their session may last. */
export async function selectKeys(db: Database, owner: string | undefined): Promise<KeyRow[]> {
  const now = new Date();
  const aSessionAgo = new Date(now.getTime() - sessionSeconds * 1000);
  const usable = or(
    ne(keys.kind, 'sign-in'),
    and(isNull(keys.revokedAt), isNull(keys.lastUsedAt), gt(keys.expiresAt, now)),
    and(isNull(keys.revokedAt), isNotNull(keys.lastUsedAt), gt(keys.createdAt, aSessionAgo)),
  );
  return await db
    .select()
    .from(keys)
    .where(owner === undefined ? usable : and(usable, eq(keys.owner, owner)))
    .orderBy(desc(keys.createdAt), keys.id);
}

/** @throws ApiError `NOT_FOUND` */
export async function revokeRow(
  db: Database,
  id: string,
  owner: string | undefined,
): Promise<KeyRow> {
  const found = eq(keys.id, id);
  const [row] = isKeyId(id)
    ? await db
        .update(keys)
        // A second revocation keeps the time of the first.
        .set({ revokedAt: sql`coalesce(${keys.revokedAt}, now())` })
        .where(owner === undefined ? found : and(found, eq(keys.owner, owner)))
        .returning()
    : [];
  if (!row) throw new ApiError('NOT_FOUND', 'There is no key with this id.');
  return row;
}

/** The row of a key by its id. */
export async function selectKey(db: Database, id: string): Promise<KeyRow | null> {
  const [row] = await db.select().from(keys).where(eq(keys.id, id));
  return row ?? null;
}

/** Uses up a sign-in token: of several requests at the same time one gets the row. */
export async function takeSignIn(db: Database, id: string, hash: string): Promise<KeyRow | null> {
  const now = new Date();
  const usable = and(
    eq(keys.id, id),
    eq(keys.kind, 'sign-in'),
    eq(keys.hash, hash),
    isNull(keys.lastUsedAt),
    isNull(keys.revokedAt),
    gt(keys.expiresAt, now),
  );
  const [row] = await db.update(keys).set({ lastUsedAt: now }).where(usable).returning();
  return row ?? null;
}

/** Notes the use of a key, unless another node did so within `everyMs`. */
export async function touchRow(db: Database, id: string, everyMs: number): Promise<void> {
  const now = Date.now();
  const old = or(isNull(keys.lastUsedAt), lt(keys.lastUsedAt, new Date(now - everyMs)));
  await db
    .update(keys)
    .set({ lastUsedAt: new Date(now) })
    .where(and(eq(keys.id, id), old));
}

/**
 * Whether an installation never had an API key, a worker token, or any key but sign-in tokens; a revoked
 * one counts as had. To be called in a transaction, so that nodes that start together ask one after the other.
 */
export async function missingKeys(
  db: Database,
): Promise<{ api: boolean; worker: boolean; any: boolean }> {
  const value = new Date().toISOString();
  // Written for the row's lock, which lasts to the end of the transaction.
  await db
    .insert(settings)
    .values({ name: 'first_start', value })
    .onConflictDoUpdate({ target: settings.name, set: { name: 'first_start' } });
  const none = async (kind: SQL | undefined) =>
    (await db.select({ id: keys.id }).from(keys).where(kind).limit(1)).length === 0;
  return {
    api: await none(eq(keys.kind, 'api')),
    worker: await none(eq(keys.kind, 'worker')),
    any: await none(ne(keys.kind, 'sign-in')),
  };
}

/** A key for lists, without its secret. */
export function recordOf(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    kind: row.kind,
    owner: row.owner,
    name: row.name,
    hint: hintOf(row.kind, row.id, row.last4),
    scopes: row.scopes,
    shared: row.shared,
    terms_version: row.termsVersion,
    created_at: row.createdAt.toISOString(),
    expires_at: row.expiresAt?.toISOString() ?? null,
    revoked_at: row.revokedAt?.toISOString() ?? null,
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
  };
}
