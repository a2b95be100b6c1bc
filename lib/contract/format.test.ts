import { expect, test } from 'vitest';
import { formatBytes, formatMemory, formatPercent, formatSeconds, formatSize } from './format';

test('seconds', () => {
  expect([0.4, 59.4, 59.6, 185, 3599.6].map((value) => formatSeconds(value))).toEqual([
    '0 s',
    '59 s',
    '1 min 00 s',
    '3 min 05 s',
    '1 h 00 min',
  ]);
  expect([0.44, 9.94, 9.96].map((value) => formatSeconds(value, true))).toEqual([
    '0.4 s',
    '9.9 s',
    '10 s',
  ]);
});

test('bytes and sizes', () => {
  expect([812, 999_600, 4_200_000, 250e6, 3.2e9].map(formatBytes)).toEqual([
    '812 B',
    '1.0 MB',
    '4.2 MB',
    '250 MB',
    '3.2 GB',
  ]);
  expect(formatSize('1280*720')).toBe('1280×720');
});

test('memory and percent', () => {
  expect([3 * 2 ** 20, 2 ** 29, 7.44 * 2 ** 30, 120 * 2 ** 30].map(formatMemory)).toEqual([
    '3 MiB',
    '0.5 GiB',
    '7.4 GiB',
    '120 GiB',
  ]);
  expect([0, 0.417, 0.9999, 1, 1.5].map(formatPercent)).toEqual([
    '0 %',
    '41 %',
    '99 %',
    '100 %',
    '100 %',
  ]);
});
