import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { startServer } from '../app-server';
import { ensureBuild } from '../build';
import { Meter, type Rate } from './meter';

/** Settings without limits per key and address. */
const unlimited = {
  KINORA_SUBMITS_PER_MINUTE: '0',
  KINORA_READS_PER_MINUTE: '0',
  KINORA_REQUESTS_PER_ADDRESS: '0',
  KINORA_JOBS_PER_KEY: '0',
};
/** A picture of 2×2 pixels. */
const image =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==';
const path = '/api/v3/kinora/wan-2.2/i2v-720p-lora';
const connections = 16;
const seconds = 8;

interface LoadRequest {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What came of a load. */
interface LoadResult extends Rate {
  /** Answers other than 200. */
  readonly failed: number;
}

/**
 * Requests through HTTP and Next, on the embedded database, with the load made on the same machine:
 * first as fast as they are answered, then at half that rate.
 */
export async function benchHttp(): Promise<void> {
  await ensureBuild((line) => process.stderr.write(`${line}\n`));
  const server = await startServer({ env: unlimited });
  try {
    const headers = {
      authorization: `Bearer ${server.apiKey}`,
      'content-type': 'application/json',
    };
    const body = JSON.stringify({ image, prompt: 'a boat', num_inference_steps: 1 });
    const submission = { path, method: 'POST', headers, body } as const;
    const first = await fetch(server.origin + path, submission).then((answer) => answer.json());
    const get = `/api/v3/predictions/${first.data.id}/result`;
    process.stdout.write(`HTTP, ${connections} connections, load on the same machine\n`);
    await measureRequest(server.origin, 'results', { path: get, method: 'GET', headers });
    await measureRequest(server.origin, 'submissions (data URI)', submission);
  } finally {
    await server.stop();
  }
}

async function measureRequest(origin: string, name: string, request: LoadRequest): Promise<void> {
  await fullLoad(origin, request, 4);
  const full = await fullLoad(origin, request, seconds);
  const rate = Math.round(full.perSecond / 2);
  const half = await evenLoad(origin, request, rate);
  const failed = full.failed + half.failed;
  process.stdout.write(
    `  ${name.padEnd(24)}${full.perSecond.toFixed(0).padStart(6)}/s (${latency(full)}); ` +
      `at ${rate}/s: ${latency(half)}${failed > 0 ? `; ${failed} FAILED` : ''}\n`,
  );
}

/** Sends requests over all connections as fast as they are answered. */
function fullLoad(origin: string, request: LoadRequest, duration: number): Promise<LoadResult> {
  return withPool(origin, request, async (ask) => {
    const end = performance.now() + duration * 1000;
    const lane = async () => {
      while (performance.now() < end) await ask();
    };
    await Promise.all(Array.from({ length: connections }, lane));
  });
}

/**
 * Sends requests at an even rate, whether answered or not. A latency counts from the moment at which its
 * request was due, so that a stall is not hidden by the requests that it kept from being sent.
 */
function evenLoad(origin: string, request: LoadRequest, rate: number): Promise<LoadResult> {
  return withPool(origin, request, async (ask) => {
    const start = performance.now();
    const requests: Promise<void>[] = [];
    for (let n = 0; n < rate * seconds; n += 1) {
      const due = start + (n * 1000) / rate;
      const wait = due - performance.now();
      if (wait > 0) await delay(wait);
      requests.push(ask(due));
    }
    await Promise.all(requests);
  });
}

async function withPool(
  origin: string,
  request: LoadRequest,
  load: (ask: (due?: number) => Promise<void>) => Promise<void>,
): Promise<LoadResult> {
  const pool = new Pool(origin, { connections });
  const meter = new Meter();
  let failed = 0;
  const send = async () => {
    const { statusCode, body } = await pool.request(request);
    await body.dump();
    if (statusCode !== 200) failed += 1;
  };
  await load((due) => meter.time(send, due));
  const result = { ...meter.rate(), failed };
  await pool.close();
  return result;
}

function latency({ p50Ms, p99Ms }: Rate): string {
  return `p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`;
}
