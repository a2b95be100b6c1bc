import ipaddr from 'ipaddr.js';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { Jobs } from '../jobs';
import { Kept } from '../kept';
import type { Caller } from './caller';

/**
 * What an address is counted under: an IPv4 address itself, however it is written; of an IPv6 address
 * its /64, which is what one subscriber has.
 */
export function addressGroup(address: string): string {
  if (!ipaddr.isValid(address)) return address.slice(0, 64);
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const network = parsed.toByteArray().slice(0, 8);
  return network.map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Length of every window, in milliseconds. */
const windowMs = 60_000;

/** What counting one request gave. */
interface Count {
  /** Requests of this window, this one too; above the limit when it is over. */
  readonly used: number;
  /** Until the window ends. */
  readonly msLeft: number;
}
/** Counts one request under a name, such as an address or a key id. */
type Counter = (who: string) => Count;

function createCounter(): Counter {
  /** The window that ends first comes first, as all are equally long. */
  const windows = new Map<string, { used: number; readonly endsAt: number }>();
  return (who) => {
    const now = performance.now();
    for (const [name, { endsAt }] of windows) {
      if (endsAt > now) break;
      windows.delete(name);
    }
    const window = windows.get(who) ?? { used: 0, endsAt: now + windowMs };
    windows.set(who, window);
    window.used += 1;
    return { used: window.used, msLeft: window.endsAt - now };
  };
}

/** How long the count of a key's unfinished predictions is used, in milliseconds. */
const countedMs = 2000;
/** Keys whose counts are remembered. */
const countedKeys = 5000;

/** The settings that limits are made of; 0 means that there is none. */
type LimitSettings = Pick<
  Config,
  | 'KINORA_SUBMITS_PER_MINUTE'
  | 'KINORA_SHARES_PER_MINUTE'
  | 'KINORA_READS_PER_MINUTE'
  | 'KINORA_READS_PER_JOB_PER_MINUTE'
  | 'KINORA_REQUESTS_PER_ADDRESS'
  | 'KINORA_BAD_KEYS_PER_ADDRESS'
>;

/**
 * Limits per key and per address, in windows of a minute.
 *
 * Every node counts for itself, in memory: a query for each request would double what a poll costs. With n nodes a key
 * can so submit and read up to n times as often; its unfinished predictions (`KINORA_JOBS_PER_KEY`) are counted in the
 * database.
 *
 * @param options.jobs counts unfinished predictions: each allows more reads, as clients poll each
 */
export function createLimits(options: {
  config: LimitSettings;
  jobs?: Pick<Jobs, 'unfinishedOf'>;
}) {
  const { config, jobs } = options;
  const ofKey = {
    submit: {
      base: config.KINORA_SUBMITS_PER_MINUTE,
      count: createCounter(),
      sentence: 'This key has submitted too many predictions within a minute.',
    },
    share: {
      base: config.KINORA_SHARES_PER_MINUTE,
      count: createCounter(),
      sentence: 'This key has shared too often within a minute.',
    },
    read: {
      base: config.KINORA_READS_PER_MINUTE,
      count: createCounter(),
      sentence: 'This key has asked too often within a minute.',
    },
  };
  const badKeys = createCounter();
  const addresses = createCounter();
  const counts = new Kept<number>(countedMs, countedKeys);

  /** Unfinished predictions of a key, counted at most every {@link countedMs}. */
  const unfinishedOf = (keyId: string): Promise<number> =>
    // Where the database does not answer, the limit is that of a key without predictions.
    counts.get(keyId, async () => (await jobs?.unfinishedOf(keyId).catch(() => 0)) ?? 0);

  const ofAddress = async (count: Counter, limit: number, address: string, sentence: string) => {
    if (limit === 0) return;
    const counted = count(addressGroup(address));
    if (counted.used > limit) throw refusal(sentence, limit, counted);
  };

  return {
    /** Counts one request of an address. @throws ApiError `RATE_LIMITED` */
    address: async (address: string): Promise<void> =>
      await ofAddress(
        addresses,
        config.KINORA_REQUESTS_PER_ADDRESS,
        address,
        'Too many requests came from this address within a minute.',
      ),
    /** Counts a wrong key of an address. @throws ApiError `RATE_LIMITED` when there were too many */
    badKey: async (address: string): Promise<void> =>
      await ofAddress(
        badKeys,
        config.KINORA_BAD_KEYS_PER_ADDRESS,
        address,
        'Too many wrong keys came from this address within a minute.',
      ),
    /**
     * Counts one request of a key.
     *
     * @returns the `RateLimit-*` headers of the answer
     * @throws ApiError `RATE_LIMITED` with `Retry-After`
     */
    async key(
      { keyId }: Pick<Caller, 'keyId'>,
      kind: keyof typeof ofKey,
    ): Promise<Readonly<Record<string, string>>> {
      const { base, count, sentence } = ofKey[kind];
      if (base === 0) return {};
      const counted = count(keyId);
      // Most callers stay below the base, and cost no query.
      const isOver = kind === 'read' && counted.used > base;
      const limit = isOver
        ? base + config.KINORA_READS_PER_JOB_PER_MINUTE * (await unfinishedOf(keyId))
        : base;
      if (counted.used > limit) throw refusal(sentence, limit, counted);
      return headersOf(limit, counted);
    },
  };
}

export type Limits = ReturnType<typeof createLimits>;

/** `RateLimit-*` as IETF's draft of the header fields has them up to revision 6; the reset in seconds. */
function headersOf(limit: number, { used, msLeft }: Count): Record<string, string> {
  return {
    'RateLimit-Limit': String(limit),
    'RateLimit-Remaining': String(Math.max(0, limit - used)),
    'RateLimit-Reset': String(secondsOf(msLeft)),
  };
}

function refusal(sentence: string, limit: number, count: Count): ApiError {
  const headers = { ...headersOf(limit, count), 'Retry-After': String(secondsOf(count.msLeft)) };
  return new ApiError('RATE_LIMITED', sentence, { headers });
}

/** At least 1: a client that reads 0 repeats at once. */
function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
