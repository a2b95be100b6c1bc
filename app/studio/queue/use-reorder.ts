import {
  type KeyboardEvent,
  type PointerEvent as ReactPointerEvent,
  type RefObject,
  useEffect,
  useEffectEvent,
  useState,
} from 'react';

/** The row that is moved, and where it would be put down. */
interface Drag {
  readonly id: string;
  readonly index: number;
  /** Once it is put down: the order that the list had then, until it has the new one. */
  readonly orderBefore: string | null;
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
  readonly onPointerDown: (event: ReactPointerEvent) => void;
}

/**
 * Moves rows of a list by dragging their handle, with mouse, pen or finger, and by arrow keys, Home and End.
 *
 * @param element the one whose children are the rows
 * @param onMove is called with a row's id and its new index; resolves to false where it could not be moved
 */
export function useReorder<Row extends { readonly id: string }>(
  element: RefObject<HTMLElement | null>,
  rows: readonly Row[],
  onMove: (id: string, index: number) => Promise<boolean>,
): Reorder<Row> {
  const [latest, setDrag] = useState<Drag | null>(null);
  const order = rows.map(({ id }) => id).join(' ');
  const isOver = latest !== null && latest.orderBefore !== null && latest.orderBefore !== order;
  const drag = isOver ? null : latest;
  const shown = drag ? moved(rows, drag) : rows;
  const held = drag !== null && drag.orderBefore === null;
  // The row stays where it was put until the list has another order, so that a next move begins there.
  const put = (id: string, index: number) => {
    setDrag({ id, index, orderBefore: order });
    void onMove(id, index).then((isMoved) => isMoved || setDrag(null));
  };

  const move = useEffectEvent((event: PointerEvent) => {
    if (!drag) return;
    const index = indexAt(element.current, event.clientY, drag.index);
    if (index !== drag.index) setDrag({ ...drag, index });
  });
  const drop = useEffectEvent(() => {
    if (!drag || rows[drag.index]?.id === drag.id) return setDrag(null);
    put(drag.id, drag.index);
  });
  useEffect(() => {
    if (!held) return;
    const end = new AbortController();
    // Of the window: an element that is moved in the document loses the pointer.
    window.addEventListener('pointermove', (event) => move(event), end);
    window.addEventListener('pointerup', () => drop(), end);
    window.addEventListener('pointercancel', () => setDrag(null), end);
    window.addEventListener('keydown', ({ key }) => key === 'Escape' && setDrag(null), end);
    return () => end.abort();
  }, [held]);

  return {
    rows: shown,
    dragged: held ? drag.id : null,
    handleOf: (id) => ({
      onKeyDown(event) {
        const index = shown.findIndex((row) => row.id === id);
        const target = targetOf(event.key, index, rows.length - 1);
        if (target === null) return;
        event.preventDefault();
        if (target !== index) put(id, target);
      },
      onPointerDown(event) {
        if (event.button !== 0) return;
        setDrag({ id, index: shown.findIndex((row) => row.id === id), orderBefore: null });
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
