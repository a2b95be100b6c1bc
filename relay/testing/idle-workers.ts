import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import type { ClaimAnswer } from '../../lib/contract/v3';
import { testWorker } from './jobs';
import { submit } from './submitter';

/** Claims of every worker before processor time is measured, and while it is. */
const warmRounds = 4;

/** Where the workers are connected, and with which token. */
export interface IdleWorkersOptions {
  /** Of the nodes; the workers are spread over them. */
  readonly origins: readonly string[];
  readonly token: string;
  readonly count: number;
}

/** What a load of idle workers showed. Times in milliseconds. */
export interface ClaimFigures {
  /** Until every one of `count` claims was answered that came at once. */
  readonly togetherMs: number;
  /** Processor time of the nodes for each claim once V8 has compiled their code. */
  readonly processorMs: number;
  /** From a submission to its claim, while all others of the workers wait: median and longest. */
  readonly medianMs: number;
  readonly longestMs: number;
  /** Requests without an answer of success. */
  readonly refused: number;
  /** Memory of each node in the end, in MB. */
  readonly memoryMb: readonly number[];
}

/** Many workers that wait, each with one claim at a time, as open tabs have them. */
export class IdleWorkers {
  /** When each job was given, as `performance.now()` counts; a job that was given twice throws. */
  readonly given = new Map<string, number>();
  /** Requests without an answer of success. */
  refused = 0;
  readonly #pools: readonly Pool[];
  readonly #workers: readonly { readonly pool: Pool; readonly id: string }[];
  readonly #headers: Readonly<Record<string, string>>;
  readonly #over = new AbortController();
  #waiting: Promise<unknown> = Promise.resolve();

  constructor({ origins, token, count }: IdleWorkersOptions) {
    setMaxListeners(0, this.#over.signal);
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const connections = Math.ceil(count / origins.length);
    this.#pools = origins.map((origin) => new Pool(origin, { connections }));
    this.#workers = Array.from({ length: count }, (_, index) => {
      const pool = this.#pools[index % this.#pools.length];
      if (!pool) throw new TypeError('There is no node.');
      return { pool, id: testWorker().worker_id };
    });
  }

  /** Every worker asks at once, and none waits. @returns milliseconds until all are answered */
  async askTogether(): Promise<number> {
    const startedAt = performance.now();
    await Promise.all(this.#workers.map((_, index) => this.#claim(index, 0)));
    return performance.now() - startedAt;
  }

  /** Lets every worker wait for jobs; what one is given fails at once, without another attempt. */
  start(): void {
    const work = async (index: number) => {
      while (!this.#over.signal.aborted) await this.#claim(index, 25);
    };
    this.#waiting = Promise.all(this.#workers.map((_, index) => work(index)));
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#waiting;
    await Promise.all(this.#pools.map((pool) => pool.destroy()));
  }

  async #claim(index: number, seconds: number): Promise<void> {
    const worker = this.#workers[index];
    if (!worker) return;
    const declaration = testWorker({ worker_id: worker.id });
    const body = { ...declaration, wait_seconds: seconds };
    const answer = await this.#post<ClaimAnswer>(worker.pool, '/api/worker/claim', body);
    const job = answer?.job;
    if (!job) return;
    if (this.given.has(job.id)) throw new Error(`${job.id} was given twice.`);
    this.given.set(job.id, performance.now());
    const failure = { lease_token: job.lease_token, code: 'X', message: 'x', retryable: false };
    await this.#post(worker.pool, `/api/worker/jobs/${job.id}/fail`, failure);
  }

  /** @returns null where there was no answer of success */
  async #post<T>(pool: Pool, path: string, sent: object): Promise<T | null> {
    const { signal } = this.#over;
    const request = { path, method: 'POST', headers: this.#headers, signal } as const;
    try {
      const answer = await pool.request({ ...request, body: JSON.stringify(sent) });
      const text = await answer.body.text();
      if (answer.statusCode === 200) return JSON.parse(text).data;
      this.refused += 1;
    } catch {
      // A connection that was cut; the worker asks again.
      if (!signal.aborted) this.refused += 1;
    }
    if (!signal.aborted) await delay(500);
    return null;
  }
}

/**
 * Puts a load of idle workers on nodes: all ask at once, then wait, while jobs are submitted one after the other, to
 * the nodes in turn.
 *
 * @param options.jobs number of submissions, half a second apart
 * @throws Error where an acknowledged job is not given, or is given twice
 */
export async function measureClaims({
  jobs,
  apiKey,
  ...options
}: IdleWorkersOptions & {
  readonly jobs: number;
  readonly apiKey: string;
}): Promise<ClaimFigures> {
  const workers = new IdleWorkers(options);
  const { origins } = options;
  try {
    await workers.askTogether();
    const togetherMs = await workers.askTogether();
    for (let round = 0; round < warmRounds; round += 1) await workers.askTogether();
    const before = await total('process_cpu_seconds_total', origins);
    for (let round = 0; round < warmRounds; round += 1) await workers.askTogether();
    const seconds = (await total('process_cpu_seconds_total', origins)) - before;
    const processorMs = (1000 * seconds) / (warmRounds * options.count);
    workers.start();
    const submittedAt = new Map<string, number>();
    for (let index = 0; index < jobs; index += 1) {
      await delay(500);
      const at = performance.now();
      const origin = origins[index % origins.length] ?? '';
      const prediction = await submit(origin, apiKey, 'http://127.0.0.1:9/hook');
      if (prediction) submittedAt.set(prediction.id, at);
    }
    for (const end = performance.now() + 30_000; workers.given.size < submittedAt.size; ) {
      if (performance.now() > end) throw new Error('A job was given to none.');
      await delay(20);
    }
    const times = [...submittedAt].map(([id, at]) => (workers.given.get(id) ?? 0) - at);
    times.sort((a, b) => a - b);
    const sizes = origins.map((origin) => total('process_resident_memory_bytes', [origin]));
    const memoryMb = (await Promise.all(sizes)).map((bytes) => Math.round(bytes / 1e6));
    const [medianMs = 0, longestMs = 0] = [times[times.length >> 1], times.at(-1)];
    return { togetherMs, processorMs, medianMs, longestMs, refused: workers.refused, memoryMb };
  } finally {
    await workers.stop();
  }
}

/** A metric, summed over nodes. */
async function total(name: string, origins: readonly string[]): Promise<number> {
  let sum = 0;
  for (const origin of origins) {
    const text = await fetch(`${origin}/metrics`).then((answer) => answer.text());
    sum += Number(new RegExp(`^kinora_${name} (.+)$`, 'm').exec(text)?.[1]);
  }
  return sum;
}
