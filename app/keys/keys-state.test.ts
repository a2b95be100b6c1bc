import { describe, expect, it } from 'vitest';
import type { KeyRecord, ShareRecord } from '../../lib/contract/v3';
import type { AdminData } from './admin-client';
import { changeKeys, initialKeys, type KeysAction, type KeysState } from './keys-state';

const record = (id: string, more: Partial<KeyRecord> = {}): KeyRecord => ({
  id,
  kind: 'api',
  owner: 'ada',
  name: `Key ${id}`,
  hint: `kn_${id}…wxyz`,
  scopes: ['predictions:read'],
  shared: false,
  terms_version: null,
  created_at: '2026-01-01T00:00:00.000Z',
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
  ...more,
});
const view: AdminData = { owner: 'ada', keys: [record('a'), record('b')], workers: [], shares: [] };
const stateAfter = (...actions: KeysAction[]): KeysState => actions.reduce(changeKeys, initialKeys);
const signedIn = (...actions: KeysAction[]) => {
  const state = stateAfter({ type: 'loaded', view }, ...actions);
  if (state.status !== 'signed-in') throw new Error(`It is ${state.status}.`);
  return state;
};

describe('signing in', () => {
  it('moves the focus only after a sign-in on this page', () => {
    expect(stateAfter({ type: 'loaded', view })).toMatchObject({
      justSignedIn: false,
      announcement: '',
    });
    const fresh = stateAfter(
      { type: 'signedOut' },
      { type: 'signingIn' },
      { type: 'loaded', view },
    );
    expect(fresh).toMatchObject({ justSignedIn: true, announcement: 'You are signed in.' });
  });

  it('shows why it failed, and can be repeated', () => {
    const failed = stateAfter({ type: 'signingIn' }, { type: 'signedOut', problem: 'Wrong.' });
    expect(failed).toEqual({ status: 'signed-out', busy: false, problem: 'Wrong.' });
    expect(changeKeys(failed, { type: 'signingIn' })).toMatchObject({ busy: true, problem: null });
    expect(stateAfter({ type: 'loadFailed', problem: 'Away.' })).toMatchObject({
      status: 'signed-out',
      problem: 'Away.',
    });
  });
});

describe('the lists', () => {
  it('stay if the server does not respond, and are marked as out of date', () => {
    const stale = signedIn({ type: 'loadFailed', problem: 'Away.' });
    expect(stale).toMatchObject({ stale: 'Away.', keys: view.keys });
    expect(changeKeys(stale, { type: 'loaded', view })).toMatchObject({ stale: null });
  });

  it('are reloaded without closing an open dialog', () => {
    const created = { key: 'kn_secret', record: record('c') };
    const open = signedIn(
      { type: 'created', created },
      { type: 'revokeRequested', target: { kind: 'key', record: record('a') } },
      { type: 'loaded', view: { ...view, keys: [] } },
    );
    expect(open).toMatchObject({ created, confirming: { record: { id: 'a' } }, keys: [] });
  });
});

describe('a new key', () => {
  const created = { key: 'kn_secret', record: record('c') };

  it('is in the list immediately, and shown until it is closed', () => {
    const state = signedIn({ type: 'started' }, { type: 'created', created });
    expect(state.keys.map(({ id }) => id)).toEqual(['c', 'a', 'b']);
    expect(state).toMatchObject({ busy: false, created, announcement: '"Key c" was created.' });
    expect(changeKeys(state, { type: 'createdClosed' })).toMatchObject({ created: null });
  });

  it('that arrives after a sign-out is dropped with its secret', () => {
    const state = stateAfter(
      { type: 'loaded', view },
      { type: 'signedOut' },
      { type: 'created', created },
    );
    expect(JSON.stringify(state)).not.toContain('secret');
    expect(state.status).toBe('signed-out');
  });

  it('is no longer shown once it is revoked', () => {
    const revoked = record('c', { revoked_at: '2026-01-02T00:00:00.000Z' });
    const state = signedIn(
      { type: 'created', created },
      {
        type: 'revoked',
        target: { kind: 'key', record: revoked },
      },
    );
    expect(state.created).toBeNull();
    expect(state.keys[0]).toEqual(revoked);
  });
});

describe('a link', () => {
  it('leaves the list once it is revoked', () => {
    const share = (id: string) => ({ id, title: 'A boat' }) as ShareRecord;
    const state = signedIn(
      { type: 'loaded', view: { ...view, shares: [share('1'), share('2')] } },
      { type: 'revoked', target: { kind: 'link', record: share('1') } },
    );
    expect(state.shares).toEqual([share('2')]);
    expect(state).toMatchObject({ keys: view.keys, announcement: 'The link is revoked.' });
  });
});

describe('a failure', () => {
  it('is shown until the next action starts', () => {
    const state = signedIn({ type: 'started' }, { type: 'failed', problem: 'No.' });
    expect(state).toMatchObject({ busy: false, problem: 'No.' });
    expect(changeKeys(state, { type: 'started' })).toMatchObject({ busy: true, problem: null });
  });
});
