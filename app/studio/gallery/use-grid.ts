import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react';

/** Between cards, in CSS pixels. */
const gap = 16;

/** The part of a long grid that is rendered. The page scrolls, not the grid. */
export interface Grid {
  readonly listRef: RefObject<HTMLUListElement | null>;
  readonly columns: number;
  /** Indices of the items to render: from the first to before the last. */
  readonly from: number;
  readonly to: number;
  /** Height of what is not rendered, in CSS pixels. */
  readonly above: number;
  readonly below: number;
  /** For the first card of each row, with its row as `data-index`: all cards of a row have one height. */
  readonly measureRow: (card: HTMLElement | null) => void;
  readonly scrollTo: (index: number) => void;
}

/** Lays out `count` cards in rows, and finds those near the visible part of the page. */
export function useGrid(count: number): Grid {
  const listRef = useRef<HTMLUListElement>(null);
  const { top, width } = useBox(listRef);
  const columns = columnsOf(width);
  const cardWidth = (width + gap) / columns - gap;
  const virtualizer = useWindowVirtualizer<HTMLElement>({
    count: Math.ceil(count / columns),
    // A poster of 16:9, and its text.
    estimateSize: () => Math.round((cardWidth * 9) / 16) + 134,
    gap,
    overscan: 2,
    scrollMargin: top,
    // The bar above the grid covers the top of the page.
    scrollPaddingStart: 72,
    useFlushSync: false,
  });
  // The browser keeps what is visible in its place when rows above it turn out higher or lower.
  virtualizer.shouldAdjustScrollPositionOnItemSizeChange = () => false;
  useEffect(() => {
    // Cards of another width have another height.
    if (cardWidth > 0) virtualizer.measure();
  }, [cardWidth, virtualizer]);
  const rows = virtualizer.getVirtualItems();
  const [first, last] = [rows[0], rows.at(-1)];
  return {
    listRef,
    columns,
    from: (first?.index ?? 0) * columns,
    to: Math.min(count, last ? (last.index + 1) * columns : 0),
    above: first ? first.start - top : 0,
    below: last ? virtualizer.getTotalSize() - (last.end - top) : 0,
    measureRow: virtualizer.measureElement,
    scrollTo: (index) => virtualizer.scrollToIndex(Math.floor(index / columns)),
  };
}

/** How many columns fit; two on a phone. */
function columnsOf(width: number): number {
  const least = width < 480 ? 150 : 220;
  return Math.max(1, Math.floor((width + gap) / (least + gap)));
}

/** Distance of an element from the top of the page, and its width, in CSS pixels. */
function useBox(element: RefObject<HTMLElement | null>): { top: number; width: number } {
  const [box, setBox] = useState({ top: 0, width: 0 });
  useLayoutEffect(() => {
    const measure = () => {
      if (!element.current) return;
      const rect = element.current.getBoundingClientRect();
      const [top, width] = [Math.round(rect.top + window.scrollY), rect.width];
      setBox((before) => (before.top === top && before.width === width ? before : { top, width }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    // What grows above the element moves it, and makes the page longer.
    observer.observe(document.body);
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return box;
}
