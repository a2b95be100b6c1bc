import { createHash, createHmac, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { and, desc, eq, gt, isNotNull, isNull, lt, ne, or, sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { ApiError, type KeyRecord, type Scope, scopes } from '../../lib/contract/v3';
import type { Config } from '../config';
import { Kept } from '../kept';
import { type Database, equals, installationSecret, type Store } from '../store';
import { keys, owners } from '../store/schema';
import { type Caller, controlCaller, firstOwner, requireScope } from './caller';
import { processControlToken } from './control';

const prefixes = { api: 'kn', worker: 'kw', 'sign-in': 'ks' } as const;
/** What a key opens: the API, the worker protocol, or the keys page (once). */
type KeyKind = keyof typeof prefixes;
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Base-62 digits that hold 256 bits: 62⁴³ > 2²⁵⁶. */
const secretDigits = 43;
const idDigits = 8;
const keyIdForm = /^[0-9A-Za-z]{8}$/;
const keyPattern = new RegExp(
  `^(kn|kw|ks)_([0-9A-Za-z]{${idDigits}})_[0-9A-Za-z]{${secretDigits}}$`,
);

/** How long a sign-in token may wait to be used, in milliseconds: 1 h. */
const signInMs = 3_600_000;
/** How long a row is cached, in milliseconds: a revocation by another node is seen after this time. */
const freshMs = 3000;
/** Interval of writes of a key's last use, in milliseconds. */
const touchMs = 60_000;
/** "first" as a number: the advisory lock under which one node at a time makes the first keys. */
const firstStartLock = 0x66697273;
/** Most cached rows; unknown ids are not cached. */
const mostRows = 10_000;

const cookieName = 'kinora_session';
/** A session's length in seconds: 7 days. */
const sessionSeconds = 7 * 24 * 3600;

interface NewKey {
  readonly kind: KeyKind;
  readonly owner: string;
  readonly name: string;
  readonly scopes?: readonly Scope[];
  readonly shared?: boolean;
  readonly expiresAt?: Date;
  /** Version of the terms of use that was accepted for it. */
  readonly termsVersion?: string;
}

type KeyRow = typeof keys.$inferSelect;

export type Keys = ReturnType<typeof createKeys>;

/** Keys, worker tokens and sessions. */
export function createKeys(options: {
  store: Store;
  config: Pick<Config, 'KINORA_PUBLIC_URL'>;
  log: Logger;
}) {
  const { store, config } = options;
  const { db } = store;
  const log = options.log.child({ part: 'keys' });
  /** Rows by id, so that a busy key costs no query per request. */
  const rows = new Kept<KeyRow | null>(freshMs, mostRows);
  const secure = config.KINORA_PUBLIC_URL?.startsWith('https:') ?? false;
  /** Secrets of webhooks, by owner: they never change. */
  const webhookSecrets = new Kept<string>(Number.POSITIVE_INFINITY, 10_000);
  const secrets = new Kept<string>(Number.POSITIVE_INFINITY, 1);
  const sessionSecret = () => secrets.get('', () => installationSecret(db, 'signing_secret'));

  const find = async (id: string): Promise<KeyRow | null> => {
    const read = () => db.select().from(keys).where(eq(keys.id, id));
    const row = await rows.get(id, async () => (await read())[0] ?? null);
    if (row === null) rows.forget(id);
    return row;
  };

  /** Writes the last use of a key in the background. */
  const used = (row: KeyRow): void => {
    const now = new Date();
    if (row.lastUsedAt && now.getTime() - row.lastUsedAt.getTime() < touchMs) return;
    // In the cached row too: the next use is not written again.
    row.lastUsedAt = now;
    // Unless another node did so meanwhile.
    const old = or(isNull(keys.lastUsedAt), lt(keys.lastUsedAt, new Date(now.getTime() - touchMs)));
    db.update(keys)
      .set({ lastUsedAt: now })
      .where(and(eq(keys.id, row.id), old))
      .catch((err: unknown) => {
        log.warn({ keyId: row.id, err }, 'the last use of a key could not be written');
      });
  };

  /** The row of a valid key. @throws ApiError `UNAUTHORIZED` */
  const verified = async (key: string | null): Promise<KeyRow> => {
    const id = key && idOfKey(key);
    const row = id && (await find(id));
    const right = row && sameText(row.hash, hashKey(key));
    if (!right || row.kind === 'sign-in' || !isValid(row)) throw unauthorized();
    used(row);
    return row;
  };

  const sessionRow = async (cookie: string | null): Promise<KeyRow | null> => {
    const keyId = cookie && readSession(await sessionSecret(), cookie);
    const row = keyId && (await find(keyId));
    if (!row || row.revokedAt !== null) return null;
    // The hour of a sign-in token is the time to sign in; the session has its own end.
    return row.kind === 'sign-in' || (isValid(row) && isAdmin(row)) ? row : null;
  };

  const isControl = (key: string | null): boolean =>
    key !== null && sameText(key, processControlToken());

  /** The row of a sign-in token, which is used up, or of an admin key. @throws ApiError `UNAUTHORIZED` */
  const signInRow = async (token: string): Promise<KeyRow> => {
    const now = new Date();
    // One of several requests at the same time gets the row.
    const usable = and(
      eq(keys.id, idOfKey(token) ?? ''),
      eq(keys.kind, 'sign-in'),
      eq(keys.hash, hashKey(token)),
      isNull(keys.lastUsedAt),
      isNull(keys.revokedAt),
      gt(keys.expiresAt, now),
    );
    const [taken] = await db.update(keys).set({ lastUsedAt: now }).where(usable).returning();
    if (taken) rows.forget(taken.id);
    const row = taken ?? (await verified(token));
    if (taken || (row.kind === 'api' && isAdmin(row))) return row;
    throw unauthorized();
  };

  return {
    /** @returns the whole key, which is never shown again */
    async create(input: NewKey): Promise<{ key: string; record: KeyRecord }> {
      const { key, row } = await insertKey(db, input);
      const { id, kind, owner } = row;
      log.info({ keyId: id, kind, owner }, 'key created');
      return { key, record: recordOf(row) };
    },

    /** Newest first. Sign-in tokens only while they can be used or their session may last. */
    async list(owner?: string): Promise<KeyRecord[]> {
      const now = new Date();
      const aSessionAgo = new Date(now.getTime() - sessionSeconds * 1000);
      const isWaiting = and(isNull(keys.lastUsedAt), gt(keys.expiresAt, now));
      const isInUse = and(isNotNull(keys.lastUsedAt), gt(keys.createdAt, aSessionAgo));
      const isOpen = and(isNull(keys.revokedAt), or(isWaiting, isInUse));
      const listed = await db
        .select()
        .from(keys)
        .where(and(equals(keys.owner, owner), or(ne(keys.kind, 'sign-in'), isOpen)))
        .orderBy(desc(keys.createdAt), keys.id);
      return listed.map(recordOf);
    },

    /** @throws ApiError `NOT_FOUND` */
    async revoke(id: string, owner?: string): Promise<KeyRecord> {
      rows.forget(id);
      const row = await revokeRow(db, id, owner);
      // Again: an authentication may have read the old row in between.
      rows.forget(id);
      log.info({ keyId: id, kind: row.kind, owner: row.owner }, 'key revoked');
      return recordOf(row);
    },

    /**
     * @param authorization the header's value
     * @throws ApiError `UNAUTHORIZED` for every kind of wrong key; `FORBIDDEN` for a valid key of another kind
     */
    async authenticate(authorization: string | null, kind: 'api' | 'worker'): Promise<Caller> {
      const key = bearer(authorization);
      if (kind === 'api' && isControl(key)) return controlCaller;
      const row = await verified(key);
      if (row.kind === kind) return callerOf(row);
      throw new ApiError('FORBIDDEN', wrongKind[row.kind]);
    },

    /**
     * The caller with an admin key, a session cookie or the control token. With a cookie, a method other than
     * GET and HEAD must come from one of our own pages.
     *
     * @throws ApiError `UNAUTHORIZED`, `FORBIDDEN`
     */
    async authenticateAdmin(request: Pick<Request, 'method' | 'headers'>): Promise<Caller> {
      const key = bearer(request.headers.get('authorization'));
      if (key !== null) {
        if (isControl(key)) return controlCaller;
        const row = await verified(key);
        requireScope(row, 'admin');
        return callerOf(row);
      }
      const row = await sessionRow(request.headers.get('cookie'));
      if (!row) throw unauthorized();
      requireOwnOrigin(request, config.KINORA_PUBLIC_URL);
      used(row);
      return callerOf(row);
    },

    /**
     * Starts a session with an admin key or a sign-in token, which is used up.
     *
     * @returns `setCookie` is the whole header value
     */
    async signIn(token: string): Promise<{ owner: string; setCookie: string }> {
      const row = await signInRow(token);
      // `keyId.until.mac`: the end in Unix seconds, with an HMAC over both. Revoking the key or token ends the session.
      const text = `${row.id}.${Math.floor(Date.now() / 1000) + sessionSeconds}`;
      const mac = sign(await sessionSecret(), text);
      const setCookie = attributes(`${text}.${mac}`, sessionSeconds, secure);
      log.info({ keyId: row.id, owner: row.owner }, 'signed in');
      return { owner: row.owner, setCookie };
    },

    /** Ends a session. @returns the `Set-Cookie` value that removes the cookie */
    async signOut(cookie: string | null): Promise<string> {
      const row = await sessionRow(cookie);
      // Revoking a sign-in token ends its session for copies of the cookie too.
      if (row?.kind === 'sign-in') {
        await revokeRow(db, row.id, row.owner);
        rows.forget(row.id);
      }
      return attributes('', 0, secure);
    },

    /**
     * Makes an API key and a worker token where there never were any, and a sign-in token with them, by which the
     * administrator signs in. The key has the scopes of any new one. Without the terms of use it makes a sign-in token alone, as long as there is no other key. A key that was not made is
     * empty in the answer.
     *
     * @param termsVersion the version that was accepted; null where none was
     * @returns null where nothing was made
     */
    async firstStart(termsVersion: string | null): Promise<{
      apiKey: string;
      workerToken: string;
      signInToken: string;
    } | null> {
      return await db.transaction(async (tx) => {
        // Nodes that start together ask one after the other.
        await tx.execute(sql`select pg_advisory_xact_lock(${firstStartLock})`);
        // A revoked key counts.
        const existing = await tx.selectDistinct({ kind: keys.kind }).from(keys);
        const known = new Set(existing.map(({ kind }) => kind));
        const accepted = termsVersion !== null;
        const [hasApi, hasWorker] = [known.has('api'), known.has('worker')];
        if (accepted ? hasApi && hasWorker : hasApi || hasWorker) return null;
        const make = async (kind: KeyKind, name: string, isWanted: boolean) => {
          if (!isWanted) return '';
          const input = { kind, owner: firstOwner, name };
          return (await insertKey(tx, { ...input, ...(accepted && { termsVersion }) })).key;
        };
        return {
          apiKey: await make('api', 'First key', accepted && !hasApi),
          workerToken: await make('worker', 'First worker', accepted && !hasWorker),
          signInToken: await make('sign-in', 'First sign-in', true),
        };
      });
    },

    webhookSecret: (owner: string): Promise<string> =>
      webhookSecrets.get(owner, () => ownerSecret(db, owner)),
  };
}

const wrongKind = {
  api: 'This is an API key: workers connect with a worker token.',
  worker: 'This is a worker token: it takes jobs and cannot call the API.',
  'sign-in': 'This is a sign-in token: it opens the Keys page and nothing else.',
} as const satisfies Record<KeyKind, string>;

function callerOf(row: KeyRow): Caller {
  const { id: keyId, owner, shared } = row;
  const allowed = scopes.filter((scope) => row.scopes.includes(scope));
  return { keyId, owner, scopes: allowed, shared };
}

function isValid(row: KeyRow): boolean {
  return row.revokedAt === null && (row.expiresAt === null || row.expiresAt.getTime() > Date.now());
}

function isAdmin(row: KeyRow): boolean {
  return row.scopes.includes('admin');
}

function bearer(authorization: string | null): string | null {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? null;
}

/** The same answer for every reason, so that it does not say which part was wrong. */
function unauthorized(): ApiError {
  return new ApiError('UNAUTHORIZED', undefined, { headers: { 'WWW-Authenticate': 'Bearer' } });
}

/** Makes a key: `<prefix>_<8-character id>_<256 random bits in base 62>`. */
async function insertKey(db: Database, input: NewKey): Promise<{ key: string; row: KeyRow }> {
  await ensureOwner(db, input.owner);
  const inAnHour = input.kind === 'sign-in' ? new Date(Date.now() + signInMs) : null;
  const values = { expiresAt: inAnHour, ...input, scopes: scopesOf(input) };
  const id = randomDigits(idDigits);
  const key = `${prefixes[input.kind]}_${id}_${randomDigits(secretDigits)}`;
  const [row] = await db
    .insert(keys)
    .values({ ...values, id, hash: hashKey(key), last4: key.slice(-4) })
    .returning();
  if (!row) throw new Error('The key was not inserted.');
  return { key, row };
}

function scopesOf({ kind, scopes: requested }: NewKey): Scope[] {
  if (kind === 'worker') return [];
  if (kind === 'sign-in') return [...scopes];
  return requested ? [...new Set(requested)] : scopes.filter((scope) => scope !== 'admin');
}

async function ensureOwner(db: Database, name: string): Promise<void> {
  const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`;
  await db.insert(owners).values({ name, webhookSecret }).onConflictDoNothing();
}

/** The secret of an owner's webhooks; a missing owner is made. */
async function ownerSecret(db: Database, name: string): Promise<string> {
  await ensureOwner(db, name);
  const [row] = await db.select().from(owners).where(eq(owners.name, name));
  if (!row) throw new Error('The owner was deleted.');
  return row.webhookSecret;
}

/** @throws ApiError `NOT_FOUND` */
async function revokeRow(db: Database, id: string, owner: string | undefined): Promise<KeyRow> {
  // Any other text is no id, and PostgreSQL may not take it.
  const isFound = keyIdForm.test(id) ? eq(keys.id, id) : sql`false`;
  const [row] = await db
    .update(keys)
    // A second revocation keeps the time of the first.
    .set({ revokedAt: sql`coalesce(${keys.revokedAt}, now())` })
    .where(and(isFound, equals(keys.owner, owner)))
    .returning();
  if (!row) throw new ApiError('NOT_FOUND', 'There is no key with this id.');
  return row;
}

function recordOf(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    kind: row.kind,
    owner: row.owner,
    name: row.name,
    hint: `${prefixes[row.kind]}_${row.id}…${row.last4}`,
    scopes: row.scopes,
    shared: row.shared,
    terms_version: row.termsVersion,
    created_at: row.createdAt.toISOString(),
    expires_at: row.expiresAt?.toISOString() ?? null,
    revoked_at: row.revokedAt?.toISOString() ?? null,
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
  };
}

/** The signed-in key in a request's `Cookie` header; null for none, a wrong signature or a session that has ended. */
function readSession(secret: string, cookieHeader: string): string | null {
  for (const part of cookieHeader.split(';')) {
    const [name, value = ''] = part.trim().split('=', 2);
    if (name !== cookieName) continue;
    const [keyId = '', until = '', mac = ''] = value.split('.');
    if (!sameText(mac, sign(secret, `${keyId}.${until}`))) continue;
    if (Number(until) * 1000 > Date.now()) return keyId;
  }
  return null;
}

/** HttpOnly hides the cookie from scripts, SameSite=Strict and {@link requireOwnOrigin} from other sites. */
function attributes(value: string, maxAge: number, secure: boolean): string {
  const cookie = `${cookieName}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict`;
  return secure ? `${cookie}; Secure` : cookie;
}

/** HMAC-SHA256. @param secret of the installation; a key for this one purpose is derived from it */
function sign(secret: string, text: string): string {
  const key = createHmac('sha256', secret).update('kinora session v1').digest();
  return createHmac('sha256', key).update(text).digest('base64url');
}

/**
 * Refuses requests that another site made a signed-in browser send. SameSite=Strict keeps the cookie from other
 * sites, but another port or subdomain of the same host is the same site. `Sec-Fetch-Site` is what the browser itself
 * says of the request's page; it is absent on plain http and in old browsers, so `Origin` is compared too.
 *
 * @throws ApiError `FORBIDDEN`
 */
export function requireOwnOrigin(
  { method, headers }: Pick<Request, 'method' | 'headers'>,
  publicUrl: string | undefined,
): void {
  if (method === 'GET' || method === 'HEAD') return;
  const isOwnSite = (headers.get('sec-fetch-site') ?? 'same-origin') === 'same-origin';
  const origin = headers.get('origin') ?? '';
  const named = publicUrl === undefined ? '' : new URL(publicUrl).origin;
  // Or of the name that the browser called, for servers with several names.
  const isOwnOrigin =
    URL.canParse(origin) && (origin === named || new URL(origin).host === headers.get('host'));
  if (isOwnSite && isOwnOrigin) return;
  throw new ApiError('FORBIDDEN', 'The request did not come from a page of this Kinora.');
}

function idOfKey(key: string): string | null {
  return keyPattern.exec(key)?.[2] ?? null;
}

/** SHA-256, hex. A slow password hash is not needed, as 256 random bits cannot be guessed. */
function hashKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

export function sameText(left: string, right: string): boolean {
  // `timingSafeEqual` needs equal lengths, which hashes have.
  const [a, b] = [left, right].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

function randomDigits(count: number): string {
  return Array.from({ length: count }, () => digits.charAt(randomInt(digits.length))).join('');
}
