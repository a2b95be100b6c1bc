import { useCallback, useEffect, useReducer, useRef } from 'react';
import type { KeyRecord } from '../../lib/contract/v3/endpoints';
import { AdminError, admin } from './admin-client';
import { changeKeys, initialKeys } from './keys-state';
import { type KeyForm, requestOf, signInToken } from './keys-view';
import { mayBeSignedIn, noteSignedIn, noteSignedOut } from './session-note';

/** How often the lists are read again, in milliseconds. */
const lookEveryMs = 10_000;
const refused =
  'This lets nobody in: the link was used or has ended, or the key is wrong or not for administration. Print a fresh link.';
const sessionEnded = 'Your session has ended. Sign in again.';

/** The page's state, and everything that changes it. */
export function useKeys() {
  const [state, change] = useReducer(changeKeys, initialKeys);
  /** Counts changes: a look that began before one tells what was before it. */
  const changes = useRef(0);

  const fail = useCallback((thrown: unknown, type: 'failed' | 'lookFailed') => {
    if (!(thrown instanceof AdminError)) throw thrown;
    if (thrown.status !== 401) return change({ type, problem: thrown.message });
    noteSignedOut();
    change({ type: 'nobody', problem: sessionEnded });
  }, []);

  const look = useCallback(async () => {
    const begun = changes.current;
    try {
      const view = await admin.look();
      if (begun === changes.current) change({ type: 'looked', view });
    } catch (thrown) {
      if (begun === changes.current) fail(thrown, 'lookFailed');
    }
  }, [fail]);

  const signIn = useCallback(
    async (token: string) => {
      changes.current++;
      change({ type: 'signingIn' });
      try {
        await admin.signIn(token);
        noteSignedIn();
        await look();
      } catch (thrown) {
        if (!(thrown instanceof AdminError)) throw thrown;
        // A used link that was opened again does not end the session that it once began.
        if (thrown.status === 401 && mayBeSignedIn()) return await look();
        change({ type: 'nobody', problem: thrown.status === 401 ? refused : thrown.message });
      }
    },
    [look],
  );

  useOpening(signIn, look, () => change({ type: 'nobody' }));
  useRepeatedly(look, state.status === 'signed-in');

  const act = async (work: () => Promise<void>) => {
    changes.current++;
    change({ type: 'begun' });
    try {
      await work();
    } catch (thrown) {
      fail(thrown, 'failed');
    } finally {
      changes.current++;
    }
  };
  return {
    state,
    change,
    signIn,
    signOut: () =>
      act(async () => {
        await admin.signOut();
        noteSignedOut();
        change({ type: 'nobody' });
      }),
    create: (form: KeyForm) =>
      act(async () => change({ type: 'created', created: await admin.createKey(requestOf(form)) })),
    revoke: (record: KeyRecord) => {
      change({ type: 'revokeDismissed' });
      return act(async () => change({ type: 'revoked', record: await admin.revokeKey(record.id) }));
    },
  };
}
export type KeysActions = Omit<ReturnType<typeof useKeys>, 'state'>;

/** What the page was opened with: a sign-in link, a session, or nothing. */
function useOpening(
  signIn: (token: string) => Promise<void>,
  look: () => Promise<void>,
  onNobody: () => void,
): void {
  const opened = useRef(false);
  const nobody = useRef(onNobody);
  useEffect(() => {
    const openLink = (): boolean => {
      const token = signInToken(location.hash);
      if (token === null) return false;
      // At once: the token is not to stay in the address bar, nor in the history.
      history.replaceState(history.state, '', location.pathname + location.search);
      void signIn(token);
      return true;
    };
    // React runs effects twice in development; a token works once.
    if (!opened.current) {
      opened.current = true;
      if (!openLink()) {
        if (mayBeSignedIn()) void look();
        else nobody.current();
      }
    }
    window.addEventListener('hashchange', openLink);
    return () => window.removeEventListener('hashchange', openLink);
  }, [signIn, look]);
}

/** Looks every now and then, and when the page is seen again; not while it is hidden. */
function useRepeatedly(look: () => Promise<void>, on: boolean): void {
  useEffect(() => {
    if (!on) return;
    const lookIfSeen = () => {
      if (document.visibilityState === 'visible') void look();
    };
    const timer = setInterval(lookIfSeen, lookEveryMs);
    document.addEventListener('visibilitychange', lookIfSeen);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', lookIfSeen);
    };
  }, [look, on]);
}
