import { type RefObject, useEffect, useEffectEvent } from 'react';

const modifier = 'Ctrl or ⌘';

const shortcuts: readonly (readonly [keys: string, effect: string])[] = [
  [`${modifier} + Enter`, 'Generate'],
  [`${modifier} + .`, 'Cancel'],
  ['Delete', 'Delete the past video that has the focus'],
  [`${modifier} + Z`, 'Bring back a deleted video'],
  [`${modifier} + V`, 'Paste an image'],
  [', and .', 'Step through the frames of the video'],
  ['?', 'Show these shortcuts'],
];

/** The dialog that lists the shortcuts. */
export function ShortcutsDialog({ dialog }: { dialog: RefObject<HTMLDialogElement | null> }) {
  return (
    <dialog ref={dialog} aria-labelledby="shortcuts-title">
      <h2 id="shortcuts-title">Shortcuts</h2>
      <dl className="shortcuts">
        {shortcuts.map(([keys, effect]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{effect}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog" className="actions">
        <button type="submit">Close</button>
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
