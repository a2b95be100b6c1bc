import { useWindowEvent } from '../shared/browser';

/** Handles the shortcuts; `?` is ignored in text fields. */
export function useShortcuts(actions: {
  onGenerate: () => void;
  onCancel: () => void;
  onHelp: () => void;
}): void {
  useWindowEvent('keydown', (event) => {
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key === 'Enter') {
      // A key that is held down adds one video to the queue, not one each time it repeats.
      if (!event.repeat) actions.onGenerate();
    } else if (command && event.key === '.') actions.onCancel();
    else if (event.key === '?' && !command && !isTyping(event.target)) actions.onHelp();
    else return;
    event.preventDefault();
  });
}

/** Whether a key belongs to the field that has the focus. */
export function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !['radio', 'range', 'file'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
