import { parseParameters } from '../../contract';
import { ApiError, type ApiErrorCode, type WorkerJob } from '../../contract/v3';
import type { ServeOptions } from '../api';

/** What a worker of the tests serves with. */
export const serveOptions: ServeOptions = {
  server: 'http://relay.test',
  token: 'kn_token',
  name: 'Test',
  model: 'mini',
  precision: 'f32',
  sizes: ['1280*720'],
  device: { backend: 'wasm' },
  hub: 'https://hub.test',
};

/** A job of two steps, whose image is the relay's file `/files/image`. */
export function newJob(n = 1, fields: Partial<WorkerJob> = {}): WorkerJob {
  return {
    id: `${n}`.padStart(32, '0'),
    attempt: 1,
    lease_token: `lease-${n}`,
    lease_until: '',
    deadline: '',
    heartbeat_interval_ms: 15_000,
    model: 'kinora/wan-2.2/i2v-720p-lora',
    parameters: parseParameters({ prompt: 'a boat', num_inference_steps: 2, seed: 7 }),
    enable_prompt_optimizer: false,
    enable_safety_checker: true,
    image: { url: '/files/image', type: 'image/png', bytes: 11 },
    loras: [],
    ...fields,
  };
}

/** What the relay was asked, by its last path segment. */
export interface Asked {
  readonly verb: string;
  readonly id: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The smallest relay that keeps the worker protocol, inside the page: a `fetch`. */
export class SmallRelay {
  readonly asked: Asked[] = [];
  readonly waiting: WorkerJob[] = [];
  readonly uploads = new Map<string, Uint8Array>();
  /** What each path answers besides the protocol: images and adapters. */
  readonly files = new Map([['/files/image', new Blob(['image bytes'])]]);
  /** Leases that stand. */
  readonly leases = new Set<string>();
  /** The next answers of a verb, instead of what it would do; `cut` is no answer. */
  readonly faults: [verb: string, fault: ApiErrorCode | 'cut'][] = [];
  /** Ends the claims that are held. */
  #wake = () => {};
  #changed = this.#nextChange();

  /** Puts a job in the queue. */
  submit(job: WorkerJob): void {
    this.waiting.push(job);
    this.#wake();
    this.#changed = this.#nextChange();
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  verbs(...only: string[]): string[] {
    return this.asked.map(({ verb }) => verb).filter((verb) => only.includes(verb));
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const { signal } = init ?? {};
    signal?.throwIfAborted();
    const file = this.files.get(url.pathname);
    if (file) return new Response(file);
    const parts = url.pathname.split('/');
    const verb = parts.at(-1) ?? '';
    const id = parts.at(-2) ?? '';
    const json = typeof init?.body === 'string' ? JSON.parse(init.body) : {};
    this.asked.push({ verb, id, body: json });
    const [fault] = this.faults;
    if (fault?.[0] === verb) {
      this.faults.shift();
      if (fault[1] === 'cut') throw new TypeError('Failed to fetch');
      return refusal(fault[1]);
    }
    return this.#answer(verb, id, url, init ?? {}, json);
  };

  /** Until a job comes, or the time is over. @throws the signal's reason */
  async #hold(ms: number, paused: boolean, signal?: AbortSignal | null): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ends = [
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms);
      }),
      new Promise<void>((_, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
    ];
    try {
      await Promise.race(paused ? ends : [...ends, this.#changed]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #answer(
    verb: string,
    id: string,
    url: URL,
    init: RequestInit,
    body: { lease_token?: string; wait_seconds?: number; paused?: boolean },
  ): Promise<Response> {
    if (verb === 'me') {
      const { length: waiting } = this.waiting;
      return data({ token: 'x', owner: 'ann', shared: false, accepts_models: [], waiting });
    }
    if (verb === 'claim') {
      const { wait_seconds: seconds = 25, paused = false } = body;
      if (paused || (this.waiting.length === 0 && seconds > 0)) {
        await this.#hold(seconds * 1000, paused, init.signal);
      }
      const job = paused ? null : (this.waiting.shift() ?? null);
      if (job) this.leases.add(job.lease_token);
      return data({ job, skipped: {}, retry_after_ms: 0 });
    }
    const token = body.lease_token ?? url.searchParams.get('lease_token') ?? '';
    if (!this.leases.has(token)) return refusal('LEASE_LOST');
    if (verb === 'output' && init.method === 'PUT') {
      const bytes = new Uint8Array(await new Response(init.body).arrayBuffer());
      this.uploads.set(id, bytes);
      return Response.json({ received: bytes.length, complete: true });
    }
    if (['complete', 'fail', 'release'].includes(verb)) this.leases.delete(token);
    return data({ lease_until: '', deadline: '' });
  }
}

function data(value: unknown): Response {
  return Response.json({ code: 200, message: 'success', data: value });
}

function refusal(code: ApiErrorCode): Response {
  const error = new ApiError(code);
  return Response.json(error.toBody('req'), { status: error.status });
}
