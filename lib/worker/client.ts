import { servedName, untilStalled } from '../contract';
import {
  ApiError,
  type Claim,
  type ClaimAnswer,
  type Completion,
  claimAnswerSchema,
  type Failure,
  type Heartbeat,
  type LeaseAnswer,
  longestHoldSeconds,
  type WorkerIdentity,
} from '../contract/v3';
import { type Clock, systemClock } from '../weights/hub/retry';
import {
  Backoff,
  checkResponse,
  isTransient,
  retryAfterOf,
  TransportError,
  toTransportError,
} from './transport-error';

/** How a call is made. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Attempts in all. */
  readonly attempts?: number;
  /** How long one attempt may bring nothing, in milliseconds. */
  readonly timeoutMs?: number;
  /** After so long without anything there is no further attempt. */
  readonly giveUpMs?: number;
}

/** Told how many bytes an attempt has brought. */
type OnBytes = (bytes: number) => void;

/** Options of {@link WorkerClient}. */
export interface ClientOptions {
  /** Origin of the relay. */
  readonly server: string;
  readonly token: string;
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
  /** First wait between two attempts, in milliseconds. */
  readonly firstDelayMs?: number;
  /** Stall time of inputs: a job that waits for them holds the GPU. About twenty seconds without a byte when absent. */
  readonly fileLimits?: Pick<CallOptions, 'timeoutMs' | 'giveUpMs'>;
}

const longestDelayMs = 15_000;
const usualTimeoutMs = 20_000;

/**
 * The HTTP side of the worker protocol (lib/contract/v3/worker.ts). A cut connection and an answer
 * of 429, or of 500 or more, are tried again with growing waits; a refusal (other 4xx) never is.
 *
 * Every call rejects with an {@link ApiError} where the relay refused, with {@link TransportError} where
 * it did not answer, and with the signal's reason.
 */
export class WorkerClient {
  readonly server: string;
  readonly clock: Clock;
  readonly #fetch: typeof fetch;
  readonly #token: string;
  readonly #firstDelayMs: number;
  readonly #fileLimits: ClientOptions['fileLimits'];

  constructor(options: ClientOptions) {
    this.server = options.server;
    this.clock = options.clock ?? systemClock;
    this.#token = options.token;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#firstDelayMs = options.firstDelayMs ?? 500;
    this.#fileLimits = options.fileLimits ?? { timeoutMs: 10_000, giveUpMs: 15_000 };
  }

  me(options?: CallOptions): Promise<WorkerIdentity> {
    return this.#json('GET', '/api/worker/me', undefined, options);
  }

  /**
   * Asks for a job; the relay holds the request while there is none. Asked once: an answer that got lost
   * has taken a job with it, which comes back by its lease.
   */
  async claim(claim: Claim, options?: CallOptions): Promise<ClaimAnswer> {
    const { wait_seconds: waitSeconds = longestHoldSeconds } = claim;
    const once = { attempts: 1, timeoutMs: waitSeconds * 1000 + usualTimeoutMs, ...options };
    const answer = await this.#json<ClaimAnswer>('POST', '/api/worker/claim', claim, once);
    // Timers and paths are made of it; a server of another version may say something else.
    if (claimAnswerSchema.safeParse(answer).success) return answer;
    throw new TransportError('the server gives out jobs in a form that is not known here');
  }

  heartbeat(id: string, heartbeat: Heartbeat, options?: CallOptions): Promise<LeaseAnswer> {
    return this.#job(id, 'heartbeat', heartbeat, { attempts: 1, ...options });
  }

  lease(id: string, token: string, options?: CallOptions): Promise<LeaseAnswer> {
    return this.#job(id, 'lease', { lease_token: token }, options);
  }

  complete(id: string, completion: Completion, options?: CallOptions): Promise<unknown> {
    return this.#job(id, 'complete', completion, { timeoutMs: 60_000, ...options });
  }

  fail(id: string, failure: Failure, options?: CallOptions): Promise<unknown> {
    return this.#job(id, 'fail', failure, options);
  }

