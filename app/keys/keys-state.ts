import type { KeyRecord, ShareRecord, WorkerRecord } from '../../lib/contract/v3';
import { t } from '../texts';
import '../texts/en/keys';
import type { AdminData } from './admin-client';

/** A new key. Only this response of the server contains the complete key. */
export interface CreatedKey {
  readonly key: string;
  readonly record: KeyRecord;
}

/** What can be revoked on the page. */
export type Revocable =
  | { readonly kind: 'key'; readonly record: KeyRecord }
  | { readonly kind: 'link'; readonly record: ShareRecord };

/** The page of a signed-in user. */
export interface SignedIn {
  readonly status: 'signed-in';
  readonly owner: string;
  readonly keys: readonly KeyRecord[];
  readonly workers: readonly WorkerRecord[];
  /** Open links to videos, newest first. */
  readonly shares: readonly ShareRecord[];
  /** True after a sign-in on this page; the focus then moves to the list. */
  readonly justSignedIn: boolean;
  readonly created: CreatedKey | null;
  /** What the user has to confirm to revoke. */
  readonly confirming: Revocable | null;
  readonly busy: boolean;
  /** Error of the last action. */
  readonly problem: string | null;
  /** Error of the last reload; the lists may then be out of date. */
  readonly stale: string | null;
  /** Text about the last action, for screen readers. */
  readonly announcement: string;
}

export type KeysState =
  /** The session is not known yet; also the state of the server's HTML. */
  | { readonly status: 'opening' }
  | { readonly status: 'signed-out'; readonly busy: boolean; readonly problem: string | null }
  | SignedIn;

export type KeysAction =
  | { readonly type: 'signedOut'; readonly problem?: string }
  | { readonly type: 'signingIn' }
  | { readonly type: 'loaded'; readonly view: AdminData }
  | { readonly type: 'loadFailed'; readonly problem: string }
  | { readonly type: 'started' }
  | { readonly type: 'failed'; readonly problem: string }
  | { readonly type: 'created'; readonly created: CreatedKey }
  | { readonly type: 'createdClosed' }
  | { readonly type: 'revokeRequested'; readonly target: Revocable }
  | { readonly type: 'revokeCancelled' }
  /** A key with its new dates, or the link that is gone. */
  | { readonly type: 'revoked'; readonly target: Revocable };

export const initialKeys: KeysState = { status: 'opening' };

/** Pure reducer of the page. */
export function changeKeys(state: KeysState, action: KeysAction): KeysState {
  switch (action.type) {
    case 'signedOut':
      return { status: 'signed-out', busy: false, problem: action.problem ?? null };
    case 'signingIn':
      return { status: 'signed-out', busy: true, problem: null };
    case 'loaded':
      return loaded(state, action.view);
    case 'loadFailed':
      return state.status === 'signed-in'
        ? { ...state, stale: action.problem }
        : { status: 'signed-out', busy: false, problem: action.problem };
  }
  // The other actions need a session; a response that arrives after a sign-out is ignored.
  return state.status === 'signed-in' ? changeSignedIn(state, action) : state;
}

function loaded(state: KeysState, view: AdminData): SignedIn {
  if (state.status === 'signed-in') return { ...state, ...view, stale: null };
  return {
    status: 'signed-in',
    ...view,
    justSignedIn: state.status === 'signed-out',
    created: null,
    confirming: null,
    busy: false,
    problem: null,
    stale: null,
    announcement: state.status === 'signed-out' ? t('keys.youAreSignedIn') : '',
  };
}

function changeSignedIn(
  state: SignedIn,
  action: Exclude<KeysAction, { type: 'signedOut' | 'signingIn' | 'loaded' | 'loadFailed' }>,
): SignedIn {
  switch (action.type) {
    case 'started':
      return { ...state, busy: true, problem: null, announcement: '' };
    case 'failed':
      return { ...state, busy: false, problem: action.problem };
    case 'created': {
      const { created } = action;
      const keys = [created.record, ...state.keys];
      const announcement = t('keys.wasCreated', { name: created.record.name });
      return { ...state, busy: false, created, keys, announcement };
    }
    case 'createdClosed':
      return { ...state, created: null };
    case 'revokeRequested':
      return { ...state, confirming: action.target, problem: null };
    case 'revokeCancelled':
      return { ...state, confirming: null };
    case 'revoked': {
      if (action.target.kind === 'link') {
        const { id } = action.target.record;
        const shares = state.shares.filter((share) => share.id !== id);
        return { ...state, busy: false, shares, announcement: t('keys.linkRevoked') };
      }
      const { record } = action.target;
      const keys = state.keys.map((key) => (key.id === record.id ? record : key));
      // A revoked key must not be copied any more.
      const created = state.created?.record.id === record.id ? null : state.created;
      const announcement = t('keys.isRevoked', { name: record.name });
      return { ...state, busy: false, keys, created, announcement };
    }
  }
}
