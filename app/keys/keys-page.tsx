'use client';

import { type FormEvent, type RefObject, useEffect, useRef, useState } from 'react';
import type { KeyRecord, ShareRecord, WorkerRecord } from '../../lib/contract/v3';
import { Page } from '../shared/app-page';
import { Button } from '../shared/button';
import { Link } from '../shared/link';
import { type TextKey, t } from '../texts';
import '../texts/en/keys';
import { Confirmation } from '../models/modal';
import { Fact } from '../shared/fact';
import { CreatedKeyPanel, CreateKey } from './create-key';
import { KeyList } from './key-list';
import type { Revocable, SignedIn } from './keys-state';
import { dayOf, lacksWorker, momentOf, shownSentence, workersSentence } from './keys-view';
import { type KeysActions, useKeys } from './use-keys';

/** The page that manages API keys, worker tokens and connected workers. */
export function KeysPage() {
  const { state, ...actions } = useKeys();
  return (
    <Page here="/keys" name="common.keys" className="page keys">
      {state.status === 'opening' && <progress aria-label={t('keys.checking')} />}
      {state.status === 'signed-out' && (
        <SignInPanel
          busy={state.busy}
          problem={state.problem}
          onSignIn={(token) => void actions.signIn(token)}
        />
      )}
      {state.status === 'signed-in' && <SignedInView state={state} actions={actions} />}
      <p className="visually-hidden" role="status">
        {state.status === 'signed-in' ? state.announcement : ''}
      </p>
    </Page>
  );
}

/** The sign-in form, with instructions. */
function SignInPanel(props: {
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
      <h2 id="sign-in-title">{t('keys.signIn')}</h2>
      <p>{t.rich('keys.signInHow', { code: (command) => <code>{command}</code> })}</p>
      <form className="field" onSubmit={submit}>
        <label htmlFor="sign-in-token">{t('keys.adminKey')}</label>
        <div className="input-row row wrap">
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
            {t('keys.signIn')}
          </button>
        </div>
      </form>
      <div role="status" className="notice stack gap-8">
        {props.busy && <p className="field-hint">{t('keys.signingIn')}</p>}
        {props.problem && <p className="problem">{props.problem}</p>}
      </div>
    </section>
  );
}

/** The token of a text, which may be a complete sign-in link. */
function tokenIn(text: string): string {
  return text.trim().split('#sign-in=').at(-1) ?? '';
}

/** The page of a signed-in user. */
function SignedInView({ state, actions }: { state: SignedIn; actions: KeysActions }) {
  const { owner, keys, workers, shares, justSignedIn, created } = state;
  const { confirming, busy, problem, stale } = state;
  const { change } = actions;
  const list = useRef<HTMLHeadingElement>(null);
  const links = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // The sign-in form, which had the focus, has disappeared.
    if (justSignedIn) list.current?.focus();
  }, [justSignedIn]);
  return (
    <>
      <div className="split">
        <p>{t.rich('keys.signedInAs', { owner, strong: (name) => <strong>{name}</strong> })}</p>
        <Button disabled={busy} onClick={() => void actions.signOut()}>
          {t('keys.signOut')}
        </Button>
      </div>
      <div role="alert" className="notice stack gap-8">
        {problem && <p className="problem">{problem}</p>}
        {stale && (
          <p className="problem">
            {stale} {t('keys.stale')}
          </p>
        )}
      </div>
      {created && (
        <CreatedKeyPanel
          key={created.record.id}
          created={created}
          onDone={() => {
            change({ type: 'createdClosed' });
            list.current?.focus();
          }}
        />
      )}
      <div className="columns stack gap-24">
        <div className="column stack gap-24">
          <KeyList
            heading={list}
            keys={keys}
            owner={owner}
            busy={busy}
            onRevoke={(record) =>
              change({ type: 'revokeRequested', target: { kind: 'key', record } })
            }
          />
          <LinkList
            heading={links}
            shares={shares}
            busy={busy}
            onRevoke={(record) =>
              change({ type: 'revokeRequested', target: { kind: 'link', record } })
            }
          />
        </div>
        <div className="column stack gap-24">
          <WorkersPanel workers={workers} />
          <CreateKey busy={busy} onCreate={(form) => void actions.create(form)} />
        </div>
      </div>
      {confirming && (
        <RevokeDialog
          target={confirming}
          onConfirm={() => {
            void actions.revoke(confirming);
            // The browser first moves the focus back to the Revoke button, which then disappears.
            const heading = confirming.kind === 'key' ? list : links;
            requestAnimationFrame(() => heading.current?.focus());
          }}
          onClose={() => change({ type: 'revokeCancelled' })}
        />
      )}
    </>
  );
}

