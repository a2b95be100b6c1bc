import { columns, hasTokenRows, type Value } from '../../graph';
import type { BoundGraph, RowChunk } from '../executor';
import {
  type Compute,
  type HeadView,
  type Operand,
  offsetAlignment,
  type RowView,
  rowView,
  type Storage,
  storageBytes,
} from '../kernels';
import type { DeviceTensor } from '../tensor';
import type { Bin, Slot } from './arena';

/** Where a value lies while a graph runs. */
export type Place =
  /** In a tensor of the caller, in f32. */
  | { readonly kind: 'bound'; readonly name: string; readonly storage: 'f32' }
  /** Rows in a slot, or in one for each class of tokens. */
  | {
      readonly kind: 'rows';
      readonly slots: readonly Slot[];
      readonly storage: Storage;
      /** The first row of a table that is meant. */
      readonly row: number;
    }
  /** All rows of the clip in one slot, one head behind the other (see {@link HeadLayout}). */
  | {
      readonly kind: 'heads';
      readonly slots: readonly [Slot];
      readonly storage: Storage;
      readonly layout: HeadLayout;
    };

/** A range of a bin, and the slot that it is of. */
export interface SlotOperand extends Operand {
  readonly slot: Slot;
}

/** What the dispatches of a step are listed for. */
export interface Listing {
  readonly chunk: RowChunk;
  readonly bindings: BoundGraph;
  readonly bins: ReadonlyMap<Bin, DeviceTensor>;
  /** Counts results that f16 does not hold. */
  readonly overflows: DeviceTensor;
}

export function slotsOf(place: Place): readonly Slot[] {
  return place.kind === 'bound' ? [] : place.slots;
}

/** Rows of a value that a listing is about. */
export function rowsOf(value: Value, { chunk, bindings }: Listing): number {
  const [first = 1] = value.dims;
  if (value.dims.length < 2) return 1;
  return hasTokenRows(value) ? chunk.count : bindings.size(first);
}

/** A range of a slot. */
export function slotOperand(
  slot: Slot,
  { bins }: Pick<Listing, 'bins'>,
  byteSize = slot.bytes,
  start = 0,
): SlotOperand {
  const tensor = slot.bin && bins.get(slot.bin);
  if (!tensor) throw new TypeError('the slot has no memory');
  const whole = Math.min(Math.ceil(byteSize / 16) * 16, slot.bytes - start);
  return { tensor, byteOffset: slot.byteOffset + start, byteSize: whole, slot };
}

export function slotRows(slot: Slot, listing: Listing, byteSize: number): RowView {
  return { operand: slotOperand(slot, listing, byteSize), firstRow: 0 };
}

/** The rows of a value that a listing is about. */
export function viewOf(value: Value, place: Place, listing: Listing): RowView {
  const rows = rowsOf(value, listing);
  const rowBytes = columns(value) * storageBytes(place.storage);
  const { chunk, bindings } = listing;
  switch (place.kind) {
    case 'bound': {
      if (!hasTokenRows(value)) {
        return rowView(bindings.tensor(place.name, chunk.class), 0, rows, rowBytes);
      }
      const { tensor, first } = bindings.rows(place.name);
      return rowView(tensor, chunk.start - first, rows, rowBytes);
    }
    case 'rows': {
      const slot = place.slots[place.slots.length > 1 ? chunk.class : 0];
      if (!slot) throw new TypeError(`there is no class ${chunk.class}`);
      const operand = slotOperand(slot, listing, rows * rowBytes, place.row * rowBytes);
      return { operand, firstRow: 0 };
    }
    case 'heads':
      throw new TypeError('heads are no rows');
  }
}

/** Heads of all rows of a clip: element (head, row, c) is at `head·headStride + row·rowStride + c`. */
export interface HeadLayout {
  readonly heads: number;
  readonly headSize: number;
  /** In elements. */
  readonly headStride: number;
  readonly rowStride: number;
}

/** Rows between two heads: a multiple, so that every head starts at an aligned offset. */
const headRowStep = 16;

export function headLayout(tokens: number, heads: number, headSize: number): HeadLayout {
  const headStride = Math.ceil(tokens / headRowStep) * headRowStep * headSize;
  return { heads, headSize, headStride, rowStride: headSize };
}

/** Some of the heads. */
export interface HeadRange {
  readonly first: number;
  readonly count: number;
}

/**
 * The ranges of heads that one binding sees at a time: all of them where it can be, else as many as fit and start at
 * an aligned offset in every operand, those with heads side by side included.
 */
export function headRanges(
  { heads, headSize, headStride }: HeadLayout,
  storage: Storage,
  { bindingBytes }: Compute['limits'],
): HeadRange[] {
  const bytes = storageBytes(storage);
  const aligned = Math.max(1, offsetAlignment / (headSize * bytes));
  const fitting = Math.floor(bindingBytes / (headStride * bytes));
  const most = fitting >= heads ? heads : Math.max(aligned, fitting - (fitting % aligned));
  const ranges: HeadRange[] = [];
  for (let first = 0; first < heads; first += most) {
    ranges.push({ first, count: Math.min(most, heads - first) });
  }
  return ranges;
}

/** The heads of a range of a value, of all its rows or side by side in the rows of a chunk. */
export function headView(
  value: Value,
  place: Place,
  headSize: number,
  { first, count }: HeadRange,
  listing: Listing,
): HeadView {
  const bytes = storageBytes(place.storage);
  if (place.kind === 'heads') {
    const { headStride, rowStride } = place.layout;
    const [slot] = place.slots;
    const size = headStride * bytes;
    const operand = slotOperand(slot, listing, count * size, first * size);
    return { operand, firstRow: 0, headStride, rowStride };
  }
  const { operand, firstRow } = viewOf(value, place, listing);
  const { byteOffset = 0, byteSize = operand.tensor.bytes - byteOffset } = operand;
  const start = first * headSize * bytes;
  return {
    operand: { ...operand, byteOffset: byteOffset + start, byteSize: byteSize - start },
    firstRow,
    headStride: headSize,
    rowStride: columns(value),
  };
}
