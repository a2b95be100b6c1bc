import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../../lib/contract/v3';
import type { Caller } from './caller';
import { addressGroup, createLimits } from './limits';

const settings = {
  KINORA_SUBMITS_PER_MINUTE: 3,
  KINORA_SHARES_PER_MINUTE: 2,
  KINORA_READS_PER_MINUTE: 4,
  KINORA_READS_PER_JOB_PER_MINUTE: 2,
  KINORA_REQUESTS_PER_ADDRESS: 5,
  KINORA_BAD_KEYS_PER_ADDRESS: 2,
};
type Options = Parameters<typeof createLimits>[0];
const inMemory = (config: Partial<Options['config']> = {}, jobs?: Options['jobs']) =>
  createLimits({
    config: { ...settings, ...config },
    ...(jobs && { jobs }),
  });
const caller = (keyId: string): Caller => ({
  keyId,
  owner: 'ada',
  scopes: [],
  shared: false,
});
const times = async (count: number, work: () => Promise<unknown>) => {
  for (let done = 0; done < count; done++) await work();
};
const refusalOf = async (work: Promise<unknown>): Promise<ApiError> => {
  const thrown: unknown = await work.then(
    () => null,
    (error: unknown) => error,
  );
  if (thrown instanceof ApiError) return thrown;
  throw new Error('It was not refused.', { cause: thrown });
};

describe('in memory', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('counts submissions, links and reads of a key separately, and answers how many are left', async () => {
    const limits = inMemory();
    const ada = caller('a');
    const remaining: (string | undefined)[] = [];
    await times(3, async () => {
      const headers = await limits.key(ada, 'submit');
      expect(headers['RateLimit-Limit']).toBe('3');
      expect(Number(headers['RateLimit-Reset'])).toBeGreaterThan(50);
      remaining.push(headers['RateLimit-Remaining']);
    });
    expect(remaining).toEqual(['2', '1', '0']);
    const refusal = await refusalOf(limits.key(ada, 'submit'));
    expect(refusal).toMatchObject({ code: 'RATE_LIMITED', status: 429 });
    const { 'Retry-After': after, ...others } = refusal.headers;
    expect(others).toEqual({
      'RateLimit-Limit': '3',
      'RateLimit-Remaining': '0',
      'RateLimit-Reset': after,
    });
    expect(Number(after)).toBeGreaterThan(0);
    expect(Number(after)).toBeLessThanOrEqual(60);
    expect((await limits.key(ada, 'read'))['RateLimit-Remaining']).toBe('3');
    await times(2, () => limits.key(ada, 'share'));
    expect(await refusalOf(limits.key(ada, 'share'))).toMatchObject({ code: 'RATE_LIMITED' });
    expect((await limits.key(caller('b'), 'submit'))['RateLimit-Remaining']).toBe('2');
  });

  it('lets a key read more for each unfinished prediction, with few queries', async () => {
    // A number is believed for two seconds: they shall not pass by themselves.
    vi.useFakeTimers({ toFake: ['performance'] });
    let queries = 0;
    const unfinishedOf = async (keyId: string) => {
      queries++;
      return keyId === 'busy' ? 3 : 0;
    };
    const limits = inMemory({}, { unfinishedOf });
    await times(10, () => limits.key(caller('busy'), 'read'));
    const refusal = await refusalOf(limits.key(caller('busy'), 'read'));
    expect(refusal.headers['RateLimit-Limit']).toBe('10');
    await times(4, () => limits.key(caller('idle'), 'read'));
    await refusalOf(limits.key(caller('idle'), 'read'));
    expect(queries).toBe(2);
    vi.advanceTimersByTime(2001);
    await refusalOf(limits.key(caller('idle'), 'read'));
    expect(queries).toBe(3);
  });

  it('keeps to the base where predictions cannot be counted', async () => {
    const unfinishedOf = () => Promise.reject(new Error('The database is away.'));
    const limits = inMemory({}, { unfinishedOf });
    await times(4, () => limits.key(caller('a'), 'read'));
    expect((await refusalOf(limits.key(caller('a'), 'read'))).code).toBe('RATE_LIMITED');
  });

  it('counts requests and wrong keys of an address', async () => {
    const limits = inMemory();
    await times(5, () => limits.address('192.0.2.1'));
    expect((await refusalOf(limits.address('::ffff:192.0.2.1'))).headers).toHaveProperty(
      'Retry-After',
    );
    await limits.address('192.0.2.2');
    await times(2, () => limits.badKey('2001:db8::1'));
    expect((await refusalOf(limits.badKey('2001:db8::ffff'))).status).toBe(429);
    await limits.badKey('2001:db8:0:1::1');
  });

  it('has no limit where the setting is 0', async () => {
    const limits = inMemory({
      KINORA_SUBMITS_PER_MINUTE: 0,
      KINORA_READS_PER_MINUTE: 0,
      KINORA_REQUESTS_PER_ADDRESS: 0,
      KINORA_BAD_KEYS_PER_ADDRESS: 0,
    });
    await times(50, async () => {
      expect(await limits.key(caller('a'), 'submit')).toEqual({});
      expect(await limits.key(caller('a'), 'read')).toEqual({});
      await limits.address('192.0.2.1');
      await limits.badKey('192.0.2.1');
    });
  });
});

describe('an address', () => {
  it('is one for one subscriber', () => {
    expect(addressGroup('::ffff:192.0.2.1')).toBe('192.0.2.1');
    expect(addressGroup('2001:db8:1:2::3')).toBe(addressGroup('2001:db8:1:2:ffff::'));
    expect(addressGroup('2001:db8:1:2::3')).not.toBe(addressGroup('2001:db8:1:3::3'));
    expect(addressGroup('x'.repeat(1000))).toHaveLength(64);
  });
});
