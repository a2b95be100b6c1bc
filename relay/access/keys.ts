import type { Logger } from 'pino';
import { ApiError, type KeyRecord, scopes } from '../../lib/contract/v3';
import type { Config } from '../config';
import { Kept } from '../kept';
import { installationSecret, type Store, storageErrors, withoutValues } from '../store';
import { type Caller, controlCaller, firstOwner, requireScope } from './caller';
import { processControlToken } from './control';
import { hashKey, idOfKey, type KeyKind, sameText } from './format';
import {
  insertKey,
  type KeyRow,
  missingKeys,
  type NewKey,
  ownerSecret,
  recordOf,
  revokeRow,
  selectKey,
  selectKeys,
  takeSignIn,
  touchRow,
} from './records';
import {
  clearedCookie,
  readSession,
  requireOwnOrigin,
  sessionCookie,
  sessionSeconds,
} from './session';

/** How long a row is cached, in milliseconds: a revocation by another node is seen after this time. */
const freshMs = 3000;
/** Interval of writes of a key's last use, in milliseconds. */
const touchMs = 60_000;
/** Most cached rows; unknown ids are not cached. */
const mostRows = 10_000;

/** What of a request to an operation for admins is looked at. */
type AdminRequest = Pick<Request, 'method' | 'headers'>;

export type Keys = ReturnType<typeof createKeys>;

/**
 * Keys, worker tokens and sessions.
 *
 * @param options.controlToken the token in the control file; default this process's own
 */
