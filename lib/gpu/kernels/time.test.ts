import { expect, test } from 'vitest';
import { timeInTurns, timeWork } from './time';

test('the first execution does not count, and the wait for the end hardly does', async () => {
  let clock = 0;
  let first = true;
  const run = async (times: number) => {
    // 3 ms of waiting, 40 ms of compiling, 0.5 ms for each execution.
    clock += 3 + 0.5 * times + (first ? 40 : 0);
    first = false;
  };
  const { median, least } = await timeWork(run, { now: () => clock });
  expect(median).toBeGreaterThan(0.0005);
  expect(median).toBeLessThan(0.00052);
  expect(least).toBe(median);
});

test('whatever disturbs a measurement, no work seems faster than it is', async () => {
  let clock = 0;
  let call = 0;
  const run = async (times: number) => {
    // Clocks that are low at first, and a hiccup every third time.
    call++;
    clock += 0.5 * times * (call < 4 ? 5 : 1) + (call % 3 ? 0 : 80);
  };
  const { least } = await timeWork(run, { now: () => clock });
  expect(least).toBeGreaterThanOrEqual(0.0005);
  expect(least).toBeLessThan(0.00051);
});

test('long work is executed once a measurement, and a disturbed one changes nothing', async () => {
  let clock = 0;
  const counts: number[] = [];
  const run = async (times: number) => {
    counts.push(times);
    clock += 300 * times + (counts.length === 3 ? 1000 : 0);
  };
  const { median } = await timeWork(run, { rounds: 3, now: () => clock });
  expect(counts).toEqual([1, 1, 1, 1]);
  expect(median).toBeCloseTo(0.3, 9);
});

test('works that are compared take turns', async () => {
  let clock = 0;
  const order: string[] = [];
  const work = (name: string, milliseconds: number) => async (times: number) => {
    order.push(name);
    clock += milliseconds * times;
  };
  const options = { rounds: 3, warm: true, now: () => clock };
  const works = [work('slow', 800), work('fast', 400)];
  const [slow, fast] = await timeInTurns(works, options);
  expect([slow?.least, fast?.least]).toEqual([0.8, 0.4]);
  expect(order).toEqual(['slow', 'fast', 'fast', 'slow', 'slow', 'fast']);
  order.length = 0;
  const decided = ([one = 0, other = 0]: readonly number[]) => one > 1.5 * other;
  expect(await timeInTurns(works, { ...options, decided })).toMatchObject([
    { median: 0.8, least: 0.8 },
    { median: 0.4, least: 0.4 },
  ]);
  expect(order).toEqual(['slow', 'fast']);
});
