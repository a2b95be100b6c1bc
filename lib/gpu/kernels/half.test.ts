import { expect, test } from 'vitest';
import { fromHalf, toHalf } from './half';

test('every finite f16 survives, and what lies between is rounded to the nearest', () => {
  const all = Uint16Array.from({ length: 65536 }, (_, i) => i).filter(
    (i) => (i & 0x7c00) !== 0x7c00,
  );
  const values = fromHalf(all);
  expect(toHalf(values)).toEqual(all);
  for (let i = 1; i < 0x7bff; i++) {
    const [a, b] = [values[i] as number, values[i + 1] as number];
    // A tie goes to the even one.
    expect(toHalf([(a + b) / 2])[0]).toBe(i % 2 === 0 ? i : i + 1);
  }
});

test('what is too large is clamped', () => {
  expect([...fromHalf(toHalf([1e9, -1e9, 65519]))]).toEqual([65504, -65504, 65504]);
});
