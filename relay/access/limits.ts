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

/** What is counted, with its setting (0: no limit) and what was done too often within a minute. */
const rules = {
  address: ['KINORA_REQUESTS_PER_ADDRESS', 'Too many requests came from this address'],
  badKey: ['KINORA_BAD_KEYS_PER_ADDRESS', 'Too many wrong keys came from this address'],
  submit: ['KINORA_SUBMITS_PER_MINUTE', 'This key has submitted too many predictions'],
  share: ['KINORA_SHARES_PER_MINUTE', 'This key has shared too often'],
  read: ['KINORA_READS_PER_MINUTE', 'This key has asked too often'],
} as const;
type Kind = keyof typeof rules;
type LimitSettings = Pick<Config, (typeof rules)[Kind][0] | 'KINORA_READS_PER_JOB_PER_MINUTE'>;

/** Length of every window, in milliseconds. */
const windowMs = 60_000;
/** How long the count of a key's unfinished predictions is used, in milliseconds, and of how many keys. */
const countedMs = 2000;
const countedKeys = 5000;

/**
 * Limits per key and per address, in windows of a minute. Every node counts for itself, in memory: a query for each
 * request would double what a poll costs. With n nodes a key can submit and read up to n times as often.
 *
 * @param options.jobs counts unfinished predictions: each allows more reads, as clients poll each
 */
export function createLimits(options: {
  config: LimitSettings;
  jobs?: Pick<Jobs, 'unfinishedOf'>;
}) {
  const { config, jobs } = options;
  /** The window that ends first comes first, as all are equally long. */
  const windows = new Map<string, { used: number; readonly endsAt: number }>();
  const unfinished = new Kept<number>(countedMs, countedKeys);

  /** @returns the `RateLimit-*` headers of the answer, which a refusal has too, with `Retry-After` */
  async function count(kind: Kind, who: string): Promise<Readonly<Record<string, string>>> {
    const [setting, what] = rules[kind];
    let limit = config[setting];
    if (limit === 0) return {};
    const now = performance.now();
    for (const [name, { endsAt }] of windows) {
      if (endsAt > now) break;
      windows.delete(name);
    }
    const name = `${kind} ${who}`;
    const window = windows.get(name) ?? { used: 0, endsAt: now + windowMs };
    windows.set(name, window);
    window.used += 1;
    const { used } = window;
    // Most callers stay below the base, and cost no query.
    if (kind === 'read' && used > limit) {
      // If the database does not answer, the limit is that of a key without predictions.
      const read = async () => (await jobs?.unfinishedOf(who).catch(() => 0)) ?? 0;
      limit += config.KINORA_READS_PER_JOB_PER_MINUTE * (await unfinished.get(who, read));
    }
    // At least 1: a client that reads 0 repeats at once.
    const reset = String(Math.max(1, Math.ceil((window.endsAt - now) / 1000)));
    // As IETF's draft of the header fields has them up to revision 6; the reset in seconds.
    const headers = {
      'RateLimit-Limit': String(limit),
      'RateLimit-Remaining': String(Math.max(0, limit - used)),
      'RateLimit-Reset': reset,
    };
    if (used <= limit) return headers;
    const refused = { headers: { ...headers, 'Retry-After': reset } };
    throw new ApiError('RATE_LIMITED', `${what} within a minute.`, refused);
  }

  return {
    /** Counts one request of an address. @throws ApiError `RATE_LIMITED` */
    address: (address: string) => count('address', addressGroup(address)),
    /** Counts a wrong key of an address. @throws ApiError `RATE_LIMITED` when there were too many */
    badKey: (address: string) => count('badKey', addressGroup(address)),
    /** Counts one request of a key. @throws ApiError `RATE_LIMITED` */
    key: ({ keyId }: Pick<Caller, 'keyId'>, kind: 'submit' | 'share' | 'read') =>
      count(kind, keyId),
  };
}

export type Limits = ReturnType<typeof createLimits>;
