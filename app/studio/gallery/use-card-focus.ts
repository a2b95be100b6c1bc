import { type RefObject, useEffect, useRef } from 'react';
import type { Deletion } from './use-deletions';
import type { Grid } from './use-grid';

/**
 * Moves the focus to a card, which may not be rendered yet, and to the first one that an undo brings back.
 *
 * @param ids of all cards, in their order
 * @returns moves the focus to the card of a prediction
 */
export function useCardFocus(
  section: RefObject<HTMLElement | null>,
  grid: Grid,
  ids: readonly string[],
  undone: Deletion | null,
): (id: string) => void {
  /** The card that gets the focus as soon as it is rendered. */
  const pendingId = useRef<string | null>(null);
  const tryFocus = () => {
    // Behind an open dialog nothing gets the focus.
    if (pendingId.current === null || document.querySelector('dialog[open]')) return;
    const card = section.current?.querySelector(`[data-id="${pendingId.current}"]`);
    if (card) {
      pendingId.current = null;
      card.querySelector<HTMLElement>('.card-face')?.focus();
      return;
    }
    const index = ids.indexOf(pendingId.current);
    if (index >= 0) grid.scrollTo(index);
  };
  useEffect(() => {
    if (undone?.from !== 'gallery') return;
    pendingId.current = undone.ids[0] ?? null;
    // A filter may hide it: the focus does not jump when it appears much later.
    const timer = setTimeout(() => {
      pendingId.current = null;
    }, 1000);
    return () => clearTimeout(timer);
  }, [undone]);
  useEffect(tryFocus);
  return (id) => {
    pendingId.current = id;
    tryFocus();
  };
}
