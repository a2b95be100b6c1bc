import { expect, test } from 'vitest';
import { peakRate } from './peak-rate';

const peak = { multiplyAdd: 10, integerDot: 40 };

test('a fast attention takes the time of its f32 half and of its integer half', () => {
  expect(peakRate(peak, 'attention', false)).toBe(10);
  // 100 operations: 50 at 10 and 50 at 40 per second.
  expect(100 / (peakRate(peak, 'attention', true) ?? 0)).toBeCloseTo(50 / 10 + 50 / 40, 9);
});

test('only linears are integers throughout', () => {
  expect(peakRate(peak, 'linear', true)).toBe(40);
  expect(peakRate(peak, 'linear', false)).toBe(10);
  expect(peakRate(peak, 'convolution', true)).toBe(10);
  expect(peakRate({ ...peak, integerDot: null }, 'linear', true)).toBeNull();
});
