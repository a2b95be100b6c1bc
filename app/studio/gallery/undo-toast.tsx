import { useEffect, useState } from 'react';
import { useWindowEvent } from '../../shared/browser';
import { Button } from '../../shared/button';
import { t } from '../../texts';
import '../../texts/en/gallery';
import { isTyping } from '../shortcuts';
import type { Deletions } from './use-deletions';

/** How long a deletion can be undone, in milliseconds. */
export const toastMs = 10_000;

/** Offers to undo the last deletion, then the one before it, and deletes for good when the time is over. */
export function UndoToast({ list, undo, forget }: Deletions) {
  /** While it has the pointer or the focus, it stays. */
  const [held, setHeld] = useState(false);
  useEffect(() => {
    if (held) return;
    const timer = setTimeout(forget, toastMs);
    return () => clearTimeout(timer);
  }, [held, forget]);
  useWindowEvent('keydown', (event) => {
    const command = (event.ctrlKey || event.metaKey) && !event.shiftKey;
    if (!command || event.key !== 'z' || isTyping(event.target)) return;
    event.preventDefault();
    undo();
  });
  const count = list.reduce((sum, { ids }) => sum + ids.length, 0);
  return (
    <div
      className="toast row gap-16 bordered on-surface"
      role="status"
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      <span>{t('gallery.deleted', { count })}</span>
      <Button aria-keyshortcuts="Control+Z Meta+Z" onClick={undo}>
        {t('gallery.undo')}
      </Button>
    </div>
  );
}
