import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Family } from './choice';
import { defineKernel } from './kernel';
import { measurePeak, quickPeak } from './peak';
import {
  inSimulatedTime,
  SimulatedDevice,
  type SimulatedDeviceOptions,
} from './testing/simulated-device';
import { type Candidate, type TunedFamily, tune } from './tune';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** TFLOP/s of the variants of each family, the slowest first. */
const variants = { slow: 30, middle: 45, fast: 60 };
const families = ['linear', 'attention'] as const;

const kernelOf = (name: string) =>
  defineKernel({
    name,
    mode: 'exact',
    bindings: [],
    uniforms: [],
    threads: 64,
    workgroupBytes: 0,
    body: `// ${name}`,
  });

/** What the tuner chooses on a device, and how many milliseconds it takes. */
async function tuneOn(options: Omit<SimulatedDeviceOptions, 'rates'>) {
  const names = families.flatMap((family) =>
    Object.entries(variants).map(([name, rate]) => [`${family} ${name}`, rate * 1e12] as const),
  );
  const rates = Object.fromEntries(names);
  const device = new SimulatedDevice({ ...options, rates });
  const familyOf = (family: Family): TunedFamily => ({
    family,
    flops: 155e9,
    candidates: Object.keys(variants).map((name, index): Candidate => {
      const kernel = kernelOf(`${family} ${name}`);
      const { key } = kernel;
      return {
        variant: name,
        key,
        name,
        registerClass: `${index % 2}`,
        results: 64,
        kernels: [kernel],
      };
    }),
    check: async () => {
      for (let read = 0; read < 2; read++) await device.settle();
      return null;
    },
    run: async ({ kernels: [kernel] }, share, times) => {
      if (!kernel) throw new Error('a candidate has a kernel');
      const groups = Math.ceil(16_384 * share);
      const job = { kernel, operands: {}, uniforms: {}, groups, flops: 155e9 * share };
      await device.compute.dispatch(Array.from({ length: times }, () => job));
      await device.settle();
    },
  });
  const start = performance.now();
  const { winners } = await inSimulatedTime(
    tune({
      families: families.map(familyOf),
      timing: true,
      compile: device.compute.compile,
      onRate: ({ key }, rate) => device.compute.rates.set(key, rate),
    }),
  );
  return {
    winners: families.map((family) => winners[family]),
    rateOf: (name = '') => rates[`linear ${name}`] ?? Number.NaN,
    milliseconds: performance.now() - start,
  };
}

/** Milliseconds; `polled` as {@link SimulatedDeviceOptions} says. */
const reports = [
  ...[0, 0.5, 5, 33, 103].map((delay) => ({ delay, polled: false })),
  { delay: 100, polled: true },
];

test.each(reports)(
  'where a device reports $delay ms late (at fixed times: $polled), the tuner finds the fastest variants',
  { tags: ['full'] },
  async ({ delay, polled }) => {
    // Each submission of a device that reports at once is a timer here: its twenty take seconds.
    for (let seed = 1; seed <= (delay < 5 ? 5 : 20); seed++) {
      const tuned = await tuneOn({ delay, polled, noise: 0.1, seed: seed * 7919 });
      // A variant that has begun is timed to its end.
      expect(tuned.milliseconds).toBeLessThan(11_500);
      for (const winner of tuned.winners) {
        if (polled) expect(winner?.name).not.toBe('slow');
        else expect(winner?.name).toBe('fast');
        const rate = (winner?.rate ?? 0) / tuned.rateOf(winner?.name);
        expect(Math.abs(rate - 1)).toBeLessThan(polled ? 0.2 : 0.15);
      }
    }
  },
);

test.each([0.5, 5, 33, 103])(
  'where it reports %f ms after the end, its peaks are found',
  { tags: ['full'] },
  async (delay) => {
    for (let seed = 1; seed <= 20; seed++) {
      const rates = { 'peak multiply-add': 60e12, 'peak integer dot': 240e12 };
      const device = new SimulatedDevice({ delay, noise: 0.1, seed: seed * 7919, rates });
      const peak = await inSimulatedTime(measurePeak(device, device.compute, quickPeak));
      expect(Math.abs(peak.multiplyAdd / 60e12 - 1)).toBeLessThan(0.2);
      expect(Math.abs((peak.integerDot ?? 0) / 240e12 - 1)).toBeLessThan(0.2);
    }
  },
);

test('a rate that was recorded too low is corrected by what runs reach, and submissions are bounded', async () => {
  const kernel = kernelOf('block');
  const device = new SimulatedDevice({ delay: 103, noise: 0, seed: 1, rates: { block: 45e12 } });
  device.compute.rates.set(kernel.key, 7e10);
  const job = { kernel, operands: {}, uniforms: {}, groups: 16_384, flops: 18e12 };
  const pass = async () => {
    const start = performance.now();
    device.submissions = 0;
    for (let block = 0; block < 30; block++) await device.compute.dispatch([job]);
    await device.settle();
    return performance.now() - start;
  };
  // 12 s of work: by the recorded rate 7,700 s of it, in 15,400 submissions.
  await inSimulatedTime(pass());
  expect(device.submissions).toBeLessThan(200);
  expect(await inSimulatedTime(pass())).toBeLessThan(12_400);
  expect(device.submissions).toBeLessThan(70);
  // As many as are not done and those whose end is not reported.
  expect(device.mostPending).toBeLessThan(10);
  const small = { ...job, flops: 1e6 };
  for (let i = 0; i < 3; i++) {
    await inSimulatedTime(device.compute.dispatch(Array.from({ length: 20_000 }, () => small)));
  }
  expect(device.mostPending).toBeLessThanOrEqual(65);
});
