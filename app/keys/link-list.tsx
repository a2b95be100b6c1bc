import type { RefObject } from 'react';
import type { ShareRecord } from '../../lib/contract/v3';
import { Fact } from '../shared/fact';
import { t } from '../texts';
import '../texts/en/keys';
import { dayOf, momentOf, shownSentence } from './keys-view';

/** The open links to videos of this server, of the API and of the studio. */
export function LinkList(props: {
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
              <button
                type="button"
                className="danger small"
                disabled={busy}
                aria-label={t('keys.revokeLinkTo', { title: share.title })}
                onClick={() => onRevoke(share)}
              >
                {t('keys.revoke')}
              </button>
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
