import { type RefObject, useEffect, useEffectEvent } from 'react';
import { type TextKey, t } from '../texts';

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
export function ShortcutsDialog({ dialog }: { dialog: RefObject<HTMLDialogElement | null> }) {
  return (
    <dialog ref={dialog} aria-labelledby="shortcuts-title">
      <h2 id="shortcuts-title">{t('run.shortcuts')}</h2>
      <dl className="shortcuts">
        {shortcuts.map(({ key, command, effect }) => (
          <div key={key}>
            <dt>
              <kbd>{command ? t('run.withCommand', { key }) : key}</kbd>
            </dt>
            <dd>{t(effect)}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog" className="actions">
        <button type="submit">{t('shared.close')}</button>
      </form>
    </dialog>
  );
}

/** Handles the shortcuts; `?` is ignored in text fields. */
export function useShortcuts(actions: {
  onGenerate: () => void;
  onCancel: () => void;
  onHelp: () => void;
}): void {
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key === 'Enter') {
      // A key that is held down adds one video to the queue, not one each time it repeats.
      if (!event.repeat) actions.onGenerate();
    } else if (command && event.key === '.') actions.onCancel();
    else if (event.key === '?' && !command && !isTyping(event.target)) actions.onHelp();
    else return;
    event.preventDefault();
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKey(event);
    window.addEventListener('keydown', listener);
    return () => window.removeEventListener('keydown', listener);
  }, []);
}

/** Whether a key belongs to the field that has the focus. */
export function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !['radio', 'range', 'file'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
