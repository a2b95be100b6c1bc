import type { KeyRecord } from '../../lib/contract/v3';
import { Confirmation } from '../models/modal';
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
