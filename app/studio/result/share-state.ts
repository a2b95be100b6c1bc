import type { Share } from '../../../lib/contract/v3';

/** The dialog "Share this video". */
export type ShareState =
  | { readonly status: 'closed' }
  /** What to share is chosen; `problem` says why the last try failed. */
  | { readonly status: 'choosing'; readonly problem: string | null }
  /** @property sent from 0 to 1 */
  | { readonly status: 'uploading'; readonly sent: number }
  | { readonly status: 'shared'; readonly link: Share; readonly copied: boolean };

export type ShareEvent =
  | { readonly type: 'opened' }
  | { readonly type: 'closed' }
  | { readonly type: 'started' }
  | { readonly type: 'sent'; readonly fraction: number }
  | { readonly type: 'failed'; readonly problem: string }
  | { readonly type: 'shared'; readonly link: Share }
  | { readonly type: 'copied' };

/** Pure reducer of the dialog. Reports of a cancelled upload change nothing. */
export function changeShare(state: ShareState, event: ShareEvent): ShareState {
  switch (event.type) {
    case 'opened':
      return { status: 'choosing', problem: null };
    case 'closed':
      return { status: 'closed' };
    case 'started':
      return { status: 'uploading', sent: 0 };
    case 'sent':
      return state.status === 'uploading' ? { ...state, sent: event.fraction } : state;
    case 'failed':
      if (state.status === 'closed') return state;
      return { status: 'choosing', problem: event.problem };
    case 'shared':
      if (state.status !== 'uploading') return state;
      return { status: 'shared', link: event.link, copied: false };
    case 'copied':
      return state.status === 'shared' ? { ...state, copied: true } : state;
  }
}
