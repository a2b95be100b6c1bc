import { expect, test } from 'vitest';
import { fromHalf, toHalf } from './half';

test('every finite f16 survives, and what lies between is rounded to the nearest', () => {
  const all = Uint16Array.from({ length: 65536 }, (_, i) => i).filter(
    (i) => (i & 0x7c00) !== 0x7c00,
  );
  const values = fromHalf(all);
  expect(toHalf(values)).toEqual(all);
  // What lies between each and its next; a tie goes to the even one.
  const lower = Array.from({ length: 0x7bfe }, (_, i) => i + 1);
  const middle = lower.map((i) => ((values[i] ?? 0) + (values[i + 1] ?? 0)) / 2);
  expect(toHalf(middle)).toEqual(Uint16Array.from(lower, (i) => i + (i % 2)));
});

test('what is too large is clamped', () => {
  expect([...fromHalf(toHalf([1e9, -1e9, 65519]))]).toEqual([65504, -65504, 65504]);
});
