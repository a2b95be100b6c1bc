import { expect, test } from 'vitest';
import { Lifetimes, placeSlots, type Slot } from './arena';

/** Whether two slots are in one buffer at the same bytes. */
function share(a: Slot, b: Slot): boolean {
  const meet = a.byteOffset < b.byteOffset + b.bytes && b.byteOffset < a.byteOffset + a.bytes;
  return a.bin !== null && a.bin === b.bin && meet;
}

test('what is not needed any more gives its place; what is read and written at once does not', () => {
  const lifetimes = new Lifetimes();
  const [a, b, c, d] = [512, 512, 512, 512].map((bytes) => lifetimes.take(bytes)) as Slot[];
  if (!a || !b || !c || !d) throw new Error('there are no slots');
  lifetimes.step([], [a]);
  lifetimes.step([a], [b]);
  lifetimes.step([b], [c]);
  lifetimes.step([c], [d]);
  const bins = placeSlots(lifetimes.slots, Number.POSITIVE_INFINITY);
  // Two buffers in turn: a dispatch may not read and write one.
  expect(bins.map(({ bytes }) => bytes)).toEqual([512, 512]);
  expect(share(a, c) && share(b, d)).toBe(true);
  expect(a.bin).not.toBe(b.bin);
});

test('slots lie side by side at aligned offsets, in no bin that is too large', () => {
  const lifetimes = new Lifetimes();
  const slots = [1000, 300, 20].map((bytes) => lifetimes.take(bytes));
  lifetimes.step([], slots);
  expect(placeSlots(slots, Number.POSITIVE_INFINITY).map(({ bytes }) => bytes)).toEqual([
    1024, 512, 256,
  ]);
  expect(slots.every(({ byteOffset }) => byteOffset % 256 === 0)).toBe(true);
  // Its place is free for the others when it ends, as far as the bin may grow.
  const early = lifetimes.take(1200);
  early.first = 0;
  early.last = 0;
  expect(placeSlots([...slots, early], Number.POSITIVE_INFINITY)[0]?.slots).toHaveLength(3);
  expect(placeSlots([...slots, early], 1200)[0]?.slots).toHaveLength(2);
});

test('a result is kept from the first chunk on, and what a pass reads until its last chunk', () => {
  const lifetimes = new Lifetimes();
  const [whole, scratch, result] = [256, 256, 256].map((bytes) => lifetimes.take(bytes));
  if (!whole || !scratch || !result) throw new Error('there are no slots');
  lifetimes.beginPass();
  lifetimes.step([], [whole]);
  lifetimes.endPass([whole], false);
  lifetimes.beginPass();
  lifetimes.step([whole], [scratch]);
  lifetimes.step([scratch], [result]);
  lifetimes.endPass([result], true);
  // The next chunk reads `whole` again, and writes `scratch` while the first chunk's result is there.
  expect(whole.last).toBeGreaterThan(result.first);
  expect(result.first).toBeLessThan(scratch.first);
});
