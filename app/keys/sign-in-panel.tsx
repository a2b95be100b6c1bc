import { type FormEvent, useState } from 'react';

/** For whoever is not signed in: how to get in. */
export function SignInPanel(props: {
  busy: boolean;
  problem: string | null;
  onSignIn: (token: string) => void;
}) {
  const [token, setToken] = useState('');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    props.onSignIn(tokenIn(token));
  };
  return (
    <section className="panel keys-narrow" aria-labelledby="sign-in-title">
      <h2 id="sign-in-title">Sign in</h2>
      <p>
        Open the link that the server printed when it was started for the first time, print a fresh
        one with <code>npm run keys -- sign-in</code>, or paste an admin key here.
      </p>
      <form className="field" onSubmit={submit}>
        <label htmlFor="sign-in-token">Admin key or sign-in link</label>
        <div className="keys-row">
          <input
            id="sign-in-token"
            className="keys-secret"
            type="text"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            required
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
          <button type="submit" className="primary" disabled={props.busy}>
            Sign in
          </button>
        </div>
      </form>
      <div role="status" className="notice">
        {props.busy && <p className="field-hint">Signing in …</p>}
        {props.problem && <p className="problem">{props.problem}</p>}
      </div>
    </section>
  );
}

/** A link may be pasted whole. */
function tokenIn(text: string): string {
  return text.trim().split('#sign-in=').at(-1) ?? '';
}
