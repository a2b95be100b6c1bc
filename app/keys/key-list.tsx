import type { ReactNode, RefObject } from 'react';
import type { KeyRecord } from '../../lib/contract/v3/endpoints';
import { Modal } from '../models/modal';
import { Fact } from '../shared/fact';
import { isSession, kindNames, permissionsOf, statusOf } from './keys-view';

/** All keys: the valid ones, and the ended ones in a closed section. */
export function KeyList(props: {
  heading: RefObject<HTMLHeadingElement | null>;
  keys: readonly KeyRecord[];
  owner: string;
  busy: boolean;
  onRevoke: (record: KeyRecord) => void;
}) {
  const { heading, keys, owner, busy, onRevoke } = props;
  const now = Date.now();
  const valid = keys.filter((record) => statusOf(record, now) === 'valid');
  const ended = keys.filter((record) => statusOf(record, now) !== 'valid');
  return (
    <section className="panel" aria-labelledby="keys-title">
      <h2 id="keys-title" ref={heading} tabIndex={-1}>
        Keys and tokens
      </h2>
      <ul className="keys-list">
        {valid.map((record) => (
          <KeyRow key={record.id} record={record} owner={owner}>
            <button
              type="button"
              className="danger"
              disabled={busy}
              aria-label={`Revoke ${record.name}`}
              onClick={() => onRevoke(record)}
            >
              Revoke
            </button>
          </KeyRow>
        ))}
      </ul>
      {valid.length === 0 && <p className="field-hint">There are no valid keys.</p>}
      {ended.length > 0 && (
        <details className="more">
          <summary>Revoked and ended ({ended.length})</summary>
          <ul className="keys-list">
            {ended.map((record) => (
              <KeyRow key={record.id} record={record} owner={owner} />
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function KeyRow(props: { record: KeyRecord; owner: string; children?: ReactNode }) {
  const { record, owner, children } = props;
  return (
    <li className="keys-item">
      <div className="keys-head">
        <h3>{record.name}</h3>
        <span className="keys-kind" data-kind={record.kind}>
          {kindNames[record.kind]}
          {record.shared && ', shared'}
        </span>
        {children}
      </div>
      <code className="keys-code">{record.hint}</code>
      <dl className="keys-facts">
        {record.owner !== owner && <Fact name="Owner">{record.owner}</Fact>}
        <Fact name="May">{permissionsOf(record)}</Fact>
        <Fact name="Created">{dayOf(record.created_at)}</Fact>
        <Fact name="Last used">
          {record.last_used_at ? momentOf(record.last_used_at) : 'Never'}
        </Fact>
        {record.revoked_at && <Fact name="Revoked">{momentOf(record.revoked_at)}</Fact>}
        {!record.revoked_at && record.expires_at && !isSession(record) && (
          <Fact name="Ends">{momentOf(record.expires_at)}</Fact>
        )}
      </dl>
    </li>
  );
}

function dayOf(iso: string): string {
  return new Date(iso).toLocaleDateString(undefined, { dateStyle: 'medium' });
}

function momentOf(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}

const consequences = {
  api: 'Requests with it are rejected from now on. Waiting predictions still run, and videos stay.',
  worker: 'Workers that use it are disconnected. Their current jobs go to other workers.',
  'sign-in': 'Its link stops working, and the browser that signed in with it is signed out.',
} as const satisfies Record<KeyRecord['kind'], string>;

/** Asks for confirmation before a key is revoked. */
export function RevokeDialog(props: {
  record: KeyRecord;
  onConfirm: () => void;
  onClose: () => void;
}) {
  const { record, onConfirm, onClose } = props;
  return (
    <Modal titleId="revoke-title" onClose={onClose}>
      <h2 id="revoke-title">Revoke “{record.name}”?</h2>
      <p className="keys-dialog-text">
        {consequences[record.kind]} A revoked key cannot be restored.
      </p>
      <div className="actions">
        {/* The first button has the focus, so it must be the harmless one. */}
        <button type="button" onClick={onClose}>
          Keep it
        </button>
        <button type="button" className="danger" onClick={onConfirm}>
          Revoke
        </button>
      </div>
    </Modal>
  );
}
