import type { ReactNode, RefObject } from 'react';
import type { KeyRecord } from '../../lib/contract/v3/endpoints';
import { Fact } from '../shared/fact';
import { dayOf, isSession, kindNames, momentOf, permissionsOf, statusOf } from './keys-view';

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
