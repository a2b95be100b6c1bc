import { termsVersion } from '../../lib/contract';
import { Modal } from '../models/modal';
import { t } from '../texts';
import { Button } from './button';
import { Problem } from './messages';
import { accept, decline, useTerms } from './terms-store';
import { TermsText } from './terms-text';

/** The terms of use, to accept or not. */
export function TermsQuestion() {
  const { error } = useTerms();
  return (
    <Modal
      title={t('common.termsOfUse')}
      isLong
      width={680}
      className="terms-dialog"
      buttons={
        <Button className="primary" onClick={() => void accept()}>
          {t('shared.accept')}
        </Button>
      }
      close={t('shared.notNow')}
      onClose={decline}
    >
      <p className="field-hint">{t('shared.termsAskedOnce', { version: termsVersion })}</p>
      <section
        className="terms-scroll stack gap-16"
        aria-label={t('shared.termsText')}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        tabIndex={0}
      >
        <TermsText level={3} />
      </section>
      {error && <Problem error={error} />}
    </Modal>
  );
}
