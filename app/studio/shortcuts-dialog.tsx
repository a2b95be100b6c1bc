import { Modal } from '../models/modal';
import { Link } from '../shared/link';
import { type TextKey, t } from '../texts';
import '../texts/en/run';

const shortcuts: readonly {
  readonly key: string;
  /** Whether it is pressed together with Ctrl or ⌘. */
  readonly command: boolean;
  readonly effect: TextKey;
}[] = [
  { key: 'Enter', command: true, effect: 'run.shortcut.generate' },
  { key: '.', command: true, effect: 'run.cancel' },
  { key: 'Delete', command: false, effect: 'run.shortcut.delete' },
  { key: 'Z', command: true, effect: 'run.shortcut.undo' },
  { key: 'V', command: true, effect: 'run.shortcut.paste' },
  { key: ', .', command: false, effect: 'run.shortcut.frames' },
  { key: '?', command: false, effect: 'run.shortcut.help' },
];

/** The dialog that lists the shortcuts. */
export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  return (
    <Modal title={t('run.shortcuts')} close={null} onClose={onClose}>
      <dl className="stack">
        {shortcuts.map(({ key, command, effect }) => (
          <div key={key} className="flex between gap-16">
            <dt>
              <kbd>{command ? t('run.withCommand', { key }) : key}</kbd>
            </dt>
            <dd>{t(effect)}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog" className="actions">
        <button type="submit">{t('shared.close')}</button>
        <Link href="/help" className="button">
          {t('common.help')}
        </Link>
      </form>
    </Modal>
  );
}
