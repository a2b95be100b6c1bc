import { expect, test } from 'vitest';
import { compareRates } from './relay-store';

test.each([
  [680, 1.5, '1.47x slower, 1.50x the CPU time'],
  [1470, 1, '1.47x faster, 1.00x the CPU time'],
  [1001, 1, 'as fast, 1.00x the CPU time'],
])('%d/s beside 1000/s', (perSecond, cpuMs, text) => {
  expect(compareRates({ perSecond, cpuMs }, { perSecond: 1000, cpuMs: 1 })).toBe(text);
});