  release(id: string, token: string, options?: CallOptions): Promise<unknown> {
    return this.#job(id, 'release', { lease_token: token }, options);
  }

  /**
   * A file at one of the relay's signed addresses, which need no token, named as the relay says. It is tried for a short
   * time only; what still comes may take as long as it takes.
   */
  file(path: string, { signal }: Pick<CallOptions, 'signal'> = {}): Promise<File> {
    const limits = { ...this.#fileLimits, attempts: Number.POSITIVE_INFINITY };
    return this.#trying({ ...(signal && { signal }), ...limits }, async (abort, onBytes) => {
      const response = await this.#fetch(new URL(path, this.server).href, { signal: abort });
      await checkResponse(response);
      const parts: Blob[] = [];
      let bytes = 0;
      const reader = response.body?.getReader();
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        bytes += piece.value.length;
        onBytes(bytes);
        // The browser may move the bytes of a blob to its disk.
        parts.push(new Blob([new Uint8Array(piece.value)]));
      }
      const { headers } = response;
      const name = servedName(headers.get('content-disposition'), []) ?? '';
      return new File(parts, name, { type: headers.get('content-type') ?? '' });
    });
  }

  /**
   * Sends the video of a job.
   *
   * @param timeoutMs how long it may take
   */
  output(
    address: { readonly id: string; readonly leaseToken: string; readonly sha256: string },
    file: Blob,
    signal: AbortSignal,
    timeoutMs = usualTimeoutMs,
  ): Promise<void> {
    const query = new URLSearchParams({
      lease_token: address.leaseToken,
      sha256: address.sha256,
    });
    const path = `/api/worker/jobs/${address.id}/output?${query}`;
    return this.#trying({ signal, attempts: 1, timeoutMs }, async (abort) => {
      const headers = { 'Content-Type': 'video/mp4', Authorization: `Bearer ${this.#token}` };
      const init = { method: 'PUT', headers, body: file, signal: abort };
      await checkResponse(await this.#fetch(new URL(path, this.server).href, init));
    });
  }

  #job<T>(id: string, verb: string, body: unknown, options?: CallOptions): Promise<T> {
    return this.#json('POST', `/api/worker/jobs/${id}/${verb}`, body, options);
  }

  #json<T>(method: string, path: string, body: unknown, options: CallOptions = {}): Promise<T> {
    return this.#trying(options, async (signal) => {
      const response = await this.#fetch(new URL(path, this.server).href, {
        method,
        headers: {
          Authorization: `Bearer ${this.#token}`,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal,
      });
      await checkResponse(response);
      const answer = (await response.json()) as { readonly data?: unknown };
      if (typeof answer.data !== 'object' || answer.data === null) {
        throw new TransportError('the answer is not one of Kinora’s');
      }
      // Values that are used for more than display are checked where they are used.
      return answer.data as T;
    });
  }

  async #trying<T>(
    options: CallOptions,
    attempt: (signal: AbortSignal, onBytes: OnBytes) => Promise<T>,
  ): Promise<T> {
    const { signal, attempts = 4, timeoutMs = usualTimeoutMs, giveUpMs } = options;
    const { clock } = this;
    const backoff = new Backoff(this.#firstDelayMs, longestDelayMs, clock.random);
    let last = clock.now();
    let furthest = 0;
    for (let tried = 1; ; tried++) {
      signal?.throwIfAborted();
      try {
        const late = new TransportError('the server does not answer in time');
        return await untilStalled(timeoutMs, late, signal, (abort, { came }) =>
          attempt(abort, (bytes) => {
            came();
            // Every attempt begins anew: only what none has had before is progress.
            if (bytes > furthest) last = clock.now();
            furthest = Math.max(furthest, bytes);
          }),
        );
      } catch (thrown) {
        signal?.throwIfAborted();
        const waitMs = Math.max(backoff.next(), retryAfterOf(thrown));
        const isLate = giveUpMs !== undefined && clock.now() + waitMs - last > giveUpMs;
        if (!isTransient(thrown) || tried >= attempts || isLate) throw toTransportError(thrown);
        await clock.sleep(waitMs, signal);
      }
    }
  }
}