export function createKeys(options: {
  store: Store;
  config: Pick<Config, 'KINORA_PUBLIC_URL'>;
  log: Logger;
  controlToken?: string;
}) {
  const { store, config, controlToken = processControlToken() } = options;
  const { db } = store;
  const log = options.log.child({ part: 'keys' });
  /** Rows by id, so that a busy key costs no query per request. */
  const rows = new Kept<KeyRow | null>(freshMs, mostRows);
  const secure = config.KINORA_PUBLIC_URL?.startsWith('https:') ?? false;
  /** Of webhooks, by owner: they never change. */
  const webhookSecrets = new Kept<string>(Number.POSITIVE_INFINITY, 10_000);
  const secrets = new Kept<string>(Number.POSITIVE_INFINITY, 1);
  const sessionSecret = () =>
    secrets.get('session', () => installationSecret(db, 'signing_secret'));

  const find = async (id: string): Promise<KeyRow | null> => {
    const row = await rows.get(id, () => storageErrors(() => selectKey(db, id)));
    if (row === null) rows.forget(id);
    return row;
  };

  /** Writes the last use of a key in the background. */
  const used = (row: KeyRow): void => {
    const now = new Date();
    if (row.lastUsedAt && now.getTime() - row.lastUsedAt.getTime() < touchMs) return;
    // In the cached row too: the next use is not written again.
    row.lastUsedAt = now;
    touchRow(db, row.id, touchMs).catch((error: unknown) => {
      const err = withoutValues(error);
      log.warn({ keyId: row.id, err }, 'the last use of a key could not be written');
    });
  };

  /** The row of a valid key. @throws ApiError `UNAUTHORIZED` */
  const verified = async (key: string | null): Promise<KeyRow> => {
    const id = key === null ? null : idOfKey(key);
    const row = id === null ? null : await find(id);
    const right = key !== null && row !== null && sameText(row.hash, hashKey(key));
    if (!right || row.kind === 'sign-in' || !isValid(row)) throw unauthorized();
    used(row);
    return row;
  };

  /** The row behind a session; null where the session is not valid. */
  const sessionRow = async (cookie: string | null): Promise<KeyRow | null> => {
    const session = cookie === null ? null : readSession(await sessionSecret(), cookie);
    const row = session && (await find(session.keyId));
    if (!row || row.revokedAt !== null) return null;
    // The hour of a sign-in token is the time to sign in; the session has its own end.
    return row.kind === 'sign-in' || (isValid(row) && isAdmin(row)) ? row : null;
  };

  const isControl = (key: string | null): boolean => key !== null && sameText(key, controlToken);

  return {
    /** @returns the whole key, which is never shown again */
    async create(input: NewKey): Promise<{ key: string; record: KeyRecord }> {
      const { key, row } = await insertKey(db, input);
      const { id, kind, owner } = row;
      log.info({ keyId: id, kind, owner }, 'key created');
      return { key, record: recordOf(row) };
    },

    async list(owner?: string): Promise<KeyRecord[]> {
      return (await selectKeys(db, owner)).map(recordOf);
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
      if (row.kind === kind) return callerOf(row, kind);
      throw new ApiError('FORBIDDEN', wrongKind[row.kind]);
    },

    /**
     * The caller with an admin key, a session cookie or the control token. With a cookie, a method other than
     * GET and HEAD must come from one of our own pages.
     *
     * @throws ApiError `UNAUTHORIZED`, `FORBIDDEN`
     */
    async authenticateAdmin(request: AdminRequest): Promise<Caller> {
      const key = bearer(request.headers.get('authorization'));
      if (key !== null) {
        if (isControl(key)) return controlCaller;
        const row = await verified(key);
        requireScope(row, 'admin');
        return callerOf(row, 'api');
      }
      const row = await sessionRow(request.headers.get('cookie'));
      if (!row) throw unauthorized();
      requireOwnOrigin(request, config.KINORA_PUBLIC_URL);
      used(row);
      return callerOf(row, 'session');
    },

    /**
     * Starts a session with an admin key or a sign-in token, which is used up.
     *
     * @returns `setCookie` is the whole header value
     */
    async signIn(token: string): Promise<{ owner: string; setCookie: string }> {
      const row = await signInRow(token);
      const until = Math.floor(Date.now() / 1000) + sessionSeconds;
      const setCookie = sessionCookie(await sessionSecret(), { keyId: row.id, until }, secure);
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
      return clearedCookie(secure);
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
        const missing = await missingKeys(tx);
        const accepted = termsVersion !== null;
        if (accepted ? !missing.api && !missing.worker : !missing.any) return null;
        const make = async (kind: KeyRow['kind'], name: string) => {
          const input = { kind, owner: firstOwner, name };
          return (await insertKey(tx, { ...input, ...(accepted && { termsVersion }) })).key;
        };
        return {
          apiKey: accepted && missing.api ? await make('api', 'First key') : '',
          workerToken: accepted && missing.worker ? await make('worker', 'First worker') : '',
          signInToken: await make('sign-in', 'First sign-in'),
        };
      });
    },

    webhookSecret: (owner: string): Promise<string> =>
      webhookSecrets.get(owner, () => storageErrors(() => ownerSecret(db, owner))),
  };

  async function signInRow(token: string): Promise<KeyRow> {
    const id = idOfKey(token);
    const taken = id === null ? null : await takeSignIn(db, id, hashKey(token));
    if (taken) {
      rows.forget(taken.id);
      return taken;
    }
    const row = await verified(token);
    if (row.kind === 'api' && isAdmin(row)) return row;
    throw unauthorized();
  }
}

/** Why a key opens something else. */
const wrongKind = {
  api: 'This is an API key: workers connect with a worker token.',
  worker: 'This is a worker token: it takes jobs and cannot call the API.',
  'sign-in': 'This is a sign-in token: it opens the Keys page and nothing else.',
} as const satisfies Record<KeyKind, string>;

function callerOf(row: KeyRow, kind: Caller['kind']): Caller {
  const allowed = scopes.filter((scope) => row.scopes.includes(scope));
  return {
    keyId: row.id,
    kind,
    owner: row.owner,
    name: row.name,
    scopes: allowed,
    shared: row.shared,
  };
}

function isValid(row: KeyRow): boolean {
  return row.revokedAt === null && (row.expiresAt === null || row.expiresAt.getTime() > Date.now());
}

function isAdmin(row: KeyRow): boolean {
  return row.scopes.includes('admin');
}

/** The key in an `Authorization` header. */
function bearer(authorization: string | null): string | null {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? null;
}

/** The same answer for every reason, so that it does not say which part was wrong. */
function unauthorized(): ApiError {
  return new ApiError('UNAUTHORIZED', undefined, { headers: { 'WWW-Authenticate': 'Bearer' } });
}
