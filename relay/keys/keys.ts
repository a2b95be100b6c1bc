import type { Logger } from 'pino';
import { ApiError, type Scope, scopes } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { Caller, Keys } from '../relay';
import { storageErrors } from '../store/errors';
import type { Store } from '../store/store';
import { processControlToken } from './control';
import { hashKey, idOfKey, sameText } from './format';
import { KeyLookup } from './lookup';
import { requireOwnOrigin } from './origin';
import { controlKeyId, firstOwner } from './owner';
import {
  insertKey,
  type KeyRow,
  missingKeys,
  ownerSecret,
  recordOf,
  revokeRow,
  selectKeys,
  signingSecret,
  takeSignIn,
} from './records';
import { clearedCookie, readSession, sessionCookie, sessionSeconds } from './session';

/**
 * Keys, worker tokens and sessions over a store.
 *
 * @param options.controlToken what the control file holds; this process's own when absent
 */
export function createKeys(options: {
  store: Store;
  config: Pick<Config, 'KINORA_PUBLIC_URL'>;
  log: Logger;
  controlToken?: string;
}): Keys {
  const { store, config, controlToken = processControlToken() } = options;
  const { db } = store;
  const log = options.log.child({ room: 'keys' });
  const lookup = new KeyLookup(db, log);
  const secure = config.KINORA_PUBLIC_URL?.startsWith('https:') ?? false;
  const webhookSecrets = new Map<string, string>();
  let secret: Promise<string> | null = null;

  /** Read once; a failed read is tried again by the next who asks. */
  const sessionSecret = (): Promise<string> => {
    secret ??= signingSecret(db).catch((thrown: unknown) => {
      secret = null;
      throw thrown;
    });
    return secret;
  };

  /** The row of a whole key that may be used now. */
  const verified = async (key: string | null): Promise<KeyRow> => {
    const id = key === null ? null : idOfKey(key);
    const row = id === null ? null : await lookup.get(id);
    const right = key !== null && row !== null && sameText(row.hash, hashKey(key));
    if (!right || row.kind === 'sign-in' || !isStanding(row)) throw unauthorized();
    lookup.used(row);
    return row;
  };

  /** The row that a session came from, as long as it stands. */
  const sessionRow = async (cookie: string | null): Promise<KeyRow | null> => {
    const session = cookie === null ? null : readSession(await sessionSecret(), cookie);
    const row = session && (await lookup.get(session.keyId));
    if (!row || row.revokedAt !== null) return null;
    // A sign-in token's hour is for signing in; the session has an end of its own.
    return row.kind === 'sign-in' || (isStanding(row) && isAdmin(row)) ? row : null;
  };

  const isControl = (key: string | null): boolean => key !== null && sameText(key, controlToken);

  return {
    async create(input) {
      const { key, row } = await insertKey(db, input);
      const { id, kind, owner } = row;
      log.info({ keyId: id, kind, owner }, 'key created');
      return { key, record: recordOf(row) };
    },

    async list(owner) {
      return (await selectKeys(db, owner)).map(recordOf);
    },

    async revoke(id, owner) {
      lookup.forget(id);
      const row = await revokeRow(db, id, owner);
      // Once more: an authentication in between may have read the row as it was.
      lookup.forget(id);
      log.info({ keyId: id, kind: row.kind, owner: row.owner }, 'key revoked');
      return recordOf(row);
    },

    async authenticate(authorization, kind) {
      const key = bearer(authorization);
      if (kind === 'api' && isControl(key)) return controlCaller;
      const row = await verified(key);
      if (row.kind === kind) return callerOf(row, kind);
      // Told only to whoever holds a whole and valid key.
      throw new ApiError(
        'FORBIDDEN',
        kind === 'api'
          ? 'This is a worker token: it takes jobs and cannot call the API.'
          : 'This is an API key: workers connect with a worker token.',
      );
    },

    async authenticateAdmin(request) {
      const key = bearer(request.authorization);
      if (key !== null) {
        if (isControl(key)) return controlCaller;
        const row = await verified(key);
        if (row.kind === 'api' && isAdmin(row)) return callerOf(row, 'api');
        throw new ApiError('FORBIDDEN', undefined, {
          details: [{ field: 'scope', message: 'admin' }],
        });
      }
      const row = await sessionRow(request.cookie);
      if (!row) throw unauthorized();
      requireOwnOrigin(request, config.KINORA_PUBLIC_URL);
      lookup.used(row);
      return callerOf(row, 'session');
    },

    async signIn(token) {
      const row = await signInRow(token);
      const until = Math.floor(Date.now() / 1000) + sessionSeconds;
      const setCookie = sessionCookie(await sessionSecret(), { keyId: row.id, until }, secure);
      log.info({ keyId: row.id, owner: row.owner }, 'signed in');
      return { owner: row.owner, setCookie };
    },

    async signOut(cookie) {
      const row = await sessionRow(cookie);
      // The session of a sign-in token is its only one: end it for copies of the cookie too.
      if (row?.kind === 'sign-in') {
        await revokeRow(db, row.id, row.owner);
        lookup.forget(row.id);
      }
      return clearedCookie(secure);
    },

    async firstStart() {
      return await db.transaction(async (tx) => {
        const missing = await missingKeys(tx);
        if (!missing.admin && !missing.worker) return null;
        const make = async (kind: KeyRow['kind'], name: string, allowed?: readonly Scope[]) => {
          const input = { kind, owner: firstOwner, name, ...(allowed && { scopes: allowed }) };
          return (await insertKey(tx, input)).key;
        };
        return {
          apiKey: missing.admin ? await make('api', 'First key', scopes) : '',
          workerToken: missing.worker ? await make('worker', 'First worker') : '',
          signInToken: await make('sign-in', 'First sign-in'),
        };
      });
    },

    async webhookSecret(owner) {
      const known =
        webhookSecrets.get(owner) ?? (await storageErrors(() => ownerSecret(db, owner)));
      webhookSecrets.set(owner, known);
      return known;
    },
  };

  async function signInRow(token: string): Promise<KeyRow> {
    const id = idOfKey(token);
    const taken = id === null ? null : await takeSignIn(db, id, hashKey(token));
    if (taken) {
      lookup.forget(taken.id);
      return taken;
    }
    const row = await verified(token);
    if (row.kind === 'api' && isAdmin(row)) return row;
    throw unauthorized();
  }
}

const controlCaller: Caller = {
  keyId: controlKeyId,
  kind: 'api',
  owner: firstOwner,
  name: 'npm run keys',
  scopes,
  shared: false,
};

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

function isStanding(row: KeyRow): boolean {
  return row.revokedAt === null && (row.expiresAt === null || row.expiresAt.getTime() > Date.now());
}

function isAdmin(row: KeyRow): boolean {
  return row.scopes.includes('admin');
}

/** The key in an `Authorization` header. */
function bearer(authorization: string | null): string | null {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? null;
}

/** One answer for every reason: none tells which part was wrong. */
function unauthorized(): ApiError {
  return new ApiError('UNAUTHORIZED', undefined, { headers: { 'WWW-Authenticate': 'Bearer' } });
}
