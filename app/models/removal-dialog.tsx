import { entriesOf, formatBytes, groupPairs, type LibrarySnapshot } from '../../lib/contract';
import { t } from '../texts';
import '../texts/en/keys';
import '../texts/en/models';
import { Confirmation } from './modal';
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
  const { title, text, button, keep = t('keys.keepIt') } = wordsOf(removal, library);
  return (
    <Confirmation
      title={title}
      keep={keep}
      action={button}
      onConfirm={() => onConfirm(removal)}
      onClose={onClose}
    >
      {text}
    </Confirmation>
  );
}

function wordsOf({ kind, id }: Removal, library: LibrarySnapshot) {
  if (kind === 'lora') {
    const groups = groupPairs(library.loras, ({ name }) => name);
    const files = groups.find((group) => group.some(({ name }) => name === id)) ?? [];
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const text = t('models.frees', { bytes: formatBytes(bytes) });
    const name = files.map((file) => file.name).join(' + ') || id;
    return { title: t('models.deleteQuestion', { name }), text, button: t('models.delete') };
  }
  const entry = entriesOf(library).find(({ manifest }) => manifest.id === id);
  const name = entry?.manifest.name ?? id;
  const view = entry && viewModel(entry);
  const stored = formatBytes(view?.bytesStored ?? 0);
  if (kind === 'download') {
    const unfinished = entry?.parts.filter(({ status }) => status !== 'complete') ?? [];
    const fetched = unfinished.reduce((sum, { bytesDone }) => sum + bytesDone, 0);
    const lost = fetched > 0 ? ` ${t('models.lost', { bytes: formatBytes(fetched) })}` : '';
    return {
      title: t('models.cancelQuestion', { name }),
      text: `${t('models.completeStay')}${lost}`,
      button: t('shared.cancelDownload'),
      keep: t('models.goOn'),
    };
  }
  if (kind === 'model') {
    const text = t('models.takenOff', { bytes: stored });
    return { title: t('models.removeQuestion', { name }), text, button: t('models.remove') };
  }
  const text = t('models.freesModel', { bytes: stored });
  return { title: t('models.deleteQuestion', { name }), text, button: t('models.delete') };
}
