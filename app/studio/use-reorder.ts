import { type KeyboardEvent, type PointerEvent, type RefObject, useRef, useState } from 'react';

/** Where a row is held while it is dragged. */
interface Drag {
  readonly id: string;
  readonly index: number;
}

/** The order of a list while one of its rows is moved, and the handlers of each row's handle. */
export interface Reorder<Row> {
  /** The rows as they are shown: a dragged one stands where it would be put down. */
  readonly rows: readonly Row[];
  /** Id of the row that is dragged. */
  readonly dragged: string | null;
  readonly handleOf: (id: string) => HandleProps;
}

interface HandleProps {
  readonly onKeyDown: (event: KeyboardEvent) => void;
  readonly onPointerDown: (event: PointerEvent) => void;
  readonly onPointerMove: (event: PointerEvent) => void;
  readonly onPointerUp: () => void;
  readonly onPointerCancel: () => void;
}

/**
 * Moves rows of a list by dragging their handle, with mouse, pen or finger, and by arrow keys, Home and End.
 *
 * @param element the one whose children are the rows
 * @param onMove is called with a row's id and its new index; resolves when the list has it
 */
export function useReorder<Row extends { readonly id: string }>(
  element: RefObject<HTMLElement | null>,
  rows: readonly Row[],
  onMove: (id: string, index: number) => Promise<void>,
): Reorder<Row> {
  const [drag, setDrag] = useState<Drag | null>(null);
  /** Set from pointer down until pointer up. */
  const held = useRef(false);
  const shown = drag ? moved(rows, drag) : rows;
  const indexIn = (list: readonly Row[], id: string) => list.findIndex((row) => row.id === id);

  const drop = (): void => {
    held.current = false;
    if (!drag) return;
    const { id, index } = drag;
    // The row stays where it was put until the list has the new order.
    if (index === indexIn(rows, id)) setDrag(null);
    else void onMove(id, index).finally(() => setDrag(null));
  };

  return {
    rows: shown,
    dragged: drag?.id ?? null,
    handleOf: (id) => ({
      onKeyDown(event) {
        if (event.key === 'Escape') {
          held.current = false;
          setDrag(null);
          return;
        }
        const index = indexIn(shown, id);
        const target = targetOf(event.key, index, rows.length - 1);
        if (target === null) return;
        event.preventDefault();
        if (target !== index) void onMove(id, target);
      },
      onPointerDown(event) {
        if (event.button !== 0) return;
        held.current = true;
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag({ id, index: indexIn(rows, id) });
      },
      onPointerMove(event) {
        if (!held.current || drag?.id !== id) return;
        const index = indexAt(element.current, event.clientY, drag.index);
        if (index !== drag.index) setDrag({ id, index });
      },
      onPointerUp: drop,
      onPointerCancel() {
        held.current = false;
        setDrag(null);
      },
    }),
  };
}

function moved<Row extends { readonly id: string }>(
  rows: readonly Row[],
  { id, index }: Drag,
): readonly Row[] {
  const row = rows.find((each) => each.id === id);
  return row ? rows.filter((each) => each !== row).toSpliced(index, 0, row) : rows;
}

/** The index for a pointer at `y`: the row there gives way once the pointer has passed its middle. */
function indexAt(list: HTMLElement | null, y: number, present: number): number {
  const boxes = [...(list?.children ?? [])].map((child) => child.getBoundingClientRect());
  let index = present;
  boxes.forEach(({ top, height }, row) => {
    const middle = top + height / 2;
    if (row < index && y < middle) index = row;
    if (row > index && y > middle) index = row;
  });
  return index;
}

function targetOf(key: string, index: number, last: number): number | null {
  if (key === 'ArrowUp') return Math.max(0, index - 1);
  if (key === 'ArrowDown') return Math.min(last, index + 1);
  if (key === 'Home') return 0;
  return key === 'End' ? last : null;
}
