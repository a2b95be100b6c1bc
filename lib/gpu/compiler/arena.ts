import { offsetAlignment } from '../kernels/compute';
import type { DeviceTensor } from '../tensor';

/** Memory of one value while it is needed. */
export interface Slot {
  readonly bytes: number;
  /** Steps of the program, both inclusive, between which the content is needed. */
  first: number;
  last: number;
  /** Slots that some step reads while it writes this one, or the reverse. */
  readonly apart: Set<Slot>;
  /** Where it lies; null before it is placed. */
  bin: Bin | null;
  byteOffset: number;
}

/**
 * A buffer that slots share. There are several: WebGPU forbids a dispatch to read one range of a buffer and to write
 * another.
 */
export interface Bin {
  bytes: number;
  readonly slots: Slot[];
}

/** Between two steps: so many steps before a pass fit there. */
const beforeStep = 2 ** -20;

/** Follows the steps of a program, and with them how long the content of each slot is needed. */
export class Lifetimes {
  readonly slots: Slot[] = [];
  #now = 0;
  #passStart = 0;
  #beforeStart = 0;

  /** A slot that no step uses yet. */
  take(bytes: number): Slot {
    const slot: Slot = {
      bytes: Math.ceil(bytes / 16) * 16,
      first: Number.POSITIVE_INFINITY,
      last: 0,
      apart: new Set(),
      bin: null,
      byteOffset: 0,
    };
    this.slots.push(slot);
    return slot;
  }

  /** The next step. A slot that it updates in place is among `writes` only. */
  step(reads: readonly Slot[], writes: readonly Slot[]): void {
    this.#use(++this.#now, reads, writes);
  }

  /**
   * The next step of those that a pass over chunks does once, before its first chunk. Slots that only these steps
   * read are free while the chunks are computed.
   */
  stepBefore(reads: readonly Slot[], writes: readonly Slot[]): void {
    this.#beforeStart += beforeStep;
    this.#use(this.#beforeStart, reads, writes);
  }

  #use(now: number, reads: readonly Slot[], writes: readonly Slot[]): void {
    for (const slot of [...reads, ...writes]) slot.last = Math.max(slot.last, now);
    for (const slot of writes) {
      slot.first = Math.min(slot.first, now);
      for (const read of reads) {
        if (read === slot) continue;
        read.apart.add(slot);
        slot.apart.add(read);
      }
    }
  }

  beginPass(): void {
    this.#beforeStart = this.#now;
    this.#passStart = ++this.#now;
  }

  /**
   * @param results slots that later passes read: a chunk writes its part while those before it keep theirs
   * @param repeated whether the steps are repeated, for each chunk or class: all of them read what was there before
   */
  endPass(results: readonly Slot[], repeated: boolean): void {
    for (const slot of results) slot.first = this.#passStart;
    const end = ++this.#now;
    if (!repeated) return;
    for (const slot of this.slots) {
      if (slot.first <= this.#passStart && slot.last > this.#passStart) slot.last = end;
    }
  }
}

/**
 * Places slots, the largest first, each where the bins grow least. Slots that live at the same time do not overlap;
 * those that are to be apart get different bins.
 *
 * @param largest most bytes of a bin
 */
export function placeSlots(slots: readonly Slot[], largest: number): Bin[] {
  const bins: Bin[] = [];
  for (const slot of slots.toSorted((a, b) => b.bytes - a.bytes || a.first - b.first)) {
    const size = alignedBytes(slot);
    let best: { readonly bin: Bin; readonly byteOffset: number; readonly growth: number } = {
      bin: { bytes: 0, slots: [] },
      byteOffset: 0,
      growth: size,
    };
    for (const bin of bins) {
      if (bin.slots.some((other) => slot.apart.has(other))) continue;
      const byteOffset = freeOffset(bin, slot);
      const growth = Math.max(0, byteOffset + size - bin.bytes);
      if (byteOffset + size <= largest && growth < best.growth) best = { bin, byteOffset, growth };
    }
    const { bin, byteOffset } = best;
    if (bin.slots.length === 0) bins.push(bin);
    bin.bytes = Math.max(bin.bytes, byteOffset + size);
    bin.slots.push(slot);
    slot.bin = bin;
    slot.byteOffset = byteOffset;
  }
  return bins;
}

/** Bytes of a slot with what is left free behind it, so that the next one starts at an aligned offset. */
export function alignedBytes({ bytes }: Slot): number {
  return Math.ceil(bytes / offsetAlignment) * offsetAlignment;
}

/** The lowest offset in a bin that is free while the slot lives. */
function freeOffset(bin: Bin, slot: Slot): number {
  const busy = bin.slots
    .filter(({ first, last }) => first <= slot.last && slot.first <= last)
    .toSorted((a, b) => a.byteOffset - b.byteOffset);
  let byteOffset = 0;
  for (const other of busy) {
    if (byteOffset + alignedBytes(slot) <= other.byteOffset) break;
    byteOffset = Math.max(byteOffset, other.byteOffset + alignedBytes(other));
  }
  return byteOffset;
}

/** A tensor for each bin. */
export function binTensors(
  bins: readonly Bin[],
  make: (dims: readonly number[]) => DeviceTensor,
): ReadonlyMap<Bin, DeviceTensor> {
  return new Map(bins.map((bin) => [bin, make([bin.bytes / 4])]));
}
