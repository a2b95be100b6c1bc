import { describe, expect, it } from 'vitest';
import type { KeyRecord } from '../../lib/contract/v3/endpoints';
import type { AdminView } from './admin-client';
import { changeKeys, initialKeys, type KeysAction, type KeysState } from './keys-state';

const record = (id: string, more: Partial<KeyRecord> = {}): KeyRecord => ({
  id,
  kind: 'api',
  owner: 'ada',
  name: `Key ${id}`,
  hint: `kn_${id}…wxyz`,
  scopes: ['predictions:read'],
  shared: false,
  created_at: '2026-01-01T00:00:00.000Z',
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
  ...more,
});
const view: AdminView = { owner: 'ada', keys: [record('a'), record('b')], workers: [] };
const reached = (...actions: KeysAction[]): KeysState => actions.reduce(changeKeys, initialKeys);
const signedIn = (...actions: KeysAction[]) => {
  const state = reached({ type: 'looked', view }, ...actions);
  if (state.status !== 'signed-in') throw new Error(`It is ${state.status}.`);
  return state;
};

describe('signing in', () => {
  it('moves the focus only for whoever signs in on this page', () => {
    expect(reached({ type: 'looked', view })).toMatchObject({ arrived: false, said: '' });
    const fresh = reached({ type: 'nobody' }, { type: 'signingIn' }, { type: 'looked', view });
    expect(fresh).toMatchObject({ arrived: true, said: 'You are signed in.' });
  });

  it('says why it failed, and may be tried again', () => {
    const failed = reached({ type: 'signingIn' }, { type: 'nobody', problem: 'Wrong.' });
    expect(failed).toEqual({ status: 'signed-out', busy: false, problem: 'Wrong.' });
    expect(changeKeys(failed, { type: 'signingIn' })).toMatchObject({ busy: true, problem: null });
    expect(reached({ type: 'lookFailed', problem: 'Away.' })).toMatchObject({
      status: 'signed-out',
      problem: 'Away.',
    });
  });
});

describe('the lists', () => {
  it('stay when the server does not answer, and say that they may be old', () => {
    const stale = signedIn({ type: 'lookFailed', problem: 'Away.' });
    expect(stale).toMatchObject({ stale: 'Away.', keys: view.keys });
    expect(changeKeys(stale, { type: 'looked', view })).toMatchObject({ stale: null });
  });

  it('are renewed without taking away what is open', () => {
    const created = { key: 'kn_secret', record: record('c') };
    const open = signedIn(
      { type: 'created', created },
      { type: 'revokeAsked', record: record('a') },
      { type: 'looked', view: { ...view, keys: [] } },
    );
    expect(open).toMatchObject({ created, asked: { id: 'a' }, keys: [] });
  });
});

describe('a new key', () => {
  const created = { key: 'kn_secret', record: record('c') };

  it('is on the list at once, and whole until it is put away', () => {
    const state = signedIn({ type: 'begun' }, { type: 'created', created });
    expect(state.keys.map(({ id }) => id)).toEqual(['c', 'a', 'b']);
    expect(state).toMatchObject({ busy: false, created, said: '"Key c" was created.' });
    expect(changeKeys(state, { type: 'createdPutAway' })).toMatchObject({ created: null });
  });

  it('that comes after a sign-out is dropped with its secret', () => {
    const state = reached(
      { type: 'looked', view },
      { type: 'nobody' },
      { type: 'created', created },
    );
    expect(JSON.stringify(state)).not.toContain('secret');
    expect(state.status).toBe('signed-out');
  });

  it('is no longer shown once it is revoked', () => {
    const revoked = record('c', { revoked_at: '2026-01-02T00:00:00.000Z' });
    const state = signedIn({ type: 'created', created }, { type: 'revoked', record: revoked });
    expect(state.created).toBeNull();
    expect(state.keys[0]).toEqual(revoked);
  });
});

describe('a failure', () => {
  it('ends the work and stays until the next is begun', () => {
    const state = signedIn({ type: 'begun' }, { type: 'failed', problem: 'No.' });
    expect(state).toMatchObject({ busy: false, problem: 'No.' });
    expect(changeKeys(state, { type: 'begun' })).toMatchObject({ busy: true, problem: null });
  });
});
