import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import pino from 'pino';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ApiError, scopes } from '../../lib/contract/v3';
import type { Store } from '../store';
import { keys as keysTable, owners } from '../store/schema';
import { engines, openTestStore, withStore } from '../testing/store';
import { processControlToken } from './control';
import { createKeys, type Keys } from './keys';

let store: Store;
let keys: Keys;
/** Everything that was logged. */
let logged = '';
const controlToken = processControlToken();
const log = pino(
  { level: 'debug' },
  {
    write: (line: string) => {
      logged += line;
    },
  },
);
/** Whole keys that were made: none may be in the log. */
const made: string[] = [];

const make = async (input: Partial<Parameters<Keys['create']>[0]> = {}) => {
  const created = await keys.create({ kind: 'api', owner: 'ada', name: 'Test', ...input });
  made.push(created.key);
  return created;
};
const refusalOf = async (work: Promise<unknown>): Promise<ApiError> => {
  const thrown: unknown = await work.then(
    () => null,
    (error: unknown) => error,
  );
  if (thrown instanceof ApiError) return thrown;
  throw new Error('It was not refused.', { cause: thrown });
};
/** A request to an operation for admins. */
const requestWith = (headers: Record<string, string | null>, method = 'GET') => ({
  method,
  headers: new Headers(
    Object.entries({ host: '127.0.0.1:3000', ...headers }).flatMap(([name, value]) =>
      value === null ? [] : [[name, value] as [string, string]],
    ),
  ),
});
const byCookie = (cookie: string | null) => requestWith({ cookie });
const byKey = (key: string) => requestWith({ authorization: `Bearer ${key}` });
const signIn = async () => {
  const { key, record } = await make({ kind: 'sign-in', owner: 'ada' });
  const { setCookie, owner } = await keys.signIn(key);
  return { id: record.id, key, owner, setCookie, cookie: setCookie.split(';')[0] ?? '' };
};

describe('a first start', () => {
  it('makes only the missing keys', { tags: ['full'], timeout: 60_000 }, async () => {
    const fresh = await openTestStore('pglite');
    try {
      const config = { KINORA_PUBLIC_URL: undefined };
      const early = createKeys({ store: fresh.store, config, log });
      await early.create({ kind: 'worker', owner: 'owner', name: 'before the first start' });
      expect(await early.firstStart(null)).toBeNull();
      expect(await early.firstStart('v1')).toMatchObject({
        apiKey: expect.stringMatching(/^kn_/),
        workerToken: '',
        signInToken: expect.stringMatching(/^ks_/),
      });
      expect(await early.firstStart('v1')).toBeNull();
    } finally {
      await fresh.close();
    }
  });
});

describe.each(engines)('on %s', (engine) => withStore(engine, tests));

