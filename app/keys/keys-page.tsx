'use client';

import { SiteHeader } from '../shared/site-header';
import { SignInPanel } from './sign-in-panel';
import { SignedInView } from './signed-in-view';
import { useKeys } from './use-keys';

/** Who may use this Kinora: API keys, worker tokens, and the workers that they brought. */
export function KeysPage() {
  const { state, ...actions } = useKeys();
  return (
    <>
      <SiteHeader here="/keys" />
      <main className="keys">
        <h1>Keys</h1>
        {state.status === 'opening' && <progress aria-label="Looking who is signed in" />}
        {state.status === 'signed-out' && (
          <SignInPanel
            busy={state.busy}
            problem={state.problem}
            onSignIn={(token) => void actions.signIn(token)}
          />
        )}
        {state.status === 'signed-in' && <SignedInView state={state} actions={actions} />}
        <p className="visually-hidden" role="status">
          {state.status === 'signed-in' ? state.said : ''}
        </p>
      </main>
    </>
  );
}
