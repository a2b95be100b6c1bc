import { expect, test } from 'vitest';
import { failureOf } from '../../contract/testing/failure';
import { defineKernel } from './kernel';
import { emptyRecord, isOfOther, mostLosses, openRecord, recordId, withLoss } from './record';
import {
  type Candidate,
  type Clock,
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
}

/** Milliseconds that the wait for the end of any work takes. */
const floor = 3;

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
    return { variant: name, key: name, name, kernels: [kernel] };
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
  Object.fromEntries(
    tried.map(({ name, reason, rate }) => [name, reason ?? Math.round((rate ?? 0) / 1e9)]),
  );

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
    alike: 2040,
  });
  // The wait for the end of the work is not counted.
  expect(Math.round((rates.get('faster') ?? 0) / 1e9)).toBe(2000);
  expect(clock.now()).toBeLessThan(10_000);
  expect(trying.at(-1)).toBeNull();
});

test('a family ends when two in a row are clearly slower', async () => {
  const { options } = fakeFamily({
    first: { speed: 1000 },
    second: { speed: 800 },
    third: { speed: 700 },
    fourth: { speed: 5000 },
  });
  const { winners, tried } = await tune(options);
  expect(winners.linear?.variant).toBe('first');
  expect(tried).toHaveLength(3);
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
