import type { ReactNode, RefObject } from 'react';
import type { KeyRecord } from '../../lib/contract/v3';
import { Button } from '../shared/button';
import { Fact } from '../shared/fact';
import { t } from '../texts';
import '../texts/en/keys';
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
        {t('keys.keysAndTokens')}
      </h2>
      <ul className="keys-list">
        {valid.map((record) => (
          <KeyRow key={record.id} record={record} owner={owner}>
            <Button
              className="danger small"
              disabled={busy}
              aria-label={t('keys.revokeName', { name: record.name })}
              onClick={() => onRevoke(record)}
            >
              {t('keys.revoke')}
            </Button>
          </KeyRow>
        ))}
      </ul>
      {valid.length === 0 && <p className="field-hint">{t('keys.noKeys')}</p>}
      {ended.length > 0 && (
        <details className="more">
          <summary>{t('keys.ended', { count: ended.length })}</summary>
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
    <li className="item stack gap-6">
      <div className="keys-head stack gap-4-16">
        <h3 className="break">{record.name}</h3>
        <span className="keys-kind muted text-s" data-kind={record.kind}>
          {record.shared
            ? t('keys.kindShared', { kind: t(kindNames[record.kind]) })
            : t(kindNames[record.kind])}
        </span>
        {children}
      </div>
      <code className="muted">{record.hint}</code>
      <dl className="keys-facts flex gap-4-16 wrap text-m numbers">
        {record.owner !== owner && <Fact name={t('keys.owner')}>{record.owner}</Fact>}
        <Fact name={t('keys.may')}>{permissionsOf(record)}</Fact>
        <Fact name={t('keys.created')}>{dayOf(record.created_at)}</Fact>
        <Fact name={t('keys.lastUsed')}>
          {record.last_used_at ? momentOf(record.last_used_at) : t('keys.never')}
        </Fact>
        {record.revoked_at && <Fact name={t('keys.revoked')}>{momentOf(record.revoked_at)}</Fact>}
        {!record.revoked_at && record.expires_at && !isSession(record) && (
          <Fact name={t('keys.ends')}>{momentOf(record.expires_at)}</Fact>
        )}
      </dl>
    </li>
  );
}
