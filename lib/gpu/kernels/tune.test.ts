import { expect, test } from 'vitest';
import { failureOf } from '../../contract/testing/failure';
import { Scope } from '../backend';
import { CountingBackend } from '../counting-backend';
import { tunedFamilies } from './candidates';
import { defineKernel } from './kernel';
import { emptyRecord, isOfOther, mostLosses, openRecord, recordId, withLoss } from './record';
import { completeDevice } from './testing/texts';
import {
  type Candidate,
  type Clock,
  type Family,
  type Tried,
  type TunedFamily,
  type TuneOptions,
  tune,
} from './tune';

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

/*
 * Rates of variants, relative to each other, as far as known: measured ratios of karume (128×128 by 8×8, 128×64 by 8×8 and
 * 64×64 by 8×8 on Blackwell, 8-bit products of 8×8 and of 8×4 there, 8×8 and 8×4 on an M2), and otherwise as the
 * compilers of the GPUs estimate them (README, "What compilers of GPUs say").
 */
const gpus: Readonly<Record<string, Partial<Record<Family, Readonly<Record<string, number>>>>>> = {
  Ada: {
    linear: {
      '128×128 by 8×8': 0.869,
      '128×64 by 8×8': 0.854,
      '64×128 by 8×8': 0.835,
      '64×64 by 8×8': 0.825,
      '64×64 by 8×4': 0.795,
      '128×64 by 8×4': 0.82,
      '64×32 by 4×4': 0.717,
      '32×32 by 4×4': 0.688,
      '128×128 by 8×8 in f16': 0.724,
      '64×64 by 8×4 in f16': 0.627,
      '32×32 by 4×4 in f16': 0.525,
    },
    attention: {
      '64×64': 0.788,
      '128×64': 0.797,
      '32×64': 0.706,
      '64×128': 0.819,
      '128×128': 0.835,
      '64×64 in f16': 0.71,
      '32×64 in f16': 0.58,
    },
  },
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
};

test.each(Object.entries(gpus))('on %s the tuner finds 0.97 of the best', async (_, tables) => {
  const counting = new CountingBackend(null);
  const { features } = completeDevice;
  const scope = new Scope(counting);
  const compute = { ...counting.compute, ...completeDevice, features };
  const options = { backend: counting, compute, mode: 'fast', timing: true, scope } as const;
  const clock = new FakeClock();
  const rateOf = (family: Family, { name }: Candidate): number => {
    // What the table does not tell of is alike.
    const table = tables[family];
    const [, rate] = Object.entries(table ?? {}).find(([end]) => name.endsWith(end)) ?? [];
    if (table && rate === undefined) throw new Error(`the table of ${family} has no ${name}`);
    return (rate ?? 1) * 5e12;
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
        await clock.work(floor + 1000 * seconds);
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
});

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
