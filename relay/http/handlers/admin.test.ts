import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { termsVersion } from '../../../lib/contract';
import { endpoints, scopes } from '../../../lib/contract/v3';
import { startTestRelay, type TestRelay } from '../../testing/server';

let node: TestRelay;
/** The first key is none. */
let adminKey: string;
beforeAll(async () => {
  node = await startTestRelay({ background: false });
  const admin = { kind: 'api', owner: 'owner', name: 'An admin', scopes } as const;
  adminKey = (await node.relay.keys.create(admin)).key;
}, 60_000);
afterAll(() => node.stop());

/** One request over HTTP, as the page or a command sends it. */
const send = (method: string, path: string, headers: Record<string, string>, body?: unknown) =>
  node.send(method, path, { headers, body });
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
/** Headers of a page of ours that is signed in. */
const page = (cookie: string, origin = node.origin) => ({ Cookie: cookie, Origin: origin });
const signIn = async (token: string) => {
  const { headers, status } = await send('POST', '/api/admin/session', {}, { token });
  return { status, cookie: headers.get('set-cookie')?.split(';')[0] ?? '' };
};
const keyOf = async (owner: string) => {
  const input = { kind: 'api', owner, name: owner, scopes: [...scopes] } as const;
  return (await node.relay.keys.create(input)).key;
};

describe('the page', () => {
  it('signs in from no other site', async () => {
    const body = { token: node.signInToken };
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site', Origin: node.origin },
    ]) {
      expect((await send('POST', '/api/admin/session', headers, body)).status).toBe(403);
    }
  });

  it('signs in, makes a key, lists, revokes, signs out', async () => {
    const { cookie, status } = await signIn(node.signInToken);
    expect(status).toBe(200);
    const made = await send('POST', '/api/admin/keys', page(cookie), {
      name: ' Bench\u0007 ',
      expires_in_days: 1,
      accept_terms: termsVersion,
    });
    const { key, record } = endpoints.createKey.answer.parse(made.json).data;
    expect(record).toMatchObject({
      owner: 'owner',
      name: 'Bench',
      kind: 'api',
      terms_version: termsVersion,
    });
    expect(Date.parse(record.expires_at ?? '')).toBeGreaterThan(Date.now() + 23 * 3_600_000);
    expect(made.headers.get('cache-control')).toBe('no-store');

    const listed = await send('GET', '/api/admin/keys', { Cookie: cookie });
    const { owner, keys } = endpoints.listKeys.answer.parse(listed.json).data;
    expect(owner).toBe('owner');
    expect(keys).toContainEqual(record);
    expect(JSON.stringify(listed.json)).not.toContain(key.slice(12));

    const revoked = await send('DELETE', `/api/admin/keys/${record.id}`, page(cookie));
    const gone = endpoints.revokeKey.answer.parse(revoked.json).data;
    expect(gone.revoked_at).not.toBeNull();
    expect((await send('GET', '/api/v3/balance', bearer(key))).status).toBe(401);

    const out = await send('DELETE', '/api/admin/session', page(cookie));
    expect(out.headers.get('set-cookie')).toContain('Max-Age=0');
    expect((await send('GET', '/api/admin/keys', { Cookie: cookie })).status).toBe(401);
  });

  it('cannot be driven by another site', async () => {
    const { cookie } = await signIn(adminKey);
    const foreign = page(cookie, 'http://127.0.0.1:1');
    const body = { name: 'Stolen' };
    expect((await send('POST', '/api/admin/keys', foreign, body)).status).toBe(403);
    expect((await send('POST', '/api/admin/keys', { Cookie: cookie }, body)).status).toBe(403);
    expect((await send('DELETE', '/api/admin/session', foreign)).status).toBe(403);
    const own = await send('POST', '/api/admin/session', foreign, { token: adminKey });
    expect(own.status).toBe(403);
    expect(own.headers.get('set-cookie')).toBeNull();
  });

  it('is refused alike whatever is wrong with a token', async () => {
    for (const token of [node.signInToken, node.workerToken, 'x']) {
      expect(await signIn(token)).toEqual({ status: 401, cookie: '' });
    }
  });
});

describe('an admin', () => {
  it('of the first owner looks after all keys, another one after its own', async () => {
    const [ada, grace] = [await keyOf('ada'), await keyOf('grace')];
    const idOfGrace = grace.slice(3, 11);
    const ownersSeenBy = async (key: string) => {
      const { json } = await send('GET', '/api/admin/keys', bearer(key));
      const { keys } = endpoints.listKeys.answer.parse(json).data;
      return [...new Set(keys.map(({ owner }) => owner))].sort();
    };
    expect(await ownersSeenBy(adminKey)).toEqual(['ada', 'grace', 'owner']);
    expect(await ownersSeenBy(ada)).toEqual(['ada']);
    expect((await send('DELETE', `/api/admin/keys/${idOfGrace}`, bearer(ada))).status).toBe(404);
    const body = { name: 'For another', owner: 'grace', accept_terms: termsVersion };
    expect((await send('POST', '/api/admin/keys', bearer(ada), body)).status).toBe(403);
    const made = await send('POST', '/api/admin/keys', bearer(adminKey), body);
    expect(endpoints.createKey.answer.parse(made.json).data.record.owner).toBe('grace');
    const removed = await send('DELETE', `/api/admin/keys/${idOfGrace}`, bearer(adminKey));
    expect(removed.status).toBe(200);
  });

  it('needs a key with the scope admin: other keys and worker tokens get 403', async () => {
    const { key } = await node.relay.keys.create({ kind: 'api', owner: 'ada', name: 'Plain' });
    expect((await send('GET', '/api/admin/keys', bearer(key))).status).toBe(403);
    expect((await send('GET', '/api/admin/workers', bearer(node.workerToken))).status).toBe(403);
    expect((await send('GET', '/api/admin/workers', {})).status).toBe(401);
    const workers = await send('GET', '/api/admin/workers', bearer(adminKey));
    expect(endpoints.listWorkers.answer.parse(workers.json).data.workers).toEqual([]);
  });

  it('gets a key only with the present terms of use, and a sign-in token without', async () => {
    const create = (body: object) =>
      send('POST', '/api/admin/keys', bearer(adminKey), { name: 'x', ...body });
    const keys = async () => (await node.relay.keys.list('owner')).length;
    const before = await keys();
    for (const [body, sentence] of [
      [{}, 'has accepted the terms of use'],
      [{ kind: 'worker' }, 'has accepted the terms of use'],
      [{ accept_terms: '2020-01-01' }, `have the version ${termsVersion}, and not 2020-01-01`],
    ] as const) {
      expect(await create(body)).toMatchObject({
        status: 403,
        json: { error_code: 'TERMS_NOT_ACCEPTED', message: expect.stringContaining(sentence) },
      });
    }
    expect(await keys()).toBe(before);
    expect((await create({ kind: 'sign-in' })).status).toBe(200);
  });

  it.each([
    [{ name: '\u0001' }],
    [{ name: 'x', owner: ' \t ' }],
    [{ name: 'x', expires_in_days: 1e300 }],
    [{ name: 'x', expires_in_days: -1 }],
    [{ name: 'x', scopes: ['root'] }],
    [{}],
  ])('is told what is wrong with %j', async (body) => {
    const { status, json } = await send('POST', '/api/admin/keys', bearer(adminKey), {
      accept_terms: termsVersion,
      ...body,
    });
    expect(status).toBe(400);
    expect(json).toMatchObject({ error_code: 'INVALID_PARAMETER' });
  });
});
