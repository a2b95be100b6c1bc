import { useRouter } from 'next/navigation';
import { useCallback, useEffect, useReducer, useRef } from 'react';
import { KinoraError } from '../../lib/contract';
import {
  forgetSession,
  mayBeSignedIn,
  rememberSession,
  sessionKey,
  sharedAfterSignIn,
} from '../shared/session';
import { askTerms } from '../shared/terms-store';
import { errorTexts, t } from '../texts';
import '../texts/en/keys';
import { AdminError, admin } from './admin-client';
import { changeKeys, initialKeys, type Revocable } from './keys-state';
import { type KeyForm, requestOf, signInToken } from './keys-view';

/** Interval of reloading the lists, in milliseconds. */
const reloadMs = 10_000;

/** The state of the page and its actions. */
export function useKeys() {
  const [state, change] = useReducer(changeKeys, initialKeys);
  /** Counts changes: lists that were requested before a change are out of date. */
  const changes = useRef(0);

  const fail = useCallback((thrown: unknown, type: 'failed' | 'loadFailed') => {
    if (thrown instanceof KinoraError) return change({ type, problem: errorTexts(thrown).message });
    if (!(thrown instanceof AdminError)) throw thrown;
    if (thrown.status !== 401) return change({ type, problem: thrown.message });
    forgetSession();
    change({ type: 'signedOut', problem: t('keys.sessionEnded') });
  }, []);

  const load = useCallback(async () => {
    const changesBefore = changes.current;
    try {
      const view = await admin.load();
      if (changesBefore === changes.current) change({ type: 'loaded', view });
    } catch (thrown) {
      if (changesBefore === changes.current) fail(thrown, 'loadFailed');
    }
  }, [fail]);

  const signIn = useCallback(
    async (token: string) => {
      changes.current++;
      change({ type: 'signingIn' });
      try {
        await admin.signIn(token);
        rememberSession();
        await load();
      } catch (thrown) {
        if (!(thrown instanceof AdminError)) throw thrown;
        // Opening a used link again does not end the session that it started.
        if (thrown.status === 401 && mayBeSignedIn()) return await load();
        change({
          type: 'signedOut',
          problem: thrown.status === 401 ? t('keys.signInFailed') : thrown.message,
        });
      }
    },
    [load],
  );

  useOpening(signIn, load, () => change({ type: 'signedOut' }));
  const router = useRouter();
  const isSignedIn = state.status === 'signed-in';
  useEffect(() => {
    const sharing = sharedAfterSignIn();
    if (isSignedIn && sharing !== null) router.replace(`/?sharing=${sharing}`);
  }, [isSignedIn, router]);
  useReload(load, isSignedIn);

  const act = async (work: () => Promise<void>) => {
    changes.current++;
    change({ type: 'started' });
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
        forgetSession();
        change({ type: 'signedOut' });
      }),
    /** Creates a key; asks for the terms of use before the first one on this device. */
    create: (form: KeyForm) =>
      act(async () => {
        if (!(await askTerms())) return change({ type: 'failed', problem: t('keys.termsNeeded') });
        change({ type: 'created', created: await admin.createKey(requestOf(form)) });
      }),
    revoke: (target: Revocable) => {
      change({ type: 'revokeCancelled' });
      return act(async () => {
        const { kind, record } = target;
        if (kind === 'link') await admin.revokeShare(record.id);
        const revoked =
          kind === 'link' ? target : { kind, record: await admin.revokeKey(record.id) };
        change({ type: 'revoked', target: revoked });
      });
    },
  };
}
export type KeysActions = Omit<ReturnType<typeof useKeys>, 'state'>;

/** Handles how the page was opened: with a sign-in link, with a session, or without. */
function useOpening(
  signIn: (token: string) => Promise<void>,
  load: () => Promise<void>,
  onSignedOut: () => void,
): void {
  const opened = useRef(false);
  const signedOut = useRef(onSignedOut);
  useEffect(() => {
    const openLink = (): boolean => {
      const token = signInToken(location.hash);
      if (token === null) return false;
      // Remove the token from the address bar and the history first.
      history.replaceState(history.state, '', location.pathname + location.search);
      void signIn(token);
      return true;
    };
    // In development React runs effects twice, but a token is valid once.
    if (!opened.current) {
      opened.current = true;
      if (!openLink()) {
        if (mayBeSignedIn()) void load();
        else signedOut.current();
      }
    }
    // The link of the terminal opens a tab of its own.
    const follow = ({ key }: StorageEvent) => key === sessionKey && mayBeSignedIn() && void load();
    window.addEventListener('hashchange', openLink);
    window.addEventListener('storage', follow);
    return () => {
      window.removeEventListener('hashchange', openLink);
      window.removeEventListener('storage', follow);
    };
  }, [signIn, load]);
}

/** Reloads the lists periodically and when the page becomes visible, but not while it is hidden. */
function useReload(load: () => Promise<void>, on: boolean): void {
  useEffect(() => {
    if (!on) return;
    const loadIfVisible = () => {
      if (document.visibilityState === 'visible') void load();
    };
    const timer = setInterval(loadIfVisible, reloadMs);
    document.addEventListener('visibilitychange', loadIfVisible);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', loadIfVisible);
    };
  }, [load, on]);
}
