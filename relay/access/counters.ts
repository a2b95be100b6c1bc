import { Pool } from 'pg';
import type { Logger } from 'pino';
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';

/** Length of every window. */
const windowSeconds = 60;

/** What counting one request gave. */
export interface Count {
  /** Requests of this window, this one too; above the limit when it is over. */
  readonly used: number;
  /** Until the window ends. */
  readonly msLeft: number;
}

/** Counts one request under a name, such as an address or a key id. */
export type Counter = (who: string) => Promise<Count>;

/**
 * A counter of this node, in memory: about 2 µs a request. It has no limit of its own, as
 * the limit of reads changes with the number of predictions.
 */
export function memoryCounter(): Counter {
  const limiter = new RateLimiterMemory({
    points: Number.MAX_SAFE_INTEGER,
    duration: windowSeconds,
  });
  return async (who) => {
    const { consumedPoints, msBeforeNext } = await limiter.consume(who);
    return { used: consumedPoints, msLeft: msBeforeNext };
  };
}

/** Longest wait for a connection, and for an answer, in milliseconds. */
const defaultTimeoutMs = 1000;
/**
 * Counters that all nodes of one PostgreSQL share, over a small pool of their own: a flood of submissions waits
 * here and not in front of the jobs. Where the database fails, memory counts.
 *
 * @param url `DATABASE_URL`
 * @param timeoutMs longest wait for a connection, and for an answer, in milliseconds
 */
export function sharedCounters(url: string, log: Logger | undefined, timeoutMs = defaultTimeoutMs) {
  const pool = new Pool({
    connectionString: url,
    max: 2,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  // Without a listener an idle connection that breaks would end the process.
  pool.on('error', (error) => log?.warn({ err: error }, 'the shared limits do not answer'));
  return {
    /** @param limit above which this node counts in memory, without a query, until the window ends */
    counter(name: string, limit: number): Counter {
      const options = { keyPrefix: name, points: limit, duration: windowSeconds };
      const limiter = new RateLimiterPostgres({
        ...options,
        storeClient: pool,
        storeType: 'pool',
        tableName: 'rate_limits',
        tableCreated: true,
        inMemoryBlockOnConsumed: limit + 1,
        insuranceLimiter: new RateLimiterMemory(options),
      });
      return async (who) => {
        try {
          const { consumedPoints, msBeforeNext } = await limiter.consume(who);
          return { used: consumedPoints, msLeft: msBeforeNext };
        } catch (thrown) {
          if (!(thrown instanceof RateLimiterRes)) throw thrown;
          // One that is answered from the block in memory tells no number.
          return { used: Math.max(thrown.consumedPoints, limit + 1), msLeft: thrown.msBeforeNext };
        }
      };
    },
    close: (): Promise<void> => pool.end(),
  };
}
