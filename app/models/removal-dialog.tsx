import { formatBytes } from '../../lib/contract/format';
import { entriesOf, type LibrarySnapshot } from '../../lib/contract/library';
import { Modal } from './modal';
import { viewModel } from './model-view';
import type { Removal } from './page-state';

/** Asks before something is deleted. */
export function RemovalDialog(props: {
  removal: Removal;
  library: LibrarySnapshot;
  onConfirm: (removal: Removal) => void;
  onClose: () => void;
}) {
  const { removal, library, onConfirm, onClose } = props;
  const { title, text, button, keep = 'Keep it' } = wordsOf(removal, library);
  return (
    <Modal titleId="removal-title" onClose={onClose}>
      <h2 id="removal-title">{title}</h2>
      <p className="dialog-text">{text}</p>
      <div className="actions">
        {/* The harmless one first: it has the focus. */}
        <button type="button" onClick={onClose}>
          {keep}
        </button>
        <button type="button" className="danger" onClick={() => onConfirm(removal)}>
          {button}
        </button>
      </div>
    </Modal>
  );
}

function wordsOf({ kind, id }: Removal, library: LibrarySnapshot) {
  if (kind === 'lora') {
    const bytes = library.loras.find(({ name }) => name === id)?.bytes ?? 0;
    const text = `This frees ${formatBytes(bytes)}. Videos made with it stay.`;
    return { title: `Delete ${id}?`, text, button: 'Delete' };
  }
  const entry = entriesOf(library).find(({ manifest }) => manifest.id === id);
  const name = entry?.manifest.name ?? id;
  const view = entry && viewModel(entry);
  const stored = formatBytes(view?.bytesStored ?? 0);
  if (kind === 'download') {
    const unfinished = entry?.parts.filter(({ status }) => status !== 'complete') ?? [];
    const fetched = unfinished.reduce((sum, { bytesDone }) => sum + bytesDone, 0);
    const lost =
      fetched > 0 ? ` What has come of the others, ${formatBytes(fetched)}, is deleted.` : '';
    return {
      title: `Cancel the download of ${name}?`,
      text: `The parts that are complete stay.${lost}`,
      button: 'Cancel the download',
      keep: 'Go on with it',
    };
  }
  if (kind === 'model') {
    const text = `It is taken off the list, and what is stored of it is deleted (${stored}).`;
    return { title: `Remove ${name}?`, text, button: 'Remove' };
  }
  const text = `This frees ${stored}. It can be downloaded again at any time. Videos made with it stay.`;
  return { title: `Delete ${name}?`, text, button: 'Delete' };
}
