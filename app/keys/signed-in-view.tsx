import { useEffect, useRef } from 'react';
import { CreateKey } from './create-key';
import { CreatedKeyPanel } from './created-key';
import { KeyList } from './key-list';
import type { SignedIn } from './keys-state';
import { RevokeDialog } from './revoke-dialog';
import type { KeysActions } from './use-keys';
import { WorkersPanel } from './workers-panel';

/** The page of somebody who is signed in. */
export function SignedInView({ state, actions }: { state: SignedIn; actions: KeysActions }) {
  const { owner, keys, workers, arrived, created, asked, busy, problem, stale } = state;
  const { change } = actions;
  const list = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // The form that had the focus is gone.
    if (arrived) list.current?.focus();
  }, [arrived]);
  return (
    <>
      <div className="keys-who">
        <p>
          Signed in as <strong>{owner}</strong>
        </p>
        <button type="button" disabled={busy} onClick={() => void actions.signOut()}>
          Sign out
        </button>
      </div>
      <div role="alert" className="notice">
        {problem && <p className="problem">{problem}</p>}
        {stale && <p className="problem">{stale} What is shown may be old.</p>}
      </div>
      {created && (
        <CreatedKeyPanel
          key={created.record.id}
          created={created}
          onDone={() => {
            change({ type: 'createdPutAway' });
            list.current?.focus();
          }}
        />
      )}
      <div className="keys-columns">
        <div className="keys-main">
          <KeyList
            heading={list}
            keys={keys}
            owner={owner}
            busy={busy}
            onRevoke={(record) => change({ type: 'revokeAsked', record })}
          />
        </div>
        <div className="keys-side">
          <WorkersPanel workers={workers} />
          <CreateKey busy={busy} onCreate={(form) => void actions.create(form)} />
        </div>
      </div>
      {asked && (
        <RevokeDialog
          record={asked}
          onConfirm={() => {
            void actions.revoke(asked);
            // Its button is about to go; the browser gives the focus back to it first.
            requestAnimationFrame(() => list.current?.focus());
          }}
          onClose={() => change({ type: 'revokeDismissed' })}
        />
      )}
    </>
  );
}
