import type { KeyRecord } from '../../lib/contract/v3/endpoints';
import { Modal } from '../models/modal';

const consequences = {
  api: 'Programs that use it are refused from now on. Predictions that wait still run, and videos stay.',
  worker:
    'Tabs and machines that use it are disconnected. A job that one of them is working on goes to another worker.',
  'sign-in': 'Its link stops working, and the browser that signed in with it is signed out.',
} as const satisfies Record<KeyRecord['kind'], string>;

/** Asks before something stops working for good. */
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
        {consequences[record.kind]} A revoked key cannot be brought back.
      </p>
      <div className="actions">
        {/* The harmless one first: it has the focus. */}
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