function tests(fixture: () => { store: Store }): void {
  beforeAll(() => {
    store = fixture().store;
    keys = createKeys({ store, config: { KINORA_PUBLIC_URL: undefined }, log });
    logged = '';
    made.length = 0;
  });

  describe('the first start', () => {
    it('makes no key but a sign-in token before the terms are accepted', async () => {
      const given = await keys.firstStart(null);
      expect(given).toMatchObject({ apiKey: '', workerToken: '' });
      expect((await keys.signIn(given?.signInToken ?? '')).owner).toBe('owner');
      // Again, as long as there is no key.
      expect((await keys.firstStart(null))?.signInToken).toMatch(/^ks_/);
    });

    it('makes an owner, a key, a worker token and a sign-in token, once', async () => {
      const [first, second] = await Promise.all([keys.firstStart('v1'), keys.firstStart('v1')]);
      const given = first ?? second;
      if (!given) throw new Error('Neither was the first.');
      expect([first, second].filter((result) => result !== null)).toHaveLength(1);
      made.push(given.apiKey, given.workerToken, given.signInToken);
      const caller = await keys.authenticate(`Bearer ${given.apiKey}`, 'api');
      expect(caller).toMatchObject({ owner: 'owner' });
      // Those of every new key.
      expect(caller.scopes).toEqual(scopes.filter((scope) => scope !== 'admin'));
      expect((await keys.authenticate(`Bearer ${given.workerToken}`, 'worker')).owner).toBe(
        'owner',
      );
      expect((await keys.signIn(given.signInToken)).owner).toBe('owner');
      expect(await keys.firstStart('v1')).toBeNull();
      const records = (await keys.list('owner')).filter(({ kind }) => kind !== 'sign-in');
      expect(records.map((record) => record.terms_version)).toEqual(['v1', 'v1']);
    });
  });

  describe('a key', () => {
    it('has its form, and only its hash is stored', async () => {
      const { key, record } = await make();
      expect(key).toMatch(new RegExp(`^kn_${record.id}_[0-9A-Za-z]{43}$`));
      expect(record.hint).toBe(`kn_${record.id}…${key.slice(-4)}`);
      const [row] = await store.db.select().from(keysTable).where(eq(keysTable.id, record.id));
      expect(row?.hash).toMatch(/^[0-9a-f]{64}$/);
      expect(JSON.stringify(row)).not.toContain(key.slice(12));
      expect(await keys.list('ada')).toContainEqual(record);
    });

    it('authenticates its caller with its scopes, all but admin by default', async () => {
      const { key, record } = await make({ shared: true });
      expect(await keys.authenticate(`bearer ${key}`, 'api')).toEqual({
        keyId: record.id,
        owner: 'ada',
        scopes: scopes.filter((scope) => scope !== 'admin'),
        shared: true,
      });
      expect((await refusalOf(keys.authenticateAdmin(byKey(key)))).status).toBe(403);
    });

    it('is refused with the same answer for every reason', async () => {
      const { key } = await make();
      const { key: worker } = await make({ kind: 'worker' });
      const { key: token } = await make({ kind: 'sign-in' });
      const changed = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
      const unknown = key.replace(/^kn_.{8}/, 'kn_00000000');
      const wrong = [
        null,
        '',
        key,
        'Bearer',
        'Bearer x',
        `Basic ${key}`,
        `Bearer ${changed}`,
        `Bearer ${unknown}`,
        `Bearer ${worker.replace(/^kw/, 'kn')}`,
        `Bearer ${token}`,
      ];
      for (const header of wrong) {
        const refusal = await refusalOf(keys.authenticate(header, 'api'));
        expect(refusal.toBody('r')).toEqual(new ApiError('UNAUTHORIZED').toBody('r'));
        expect(refusal.headers).toEqual({ 'WWW-Authenticate': 'Bearer' });
      }
    });

    it('of the other kind is forbidden', async () => {
      const { key } = await make();
      const { key: worker } = await make({ kind: 'worker' });
      expect((await refusalOf(keys.authenticate(`Bearer ${worker}`, 'api'))).code).toBe(
        'FORBIDDEN',
      );
      expect((await refusalOf(keys.authenticate(`Bearer ${key}`, 'worker'))).code).toBe(
        'FORBIDDEN',
      );
      const own = await keys.authenticate(`Bearer ${worker}`, 'worker');
      expect(own).toMatchObject({ keyId: worker.split('_')[1], owner: 'ada', scopes: [] });
    });

    it('ends when it expires', async () => {
      const { key } = await make({ expiresAt: new Date(Date.now() + 3_600_000) });
      await keys.authenticate(`Bearer ${key}`, 'api');
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_001 });
      try {
        expect((await refusalOf(keys.authenticate(`Bearer ${key}`, 'api'))).status).toBe(401);
      } finally {
        vi.useRealTimers();
      }
    });

    it('ends at once when its owner revokes it', async () => {
      const { key, record } = await make();
      await keys.authenticate(`Bearer ${key}`, 'api');
      expect((await refusalOf(keys.revoke(record.id, 'eve'))).code).toBe('NOT_FOUND');
      await keys.authenticate(`Bearer ${key}`, 'api');
      const revoked = await keys.revoke(record.id, 'ada');
      expect(revoked.revoked_at).not.toBeNull();
      expect((await refusalOf(keys.authenticate(`Bearer ${key}`, 'api'))).status).toBe(401);
      expect((await keys.revoke(record.id)).revoked_at).toBe(revoked.revoked_at);
      expect((await refusalOf(keys.revoke("' or 1=1\0"))).code).toBe('NOT_FOUND');
    });

    it('is noted as used, without being written for every use', async () => {
      const { key, record } = await make();
      const lastUse = async () =>
        (await keys.list('ada')).find(({ id }) => id === record.id)?.last_used_at;
      expect(await lastUse()).toBeNull();
      await keys.authenticate(`Bearer ${key}`, 'api');
      await expect.poll(lastUse, { timeout: 20_000 }).not.toBeNull();
      const first = await lastUse();
      for (let use = 0; use < 5; use++) await keys.authenticate(`Bearer ${key}`, 'api');
      expect(await lastUse()).toBe(first);
    });
  });

  describe('an owner', () => {
    it('comes with a webhook secret that stays the same', async () => {
      const secret = await keys.webhookSecret('grace');
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      await make({ owner: 'grace' });
      expect(await keys.webhookSecret('grace')).toBe(secret);
      const [row] = await store.db.select().from(owners).where(eq(owners.name, 'grace'));
      expect(row?.webhookSecret).toBe(secret);
    });
  });

  describe('a sign-in token', () => {
    it('works once, also for simultaneous requests', async () => {
      const { key } = await make({ kind: 'sign-in' });
      const tries = await Promise.allSettled([1, 2, 3, 4].map(() => keys.signIn(key)));
      expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect((await refusalOf(keys.signIn(key))).status).toBe(401);
    });

    it('is refused when it has expired; other keys are no sign-in tokens', async () => {
      const { key } = await make({ kind: 'sign-in', expiresAt: new Date(Date.now() - 1) });
      expect((await refusalOf(keys.signIn(key))).status).toBe(401);
      const { key: worker } = await make({ kind: 'worker' });
      const { key: plain } = await make();
      for (const token of [worker, plain, '', 'x']) {
        expect((await refusalOf(keys.signIn(token))).status).toBe(401);
      }
    });
  });

  describe('a session', () => {
    it('is a cookie that scripts cannot read and other sites cannot send', async () => {
      const { setCookie, cookie, owner } = await signIn();
      expect(owner).toBe('ada');
      expect(setCookie).toMatch(
        /^kinora_session=\S+; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
      );
      const caller = await keys.authenticateAdmin(byCookie(`theme=dark; ${cookie}`));
      expect(caller).toMatchObject({ owner: 'ada', scopes });
    });

    it('is marked Secure behind https', async () => {
      const config = { KINORA_PUBLIC_URL: 'https://kinora.example' };
      const behind = createKeys({ store, config, log });
      const { key } = await make({ kind: 'sign-in' });
      expect((await behind.signIn(key)).setCookie).toMatch(/; Secure$/);
      expect(await behind.signOut(null)).toMatch(/^kinora_session=;.*Max-Age=0;.*; Secure$/);
    });

    it('cannot be changed', async () => {
      const { cookie } = await signIn();
      const [id = '', until = '', mac = ''] = cookie.replace('kinora_session=', '').split('.');
      const other = await signIn();
      const forged = [
        `${id}.${Number(until) + 1}.${mac}`,
        `${other.id}.${until}.${mac}`,
        `${id}.${until}.`,
        `${id}.${until}.${mac.slice(0, -1)}`,
        '',
      ];
      for (const value of forged) {
        const request = byCookie(`kinora_session=${value}`);
        expect((await refusalOf(keys.authenticateAdmin(request))).status).toBe(401);
      }
      expect((await refusalOf(keys.authenticateAdmin(byCookie(null)))).status).toBe(401);
    });

    it('changes data only from pages of this Kinora', async () => {
      const { cookie } = await signIn();
      const write = (origin: string | null, method = 'POST') =>
        keys.authenticateAdmin(requestWith({ cookie, origin }, method));
      expect((await write('http://127.0.0.1:3000')).owner).toBe('ada');
      const elsewhere = [null, 'null', 'https://evil.example', 'http://127.0.0.1:3001', 'x'];
      for (const origin of elsewhere) {
        expect((await refusalOf(write(origin))).code).toBe('FORBIDDEN');
        expect((await refusalOf(write(origin, 'DELETE'))).code).toBe('FORBIDDEN');
      }
      // Where the browser says of which site the page is, that decides too.
      const from = (site: string, method = 'POST') =>
        keys.authenticateAdmin(
          requestWith({ cookie, origin: 'http://127.0.0.1:3000', 'sec-fetch-site': site }, method),
        );
      expect((await from('same-origin')).owner).toBe('ada');
      for (const site of ['same-site', 'cross-site', 'none']) {
        expect((await refusalOf(from(site))).code).toBe('FORBIDDEN');
        expect((await refusalOf(from(site, 'DELETE'))).code).toBe('FORBIDDEN');
        expect((await from(site, 'GET')).owner).toBe('ada');
      }
    });

    it('ends with the key that it came from', async () => {
      const { key, record } = await make({ scopes: ['admin'] });
      const cookie = (await keys.signIn(key)).setCookie.split(';')[0] ?? '';
      await keys.authenticateAdmin(byCookie(cookie));
      await keys.revoke(record.id);
      expect((await refusalOf(keys.authenticateAdmin(byCookie(cookie)))).status).toBe(401);
    });

    it('ends for every copy of its cookie at the sign-out', async () => {
      const { cookie } = await signIn();
      await keys.authenticateAdmin(byCookie(cookie));
      expect(await keys.signOut(cookie)).toMatch(/^kinora_session=; .*Max-Age=0/);
      expect((await refusalOf(keys.authenticateAdmin(byCookie(cookie)))).status).toBe(401);
    });
  });

  describe('the control token', () => {
    it('opens API and administration for the owner, and no worker paths', async () => {
      const bearer = `Bearer ${controlToken}`;
      expect(await keys.authenticate(bearer, 'api')).toMatchObject({ owner: 'owner', scopes });
      expect(await keys.authenticateAdmin(byKey(controlToken))).toMatchObject({ owner: 'owner' });
      expect((await refusalOf(keys.authenticate(bearer, 'worker'))).status).toBe(401);
      // That of another process, whose form is the same.
      const other = `Bearer kc_${randomBytes(32).toString('base64url')}`;
      expect((await refusalOf(keys.authenticate(other, 'api'))).status).toBe(401);
      expect((await refusalOf(keys.authenticateAdmin(byKey(other.slice(7))))).status).toBe(401);
    });
  });

  describe('the log', () => {
    it('names what was done without secrets', () => {
      expect(logged).toContain('key created');
      expect(logged).toContain('key revoked');
      expect(made.length).toBeGreaterThan(20);
      for (const key of made) expect(logged).not.toContain(key.slice(12));
      expect(logged).not.toMatch(/whsec_|kinora_session|kc_of/);
    });
  });
}
