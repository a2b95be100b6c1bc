import { expect, test } from 'vitest';
import { peakRate } from './peak-rate';

const peak = { multiplyAdd: 10, integerDot: 40 };

test('fast linears and attention multiply integers, convolutions never', () => {
  for (const family of ['linear', 'attention'] as const) {
    expect(peakRate(peak, family, true)).toBe(40);
    expect(peakRate(peak, family, false)).toBe(10);
    expect(peakRate({ ...peak, integerDot: null }, family, true)).toBeNull();
  }
  expect(peakRate(peak, 'convolution', true)).toBe(10);
});
