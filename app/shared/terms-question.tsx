import { termsVersion } from '../../lib/contract';
import { Modal } from '../models/modal';
import { t } from '../texts';
import { Problem } from './messages';
import { accept, decline, useTerms } from './terms-store';
import { TermsText } from './terms-text';

/** The terms of use, to accept or not. */
export function TermsQuestion() {
  const { error } = useTerms();
  return (
    <Modal titleId="terms-dialog-title" className="terms-dialog" onClose={decline}>
      <h2 id="terms-dialog-title" tabIndex={-1}>
        {t('common.termsOfUse')}
      </h2>
      <p className="field-hint">{t('shared.termsAskedOnce', { version: termsVersion })}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <section className="terms-scroll" aria-label={t('shared.termsText')} tabIndex={0}>
        <TermsText level={3} />
      </section>
      {error && <Problem error={error} />}
      <div className="actions">
        <button type="button" className="primary" onClick={() => void accept()}>
          {t('shared.accept')}
        </button>
        <button type="button" onClick={decline}>
          {t('shared.notNow')}
        </button>
      </div>
    </Modal>
  );
}
