import type { KeyRecord, WorkerRecord } from '../../lib/contract/v3/endpoints';
import type { AdminView } from './admin-client';

/** A key that was just made: the only time that the whole of it is known. */
export interface CreatedKey {
  readonly key: string;
  readonly record: KeyRecord;
}

/** The page while somebody is signed in. */
export interface SignedIn {
  readonly status: 'signed-in';
  readonly owner: string;
  readonly keys: readonly KeyRecord[];
  readonly workers: readonly WorkerRecord[];
  /** Signed in on this page just now: the focus goes to what came of it. */
  readonly arrived: boolean;
  readonly created: CreatedKey | null;
  /** The key that a person is asked about before it is revoked. */
  readonly asked: KeyRecord | null;
  readonly busy: boolean;
  /** Why the last thing that was asked for was not done. */
  readonly problem: string | null;
  /** The lists may be old: the last look at the server failed. */
  readonly stale: string | null;
  /** What was just done, for the live region. */
  readonly said: string;
}

export type KeysState =
  /** Nothing is known yet: also what is rendered on the server. */
  | { readonly status: 'opening' }
  | { readonly status: 'signed-out'; readonly busy: boolean; readonly problem: string | null }
  | SignedIn;

export type KeysAction =
  | { readonly type: 'nobody'; readonly problem?: string }
  | { readonly type: 'signingIn' }
  | { readonly type: 'looked'; readonly view: AdminView }
  | { readonly type: 'lookFailed'; readonly problem: string }
  | { readonly type: 'begun' }
  | { readonly type: 'failed'; readonly problem: string }
  | { readonly type: 'created'; readonly created: CreatedKey }
  | { readonly type: 'createdPutAway' }
  | { readonly type: 'revokeAsked'; readonly record: KeyRecord }
  | { readonly type: 'revokeDismissed' }
  | { readonly type: 'revoked'; readonly record: KeyRecord };

export const initialKeys: KeysState = { status: 'opening' };

/** The page as one pure reducer. */
export function changeKeys(state: KeysState, action: KeysAction): KeysState {
  switch (action.type) {
    case 'nobody':
      return { status: 'signed-out', busy: false, problem: action.problem ?? null };
    case 'signingIn':
      return { status: 'signed-out', busy: true, problem: null };
    case 'looked':
      return looked(state, action.view);
    case 'lookFailed':
      return state.status === 'signed-in'
        ? { ...state, stale: action.problem }
        : { status: 'signed-out', busy: false, problem: action.problem };
  }
  // The rest is about what a signed-in person does; an answer that comes after a sign-out is dropped.
  return state.status === 'signed-in' ? changeSignedIn(state, action) : state;
}

function looked(state: KeysState, { owner, keys, workers }: AdminView): SignedIn {
  if (state.status === 'signed-in') return { ...state, owner, keys, workers, stale: null };
  return {
    status: 'signed-in',
    owner,
    keys,
    workers,
    arrived: state.status === 'signed-out',
    created: null,
    asked: null,
    busy: false,
    problem: null,
    stale: null,
    said: state.status === 'signed-out' ? 'You are signed in.' : '',
  };
}

function changeSignedIn(
  state: SignedIn,
  action: Exclude<KeysAction, { type: 'nobody' | 'signingIn' | 'looked' | 'lookFailed' }>,
): SignedIn {
  switch (action.type) {
    case 'begun':
      return { ...state, busy: true, problem: null, said: '' };
    case 'failed':
      return { ...state, busy: false, problem: action.problem };
    case 'created': {
      const { created } = action;
      const keys = [created.record, ...state.keys];
      const said = `"${created.record.name}" was created.`;
      return { ...state, busy: false, created, keys, said };
    }
    case 'createdPutAway':
      return { ...state, created: null };
    case 'revokeAsked':
      return { ...state, asked: action.record, problem: null };
    case 'revokeDismissed':
      return { ...state, asked: null };
    case 'revoked': {
      const { record } = action;
      const keys = state.keys.map((key) => (key.id === record.id ? record : key));
      // What no longer works is not worth copying.
      const created = state.created?.record.id === record.id ? null : state.created;
      const said = `"${record.name}" is revoked.`;
      return { ...state, busy: false, keys, created, said };
    }
  }
}
