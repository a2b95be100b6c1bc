import { expect, test } from 'vitest';
import { failureOf } from '../../contract/testing/failure';
import { Scope } from '../backend';
import { CountingBackend } from '../counting-backend';
import type { Family } from './choice';
import { tunedFamilies } from './families';
import { defineKernel } from './kernel';
import { emptyRecord, isOfOther, mostLosses, openRecord, recordId, withLoss } from './record';
import { completeDevice } from './testing/texts';
import type { Clock } from './time';
import { type Candidate, type Tried, type TunedFamily, type TuneOptions, tune } from './tune';

/** Time that passes only when somebody works. */
class FakeClock implements Clock {
  #time = 0;
  #timers: { at: number; ring: () => void }[] = [];
  now = () => this.#time;
  wait = (milliseconds: number) =>
    new Promise<void>((ring) => this.#timers.push({ at: this.#time + milliseconds, ring }));
  /** Works so long; who waits for less time is told first. */
  async work(milliseconds: number): Promise<void> {
    await tasks();
    this.#time += milliseconds;
    for (const { at, ring } of this.#timers) if (at <= this.#time) ring();
    this.#timers = this.#timers.filter(({ at }) => at > this.#time);
    await tasks();
  }
}

/** Lets every promise take its course. */
const tasks = () => new Promise((resolve) => setImmediate(resolve));

/** A variant as the fake device knows it. */
interface Known {
  /** GFLOP/s. */
  readonly speed: number;
  /** Milliseconds. */
  readonly compile?: number;
  readonly wrong?: boolean;
  readonly hangs?: boolean;
  readonly broken?: boolean;
  /** Per thread; they name the class. */
  readonly results?: number;
}

/** Milliseconds that the wait for the end of any work takes. */
const floor = 0.1;

/** A family of variants with these properties, on a device and with a clock of its own. */
function fakeFamily(known: Readonly<Record<string, Known>>, more: Partial<TuneOptions> = {}) {
  const clock = new FakeClock();
  const of = ({ name }: { name: string }) => known[name] as Known;
  const runs: string[] = [];
  const candidates = Object.keys(known).map((name): Candidate<string> => {
    const kernel = defineKernel({
      name,
      mode: 'exact',
      bindings: [],
      uniforms: [],
      threads: 1,
      workgroupBytes: 0,
      body: '',
    });
    const { results = 64 } = known[name] as Known;
    const registerClass = `${results}`;
    return { variant: name, key: name, name, registerClass, results, kernels: [kernel] };
  });
  const tuned: TunedFamily = {
    family: 'linear',
    candidates,
    flops: 4e10,
    check: async (candidate) => {
      await clock.work(5);
      return of(candidate).wrong ? 'the numbers are wrong by 0.3' : null;
    },
    run: async (candidate, share, times) => {
      runs.push(candidate.name);
      const { speed, hangs } = of(candidate);
      if (hangs) {
        await clock.work(6000);
        return new Promise(() => undefined);
      }
      await clock.work(floor + (40 * share * times * 1000) / speed);
    },
  };
  const trying: (string | null)[] = [];
  const options: TuneOptions = {
    families: [tuned],
    timing: true,
    clock,
    compile: async (kernels) => {
      const { compile = 100, broken } = known[kernels[0]?.name ?? ''] as Known;
      await clock.work(compile);
      return broken && kernels[0] ? [{ kernel: kernels[0], reason: 'no such function' }] : [];
    },
    onTrying: async (key) => void trying.push(key),
    ...more,
  };
  return { options, clock, runs, trying };
}

const named = (tried: readonly Tried[]) =>
  Object.fromEntries(tried.map(({ name, reason, rate }) => [name, reason ?? rounded(rate)]));

/** GFLOP/s in two digits: the wait for the end of the work counts a little. */
const rounded = (rate: number | null | undefined) => Number(((rate ?? 0) / 1e9).toPrecision(2));

test('the fastest variant with right numbers wins, and what the others did is told', async () => {
  const { options, clock, trying } = fakeFamily({
    first: { speed: 1000 },
    wrong: { speed: 9000, wrong: true },
    broken: { speed: 9000, broken: true },
    slowToCompile: { speed: 9000, compile: 3500 },
    faster: { speed: 2000 },
    alike: { speed: 2040 },
  });
  const rates = new Map<string, number>();
  const { winners, tried } = await tune({
    ...options,
    onRate: ({ name }, rate) => rates.set(name, rate),
  });
  expect(winners).toEqual({ linear: expect.objectContaining({ variant: 'faster' }) });
  expect(named(tried)).toEqual({
    first: 1000,
    wrong: 'the numbers are wrong by 0.3',
    broken: 'no such function',
    slowToCompile: 'slowToCompile takes over 3 s to compile',
    faster: 2000,
    alike: 2000,
  });
  expect(rounded(rates.get('faster'))).toBe(2000);
  expect(clock.now()).toBeLessThan(10_000);
  expect(trying.at(-1)).toBeNull();
});

test('a class ends when two in a row are clearly slower, and another class goes on', async () => {
  const { options } = fakeFamily({
    first: { speed: 1000 },
    second: { speed: 800 },
    third: { speed: 700 },
    fourth: { speed: 9000 },
    small: { speed: 1100, results: 32 },
    smaller: { speed: 1430, results: 32 },
  });
  const { winners, tried } = await tune(options);
  expect(winners.linear?.variant).toBe('smaller');
  // The first of each class, then the faster class.
  expect(tried.map(({ name }) => name)).toEqual(['first', 'small', 'smaller', 'second', 'third']);
});

test('where every variant is late, the smallest is used without being timed', async () => {
  const known = {
    large: { speed: 1000, compile: 3500 },
    small: { speed: 500, compile: 3200, results: 16 },
    wrong: { speed: 500, compile: 3200, results: 8, wrong: true },
    middle: { speed: 700, compile: 3400, results: 32 },
  };
  const { options, runs } = fakeFamily(known);
  const { winners, tried } = await tune(options);
  expect(winners.linear).toMatchObject({ variant: 'small', rate: null });
  expect(runs).toEqual([]);
  expect(named(tried)).toMatchObject({
    large: 'large takes over 3 s to compile',
    small: 0,
    wrong: 'the numbers are wrong by 0.3',
  });
});

test('the time of compiling is limited for each kernel, not for those of a variant together', async () => {
  const { options } = fakeFamily({ first: { speed: 1000, compile: 1000 } });
  const [tuned] = options.families as [TunedFamily];
  const [candidate] = tuned.candidates as [Candidate];
  const kernels = [1, 2, 3, 4, 5].flatMap(() => candidate.kernels);
  const families = [{ ...tuned, candidates: [{ ...candidate, kernels }] }];
  let before: Promise<unknown> = Promise.resolve();
  const compile: TuneOptions['compile'] = (one) => {
    const compiling = before.then(() => options.compile(one));
    before = compiling;
    return compiling;
  };
  const { winners } = await tune({ ...options, families, compile });
  expect(rounded(winners.linear?.rate)).toBe(1000);
});

test('ten seconds are enough on a slow device too; each family has its variant', async () => {
  const { options, clock } = fakeFamily({
    first: { speed: 20 },
    second: { speed: 40 },
    third: { speed: 80 },
    fourth: { speed: 160 },
  });
  const [tuned] = options.families as [TunedFamily];
  const families = [tuned, { ...tuned, family: 'attention' as const }];
  const { winners } = await tune({ ...options, families });
  expect(winners.linear?.rate).toBeGreaterThan(0);
  expect(winners.attention).not.toBeNull();
  // A variant that has begun is timed to its end.
  expect(clock.now()).toBeLessThan(14_000);
});

test('skipped, or without timing, the first variant with right numbers wins', async () => {
  const known = { wrong: { speed: 1, wrong: true }, right: { speed: 1 }, other: { speed: 9 } };
  const skip = AbortSignal.abort();
  for (const more of [{ skip }, { timing: false }]) {
    const { options, runs } = fakeFamily(known, more);
    const { winners } = await tune(options);
    expect(winners.linear).toMatchObject({ variant: 'right', rate: null });
    expect(runs).toEqual([]);
  }
});

/** Families of a table; the linears of the mode `matrix` are others. */
type Tables = Partial<Record<Family | 'matrixLinear', Readonly<Record<string, number>>>>;

/*
 * Rates of variants, relative to each other unless measured. karume's measured ratios are those of 128×128, 128×64 and
 * 64×64 by 8×8 on Blackwell, of 8-bit products of 8×8 and of 8×4 there, and of 8×8 and 8×4 on an M2; ceilings are those
 * of the README, "What compilers of GPUs say".
 */
const gpus: Readonly<Record<string, Tables>> = {
  // Ceilings of the compiler.
  Ada: {
    linear: {
      '128×128 by 8×8': 0.869,
      '128×64 by 8×8': 0.854,
      '64×128 by 8×8': 0.835,
      '64×64 by 8×8': 0.825,
      '64×64 by 8×4': 0.795,
      '128×64 by 8×4': 0.814,
      '64×32 by 4×4': 0.717,
      '32×32 by 4×4': 0.688,
      '128×128 by 8×8 in f16': 0.724,
      '64×64 by 8×4 in f16': 0.627,
      '32×32 by 4×4 in f16': 0.525,
    },
    attention: {
      '64×64': 0.831,
      '128×64': 0.813,
      '32×64': 0.748,
      '64×128': 0.892,
      '128×128': 0.9,
      '64×64 in f16': 0.66,
      '32×64 in f16': 0.612,
    },
    convolution: {
      '128×128 8×8': 0.872,
      '128×64 8×8': 0.864,
      '64×128 8×8': 0.868,
      '64×64 8×8': 0.853,
      '64×64 4×8': 0.793,
      '64×64 8×4': 0.793,
      '64×64 4×4': 0.721,
      '32×64 4×8': 0.771,
      '32×32 4×4': 0.684,
      '16×16 1×4': 0.421,
    },
    fastLinear: {
      '128×64 by 8×8 fused': 0.828,
      '64×64 by 8×8 fused': 0.824,
      '128×64 by 8×4 fused': 0.788,
      '64×64 by 8×4 fused': 0.799,
      '32×32 by 4×4 fused': 0.744,
      '128×64 by 8×8': 0.788,
      '64×64 by 8×8': 0.785,
      '128×64 by 8×4': 0.752,
      '64×64 by 8×4': 0.761,
      '32×32 by 4×4': 0.711,
    },
    fastAttention: {
      '64×64 by 4': 0.821,
      '32×64 by 4': 0.816,
      '128×64 by 8': 0.867,
      '64×64 by 8': 0.862,
    },
  },
  // Measured where karume says so (above), and otherwise estimates from the ceilings.
  Blackwell: {
    linear: {
      '128×128 by 8×8': 1,
      '128×64 by 8×8': 0.91,
      '64×128 by 8×8': 0.9,
      '64×64 by 8×8': 0.69,
      '64×64 by 8×4': 0.75,
      '128×64 by 8×4': 0.85,
      '64×32 by 4×4': 0.5,
      '32×32 by 4×4': 0.45,
      '128×128 by 8×8 in f16': 0.8,
      '64×64 by 8×4 in f16': 0.65,
      '32×32 by 4×4 in f16': 0.4,
    },
    // Fused ones by the ceilings of their compiler.
    fastLinear: {
      '128×64 by 8×8 fused': 1.05,
      '64×64 by 8×8 fused': 1,
      '64×64 by 8×4 fused': 1.1,
      '128×64 by 8×4 fused': 1.26,
      '32×32 by 4×4 fused': 0.73,
      '128×64 by 8×8': 1,
      '64×64 by 8×8': 0.95,
      '64×64 by 8×4': 1.05,
      '128×64 by 8×4': 1.2,
      '32×32 by 4×4': 0.7,
    },
  },
  // As Blackwell's.
  M2: {
    linear: {
      '128×128 by 8×8': 1,
      '128×64 by 8×8': 1.1,
      '64×128 by 8×8': 0.9,
      '64×64 by 8×8': 0.86,
      '64×64 by 8×4': 1.43,
      '128×64 by 8×4': 1.4,
      '64×32 by 4×4': 1.2,
      '32×32 by 4×4': 1.1,
      '128×128 by 8×8 in f16': 0.9,
      '64×64 by 8×4 in f16': 1.35,
      '32×32 by 4×4 in f16': 1,
    },
  },
  // Estimates from spills and ceilings.
  Intel: {
    linear: {
      '128×128 by 8×8': 0.28,
      '128×64 by 8×8': 0.28,
      '64×128 by 8×8': 0.27,
      '64×64 by 8×8': 0.27,
      '64×64 by 8×4': 0.92,
      '128×64 by 8×4': 0.9,
      '64×32 by 4×4': 1,
      '32×32 by 4×4': 0.99,
      '128×128 by 8×8 in f16': 0.25,
      '64×64 by 8×4 in f16': 0.89,
      '32×32 by 4×4 in f16': 0.85,
    },
    attention: {
      '64×64': 0.41,
      '128×64': 0.41,
      '32×64': 1,
      '64×128': 0.44,
      '128×128': 0.45,
      '64×64 in f16': 0.4,
      '32×64 in f16': 0.82,
    },
  },
  // The compiler's estimates of clocks.
  RDNA3: {
    linear: {
      '128×128 by 8×8': 1,
      '128×64 by 8×8': 0.98,
      '64×128 by 8×8': 0.95,
      '64×64 by 8×8': 0.95,
      '64×64 by 8×4': 0.95,
      '128×64 by 8×4': 0.96,
      '64×32 by 4×4': 0.9,
      '32×32 by 4×4': 0.84,
      '128×128 by 8×8 in f16': 0.53,
      '64×64 by 8×4 in f16': 0.51,
      '32×32 by 4×4 in f16': 0.48,
    },
    attention: {
      '64×64': 0.97,
      '128×64': 1,
      '32×64': 0.46,
      '64×128': 0.84,
      '128×128': 0.9,
      '64×64 in f16': 0.57,
      '32×64 in f16': 0.25,
    },
  },
  // Measured on an NVIDIA H200 (Dawn, Vulkan), in TFLOP/s; tiles that were not have half of the best.
  H200: {
    linear: {
      '128×128 by 8×8': 31.9,
      '128×64 by 8×8': 28.7,
      '64×128 by 8×8': 30.6,
      '64×64 by 8×8': 30.2,
      '64×64 by 8×4': 27.2,
      '128×64 by 8×4': 26,
      '64×32 by 4×4': 18.6,
      '32×32 by 4×4': 16,
      '128×128 by 8×8 in f16': 32.3,
      '64×64 by 8×4 in f16': 29.6,
      '32×32 by 4×4 in f16': 16,
    },
    attention: {
      '64×64': 27.5,
      '128×64': 28.6,
      '32×64': 19.3,
      '64×128': 29.1,
      '128×128': 31.4,
      '64×64 in f16': 27.4,
      '32×64 in f16': 24.1,
    },
    convolution: {
      '128×128 8×8': 30.9,
      '128×64 8×8': 25.8,
      '64×128 8×8': 28.1,
      '64×64 8×8': 25.7,
      '64×64 4×8': 27.4,
      '64×64 8×4': 29.1,
      '64×64 4×4': 26.1,
      '32×64 4×8': 25.6,
      '32×32 4×4': 20.1,
      '16×16 1×4': 8.1,
    },
    fastLinear: {
      // Fused ones, which were not, by Ada's ratios.
      '128×64 by 8×8 fused': 65.7,
      '64×64 by 8×8 fused': 68.9,
      '128×64 by 8×4 fused': 61.8,
      '64×64 by 8×4 fused': 65.4,
      '32×32 by 4×4 fused': 42.9,
      '128×64 by 8×8': 62.5,
      '64×64 by 8×8': 65.6,
      '128×64 by 8×4': 59,
      '64×64 by 8×4': 62.3,
      '32×32 by 4×4': 41,
    },
    fastAttention: {
      '64×64 by 4': 73.2,
      '32×64 by 4': 73.1,
      '128×64 by 8': 71.6,
      '64×64 by 8': 69.6,
    },
    matrixLinear: {
      '128×128 by 2×2 of 16×16×16': 199.6,
      '256×128 by 4×2 of 16×16×16': 191.6,
      '128×64 by 2×2 of 16×16×16': 162.9,
      '64×64 by 1×2 of 16×16×16': 125.9,
    },
    matrixAttention: {
      '128×32 by 8 of 16×16×16': 175.2,
      '64×16 by 4 of 16×16×16': 142.8,
      '128×32 by 4 of 16×16×16': 124.5,
      '64×32 by 4 of 16×16×16': 59.4,
    },
    matrixConvolution: {
      '128×64 window 16 by 2×2 of 16×16×16': 177.7,
      '128×128 window 16 by 2×4 of 16×16×16': 167.8,
      '128×128 window 16 by 2×2 of 16×16×16': 139.5,
      '64×64 window 16 by 2×2 of 16×16×16': 89,
      '32×32 window 16 by 2×2 of 16×16×16': 89,
      '128×128 by 2×4 of 16×16×16': 140.9,
      '64×64 by 2×2 of 16×16×16': 89,
      '32×32 by 2×2 of 16×16×16': 89,
    },
  },
};

test.each([
  ...Object.keys(gpus).map((gpu) => [gpu, 'fast', 0] as const),
  ['H200', 'matrix', 0],
  ['H200', 'fast', 0.04],
  ['H200', 'matrix', 0.04],
] as const)(
  'on %s the tuner of the mode %s finds 0.97 of the best, by a clock with a noise of %f',
  async (gpu, mode, noise) => {
    const tables = gpus[gpu] ?? {};
    const counting = new CountingBackend(null);
    const { features } = completeDevice;
    const scope = new Scope(counting);
    const compute = { ...counting.compute, ...completeDevice, features };
    const options = { backend: counting, compute, mode, timing: true, scope };
    const clock = new FakeClock();
    let state = 1;
    /** What disturbs a device makes its work longer. */
    const disturbed = (milliseconds: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return milliseconds * (1 + (noise * state) / 2 ** 32);
    };
    const rateOf = (family: Family, { name }: Candidate): number => {
      // What the tables do not tell of is alike.
      const table = tables[mode === 'matrix' && family === 'linear' ? 'matrixLinear' : family];
      const [, rate] = Object.entries(table ?? {}).find(([end]) => name.endsWith(end)) ?? [];
      if (table && rate === undefined) throw new Error(`the table of ${family} has no ${name}`);
      return (rate ?? 1) * (gpu === 'H200' ? 1e12 : 5e12);
    };
    const families = tunedFamilies(options).map(
      (tuned): TunedFamily => ({
        ...tuned,
        check: async () => {
          await clock.work(20);
          return null;
        },
        run: async (candidate, share, times) => {
          const seconds = (tuned.flops * share * times) / rateOf(tuned.family, candidate);
          await clock.work(disturbed(floor + 1000 * seconds));
        },
      }),
    );
    const compile = async () => {
      await clock.work(30);
      return [];
    };
    const { winners } = await tune({ families, compile, clock, timing: true });
    // A variant that has begun is timed to its end.
    expect(clock.now()).toBeLessThan(12_000);
    for (const { family, candidates } of families) {
      const best = Math.max(...candidates.map((candidate) => rateOf(family, candidate)));
      const winner = candidates.find(({ key }) => key === winners[family]?.key) as Candidate;
      expect(rateOf(family, winner), family).toBeGreaterThanOrEqual(0.97 * best);
    }
  },
);

test('a variant that hangs ends the tuning, and is not tried again', async () => {
  const known = { hangs: { speed: 1, hangs: true }, right: { speed: 100 } };
  const first = fakeFamily(known);
  expect(await failureOf(tune(first.options))).toMatchObject({
    code: 'DEVICE_LOST',
    message: 'The kernel hangs did not end within 5 s.',
  });
  const left = { ...emptyRecord('a'), trying: first.trying.at(-1) ?? null };
  expect(left.trying).toBe('hangs');
  const { excluded, losses, trying } = openRecord(left, 'a');
  expect([excluded, losses, trying]).toEqual([{ hangs: 'it lost the GPU' }, 1, null]);
  const { winners, tried } = await tune(fakeFamily(known, { excluded }).options);
  expect(winners.linear?.variant).toBe('right');
  expect(named(tried)).toEqual({ hangs: 'it lost the GPU', right: 100 });
});

test('a record belongs to a set of kernels; a winner that lost the device is measured anew', () => {
  const winner = { variant: {}, key: 'k', name: 'k', rate: 1 };
  const winners = { linear: winner, attention: null, convolution: null };
  const exact = { winners, tried: [], date: '', skipped: false };
  const record = { ...emptyRecord('a'), modes: { exact } };
  expect(openRecord(record, 'a')).toBe(record);
  expect(openRecord(record, 'b')).toEqual(emptyRecord('b'));
  expect(openRecord({ version: 0 }, 'a')).toEqual(emptyRecord('a'));
  expect(withLoss(record, 'other').modes).toEqual({ exact });
  const lost = withLoss(withLoss(record, 'k'), null);
  expect(lost).toMatchObject({ modes: {}, excluded: { k: 'it lost the GPU' }, losses: mostLosses });
  const adapter = { vendor: 'v', architecture: 'a', device: '', description: '' };
  const agent = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36';
  const report = { adapter, features: [], limits: {} };
  expect(recordId(report, agent)).toBe('kernels|v|a|||Chrome/156|Linux');
});

test('a GPU without a name has the record of what it can do, unless another rate was measured', () => {
  const adapter = { vendor: '', architecture: '', device: '', description: '' };
  const agent = 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0';
  const one = { adapter, features: ['shader-f16'], limits: { maxBufferSize: 2 ** 30 } };
  const others = [
    { ...one, features: [] },
    { ...one, limits: { maxBufferSize: 2 ** 31 } },
  ];
  const ids = [one, ...others].map((report) => recordId(report, agent));
  expect(new Set(ids).size).toBe(3);
  expect(recordId({ ...one }, agent)).toBe(ids[0]);
  expect(ids[0]).toMatch(/^kernels\|.*\|Firefox\/153\|Linux$/);
  const record = { ...emptyRecord('a'), peak: 10e12 };
  expect([9e12, 19e12, 5.1e12].some((rate) => isOfOther(record, rate))).toBe(false);
  expect([21e12, 4.9e12].every((rate) => isOfOther(record, rate))).toBe(true);
  expect(isOfOther(emptyRecord('a'), 1e12)).toBe(false);
});
