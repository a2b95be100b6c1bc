import { expect, test } from 'vitest';
import { measureDelay, timeInTurns, timeWork } from './time';

/** A clock that only works and waits move. */
function fakeClock() {
  let time = 0;
  const pass = (milliseconds: number) => {
    time += milliseconds;
  };
  return { pass, clock: { now: () => time, wait: async (ms: number) => pass(ms) } };
}

test('the first execution does not count, and the wait for the end hardly does', async () => {
  const { clock, pass } = fakeClock();
  let first = true;
  const run = async (times: number) => {
    // 3 ms of waiting, 40 ms of compiling, 0.5 ms for each execution.
    pass(3 + 0.5 * times + (first ? 40 : 0));
    first = false;
  };
  const { median, truest } = await timeWork(run, { clock });
  expect(median).toBeCloseTo(0.0005, 9);
  expect(truest).toBeCloseTo(median, 9);
});

test('whatever disturbs a measurement, no work seems faster than it is', async () => {
  const { clock, pass } = fakeClock();
  let call = 0;
  const run = async (times: number) => {
    // Clocks that are low at first, and a hiccup every third time.
    call++;
    pass(0.5 * times * (call < 4 ? 5 : 1) + (call % 3 ? 0 : 80));
  };
  const { truest } = await timeWork(run, { clock });
  expect(truest).toBeGreaterThanOrEqual(0.0005);
  expect(truest).toBeLessThan(0.00051);
});

test('long work is executed once a measurement, and a disturbed one changes nothing', async () => {
  const { clock, pass } = fakeClock();
  const counts: number[] = [];
  const run = async (times: number) => {
    if (times > 0) counts.push(times);
    pass(300 * times + (counts.length === 3 ? 1000 : 0));
  };
  const { median } = await timeWork(run, { rounds: 3, clock });
  expect(counts).toEqual([1, 1, 1, 1]);
  expect(median).toBeCloseTo(0.3, 9);
});

test('works that are compared take turns', async () => {
  const { clock, pass } = fakeClock();
  const order: string[] = [];
  const work = (name: string, milliseconds: number) => async (times: number) => {
    if (times > 0) order.push(name);
    pass(milliseconds * times);
  };
  const options = { rounds: 3, warm: true, clock };
  const works = [work('slow', 800), work('fast', 400)];
  const [slow, fast] = await timeInTurns(works, options);
  expect([slow?.truest, fast?.truest]).toEqual([0.8, 0.4]);
  expect(order).toEqual(['slow', 'fast', 'fast', 'slow', 'slow', 'fast']);
  order.length = 0;
  const decided = ([one = 0, other = 0]: readonly number[]) => one > 1.5 * other;
  expect(await timeInTurns(works, { ...options, decided })).toMatchObject([
    { median: 0.8, truest: 0.8 },
    { median: 0.4, truest: 0.4 },
  ]);
  expect(order).toEqual(['slow', 'fast']);
});

test('a browser that looks at fixed times is told from one whose reports are late', async () => {
  const { clock, pass } = fakeClock();
  const nextLook = async () => pass(100 - (clock.now() % 100));
  const polled = await measureDelay(nextLook, clock);
  expect(polled.usual).toBeCloseTo(50, 6);
  expect(polled.period).toBeCloseTo(100, 6);
  expect(await measureDelay(async () => pass(33), clock)).toEqual({ usual: 33, period: 0 });
  expect(await measureDelay(async () => pass(0.5), clock)).toEqual({ usual: 0.5, period: 0 });
  // 90 ms of work in each of which a look falls at another time.
  const run = async (times: number) => {
    pass(30 * times);
    await nextLook();
  };
  const { truest } = await timeWork(run, { clock, rounds: 4 });
  expect(truest).toBeGreaterThan(0.027);
  expect(truest).toBeLessThan(0.033);
});
