import type { KeyRecord } from '../../lib/contract/v3/endpoints';
import { Modal } from '../models/modal';
import type { Revocable } from './keys-state';

const consequences = {
  api: 'Requests with it are rejected from now on. Waiting predictions still run, and videos stay.',
  worker: 'Workers that use it are disconnected. Their current jobs go to other workers.',
  'sign-in': 'Its link stops working, and the browser that signed in with it is signed out.',
} as const satisfies Record<KeyRecord['kind'], string>;

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
          <h2 id="revoke-title">Revoke “{target.record.name}”?</h2>
          <p className="keys-dialog-text">
            {consequences[target.record.kind]} A revoked key cannot be restored.
          </p>
        </>
      ) : (
        <>
          <h2 id="revoke-title">Revoke this link?</h2>
          <p className="keys-dialog-text">
            Nobody can watch the video by it any more, and its address is not used again.{' '}
            {target.record.uploaded
              ? 'The video is deleted from this server; the one in your browser stays.'
              : 'The video itself stays until it expires.'}
          </p>
        </>
      )}
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