const workerStates = {
  idle: 'keys.workerIdle',
  busy: 'keys.workerBusy',
  paused: 'keys.workerPaused',
} as const;

/** The connected workers of the owner. */
function WorkersPanel({ workers }: { workers: readonly WorkerRecord[] }) {
  return (
    <section className="panel" aria-labelledby="workers-title">
      <h2 id="workers-title">{t('keys.workers')}</h2>
      <p>{workersSentence(workers)}</p>
      {workers.length > 0 && (
        <ul className="keys-workers stack">
          {workers.map((worker) => (
            <li key={worker.id} data-state={worker.state}>
              <strong className="break text-xl strong">{worker.name}</strong>
              <span>
                {worker.model}, {worker.precision}: {t(workerStates[worker.state])}
              </span>
            </li>
          ))}
        </ul>
      )}
      {lacksWorker(workers) && <p className="info">{t('keys.noWorker')}</p>}
      <p>
        <Link className="button" href="/serve">
          {t('keys.serveHere')}
        </Link>
      </p>
    </section>
  );
}

const consequences = {
  api: 'keys.revokedApi',
  worker: 'keys.revokedWorker',
  'sign-in': 'keys.revokedSignIn',
} as const satisfies Record<KeyRecord['kind'], TextKey>;

/** Asks for confirmation before a key or a link is revoked. */
function RevokeDialog(props: { target: Revocable; onConfirm: () => void; onClose: () => void }) {
  const { target, onConfirm, onClose } = props;
  const isKey = target.kind === 'key';
  return (
    <Confirmation
      title={
        isKey
          ? t('keys.revokeQuestion', { name: target.record.name })
          : t('keys.revokeLinkQuestion')
      }
      keep={t('keys.keepIt')}
      action={t('keys.revoke')}
      onConfirm={onConfirm}
      onClose={onClose}
    >
      {isKey ? t(consequences[target.record.kind]) : t('keys.linkGone')}{' '}
      {isKey && t('keys.cannotRestore')}
      {!isKey && (target.record.uploaded ? t('keys.uploadGone') : t('keys.videoStays'))}
    </Confirmation>
  );
}

/** The open links to videos of this server, of the API and of the studio. */
function LinkList(props: {
  heading: RefObject<HTMLHeadingElement | null>;
  shares: readonly ShareRecord[];
  busy: boolean;
  onRevoke: (share: ShareRecord) => void;
}) {
  const { heading, shares, busy, onRevoke } = props;
  return (
    <section className="panel" aria-labelledby="links-title">
      <h2 id="links-title" ref={heading} tabIndex={-1}>
        {t('keys.links')}
      </h2>
      <ul className="keys-list">
        {shares.map((share) => (
          <li key={share.id} className="item stack gap-6">
            <div className="keys-head stack gap-4-16">
              <h3 className="clamp break">{share.title}</h3>
              <span className="keys-kind muted text-s">
                {share.uploaded ? t('common.studio') : 'API'}
              </span>
              <Button
                className="danger small"
                disabled={busy}
                aria-label={t('keys.revokeLinkTo', { title: share.title })}
                onClick={() => onRevoke(share)}
              >
                {t('keys.revoke')}
              </Button>
            </div>
            <a className="break muted text-m" href={share.url} target="_blank" rel="noreferrer">
              {share.url}
            </a>
            <dl className="keys-facts flex gap-4-16 wrap text-m numbers">
              <Fact name={t('keys.shows')}>{shownSentence(share.include)}</Fact>
              <Fact name={t('keys.created')}>{dayOf(share.created_at)}</Fact>
              <Fact name={t('keys.ends')}>{momentOf(share.expires_at)}</Fact>
            </dl>
          </li>
        ))}
      </ul>
      {shares.length === 0 && <p className="field-hint">{t('keys.noLinks')}</p>}
    </section>
  );
}
