import type { KeyRecord } from '../../lib/contract/v3';
import { Modal } from '../models/modal';
import { type TextKey, t } from '../texts';
import '../texts/en/keys';
import type { Revocable } from './keys-state';

const consequences = {
  api: 'keys.revokedApi',
  worker: 'keys.revokedWorker',
  'sign-in': 'keys.revokedSignIn',
} as const satisfies Record<KeyRecord['kind'], TextKey>;

/** Asks for confirmation before a key or a link is revoked. */
export function RevokeDialog(props: {
  target: Revocable;
  onConfirm: () => void;
  onClose: () => void;
}) {
  const { target, onConfirm, onClose } = props;
  return (
    <Modal titleId="revoke-title" onClose={onClose}>
      {target.kind === 'key' ? (
        <>
          <h2 id="revoke-title">{t('keys.revokeQuestion', { name: target.record.name })}</h2>
          <p className="keys-dialog-text">
            {t(consequences[target.record.kind])} {t('keys.cannotRestore')}
          </p>
        </>
      ) : (
        <>
          <h2 id="revoke-title">{t('keys.revokeLinkQuestion')}</h2>
          <p className="keys-dialog-text">
            {t('keys.linkGone')}{' '}
            {target.record.uploaded ? t('keys.uploadGone') : t('keys.videoStays')}
          </p>
        </>
      )}
      <div className="actions">
        {/* The first button has the focus, so it must be the harmless one. */}
        <button type="button" onClick={onClose}>
          {t('keys.keepIt')}
        </button>
        <button type="button" className="danger" onClick={onConfirm}>
          {t('keys.revoke')}
        </button>
      </div>
    </Modal>
  );
}
