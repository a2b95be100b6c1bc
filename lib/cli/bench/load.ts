import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';

/** What a load asks for. */
export interface LoadRequest {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What came of a load. */
export interface LoadResult {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Answers other than 200. */
  readonly failed: number;
}

/** Asks over `connections` as fast as it is answered. */
export async function fullLoad(
  origin: string,
  request: LoadRequest,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<LoadResult> {
  return withPool(origin, connections, async (ask) => {
    const end = performance.now() + seconds * 1000;
    const lane = async () => {
      while (performance.now() < end) await ask(request, performance.now());
    };
    await Promise.all(Array.from({ length: connections }, lane));
  });
}

/**
 * Asks at an even rate, whether answered or not. A latency counts from the moment at which its request
 * was due, so that a stall is not hidden by the requests that it kept from being sent.
 */
export async function evenLoad(
  origin: string,
  request: LoadRequest,
  { rate, seconds, connections }: { rate: number; seconds: number; connections: number },
): Promise<LoadResult> {
  return withPool(origin, connections, async (ask) => {
    const start = performance.now();
    const asked: Promise<void>[] = [];
    for (let n = 0; n < rate * seconds; n += 1) {
      const due = start + (n * 1000) / rate;
      const wait = due - performance.now();
      if (wait > 0) await delay(wait);
      asked.push(ask(request, due));
    }
    await Promise.all(asked);
  });
}

async function withPool(
  origin: string,
  connections: number,
  load: (ask: (request: LoadRequest, due: number) => Promise<void>) => Promise<void>,
): Promise<LoadResult> {
  const pool = new Pool(origin, { connections });
  const latencies: number[] = [];
  let failed = 0;
  const ask = async (request: LoadRequest, due: number) => {
    const { statusCode, body } = await pool.request(request);
    await body.dump();
    if (statusCode !== 200) failed += 1;
    latencies.push(performance.now() - due);
  };
  const start = performance.now();
  await load(ask);
  const perSecond = latencies.length / ((performance.now() - start) / 1000);
  await pool.close();
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.floor(share * (latencies.length - 1))] ?? Number.NaN;
  return { perSecond, p50: at(0.5), p99: at(0.99), failed };
}
