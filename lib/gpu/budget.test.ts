import { afterEach, expect, test, vi } from 'vitest';
import { CountingBackend, probeBudget } from '.';
import { mainMemoryBudget } from './budget';

const [mebibyte, gibibyte] = [2 ** 20, 2 ** 30];

/** A device with so much memory, and all that it was asked for. */
function deviceOf(bytes: number) {
  const asked: number[] = [];
  const backend = new CountingBackend();
  backend.ceiling = bytes;
  const canHold = (wanted: number) => {
    asked.push(wanted);
    return backend.canHold(wanted);
  };
  return { canHold, asked };
}

test('a budget leaves 5 % of the memory free, or 256 MiB', async () => {
  expect(await probeBudget(deviceOf(8.5 * gibibyte), 8 * gibibyte)).toBe(8 * gibibyte);
  const large = await probeBudget(deviceOf(8.3 * gibibyte), 8 * gibibyte);
  expect(1.05 * large).toBeLessThanOrEqual(8.3 * gibibyte);
  expect(large).toBeGreaterThan(7.5 * gibibyte);
  const small = await probeBudget(deviceOf(gibibyte), gibibyte);
  expect(small).toBeLessThanOrEqual(768 * mebibyte);
  expect(small).toBeGreaterThan(700 * mebibyte);
  expect(await probeBudget(deviceOf(200 * mebibyte), gibibyte)).toBe(0);
});

test('nothing beyond what is wanted and the reserve is asked for', async () => {
  const device = deviceOf(100 * gibibyte);
  await probeBudget(device, 2 * gibibyte);
  expect(device.asked).toEqual([2 * gibibyte + 256 * mebibyte]);
});

afterEach(() => vi.unstubAllGlobals());

test.each([
  ['Chrome tells 8 GiB', { deviceMemory: 8 }, 4],
  ['Chrome tells 2 GiB', { deviceMemory: 2 }, 1],
  ['Firefox tells nothing', {}, 2],
])('%s: half of main memory', (_, navigator, budget) => {
  vi.stubGlobal('navigator', navigator);
  expect(mainMemoryBudget()).toBe(budget * gibibyte);
});
