import {
  ApiError,
  type ApiErrorCode,
  apiErrorSchema,
  type Beat,
  type ClaimAnswer,
  type Completion,
  describeApiError,
  type Failure,
  type LeaseAnswer,
  type WorkerDeclaration,
  type WorkerIdentity,
} from '../contract/v3';
import { type Clock, systemClock } from '../weights/hub/retry';
import { Backoff } from './backoff';

/** The relay could not be reached, or something before it answered: it may pass. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** How a call is made. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Attempts in all. */
  readonly attempts?: number;
  /** How long one attempt may take, in milliseconds; 0 for as long as it takes. */
  readonly timeoutMs?: number;
}

/** Options of {@link WorkerClient}. */
export interface ClientOptions {
  /** Origin of the relay. */
  readonly server: string;
  readonly token: string;
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
  /** First wait between two attempts, in milliseconds. */
  readonly firstDelayMs?: number;
}

const longestDelayMs = 15_000;

/**
 * The HTTP side of the worker protocol (lib/contract/v3/worker.ts). A cut connection and an answer
 * of 500 or more are tried again with growing waits; a refusal (4xx) never is.
 *
 * Every call rejects with an {@link ApiError} where the relay refused, with {@link Unreachable} where
 * it did not answer, and with the signal's reason.
 */
export class WorkerClient {
  readonly server: string;
  readonly clock: Clock;
  readonly #fetch: typeof fetch;
  readonly #token: string;
  readonly #firstDelayMs: number;

  constructor(options: ClientOptions) {
    this.server = options.server;
    this.clock = options.clock ?? systemClock;
    this.#token = options.token;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#firstDelayMs = options.firstDelayMs ?? 500;
  }

  me(options?: CallOptions): Promise<WorkerIdentity> {
    return this.#json('GET', '/api/worker/me', undefined, options);
  }

  /** Asked once: an answer that got lost has taken a job with it, which comes back by its lease. */
  claim(declaration: WorkerDeclaration, options?: CallOptions): Promise<ClaimAnswer> {
    return this.#json('POST', '/api/worker/claim', declaration, { attempts: 1, ...options });
  }

  beat(id: string, beat: Beat, options?: CallOptions): Promise<LeaseAnswer> {
    return this.#job(id, 'beat', beat, { attempts: 1, ...options });
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

  /** A file at one of the relay's signed addresses, which need no token. */
  async file(path: string, options: CallOptions = {}): Promise<Blob> {
    return this.#trying({ timeoutMs: 0, ...options }, async (signal) => {
      const response = await this.#fetch(new URL(path, this.server).href, { signal });
      await this.#check(response);
      return response.blob();
    });
  }

  /** One request to the address of a job's output. */
  output(
    address: { readonly id: string; readonly leaseToken: string; readonly sha256: string },
    init: Pick<RequestInit, 'method' | 'headers' | 'body'>,
    signal: AbortSignal,
  ): Promise<Response> {
    const query = new URLSearchParams({
      lease_token: address.leaseToken,
      sha256: address.sha256,
    });
    const path = `/api/worker/jobs/${address.id}/output?${query}`;
    return this.#trying({ signal, attempts: 1, timeoutMs: 0 }, async (abort) => {
      const headers = { ...init.headers, Authorization: `Bearer ${this.#token}` };
      const url = new URL(path, this.server).href;
      const response = await this.#fetch(url, { ...init, headers, signal: abort });
      await this.#check(response);
      return response;
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
      await this.#check(response);
      const answer = (await response.json()) as { readonly data?: unknown };
      if (typeof answer.data !== 'object' || answer.data === null) {
        throw new Unreachable('the answer is not one of Kinora’s');
      }
      // The relay is of the same build as this page; what it says of a job is checked by the engine.
      return answer.data as T;
    });
  }

  async #trying<T>(
    { signal, attempts = 4, timeoutMs = 20_000 }: CallOptions,
    attempt: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const backoff = new Backoff(this.#firstDelayMs, longestDelayMs, this.clock.random);
    for (let tried = 1; ; tried++) {
      signal?.throwIfAborted();
      try {
        const limits = [...(signal ? [signal] : [])];
        if (timeoutMs > 0) limits.push(AbortSignal.timeout(timeoutMs));
        return await attempt(AbortSignal.any(limits));
      } catch (thrown) {
        signal?.throwIfAborted();
        if (thrown instanceof ApiError && thrown.status < 500) throw thrown;
        const failure = describe(thrown);
        if (tried >= attempts) throw failure;
        await this.clock.sleep(backoff.next(), signal);
      }
    }
  }

  /** @throws ApiError the relay's own; Unreachable for anything else that is no success */
  async #check(response: Response): Promise<void> {
    if (response.ok) return;
    const text = await response.text().catch(() => '');
    const known = apiErrorSchema.safeParse(jsonOf(text));
    if (known.success) throw toApiError(known.data.error_code, known.data.message, response);
    if (response.status === 401) throw new ApiError('UNAUTHORIZED');
    if (response.status === 403) throw new ApiError('FORBIDDEN');
    if (response.status === 404 || response.status === 410) throw new ApiError('NOT_FOUND');
    throw new Unreachable(`the server answers ${response.status}`);
  }
}

/** Whether the job is no longer this worker's: cancelled, ended, deleted, or given to another. */
export function isLeaseLost(thrown: unknown): boolean {
  return (
    thrown instanceof ApiError && (thrown.code === 'LEASE_LOST' || thrown.code === 'NOT_FOUND')
  );
}

/** Whether the relay does not take this worker at all. */
export function isRefusal(thrown: unknown): boolean {
  return (
    thrown instanceof ApiError && (thrown.code === 'UNAUTHORIZED' || thrown.code === 'FORBIDDEN')
  );
}

function describe(thrown: unknown): Error {
  if (thrown instanceof Unreachable || thrown instanceof ApiError) return thrown;
  const late = thrown instanceof DOMException && thrown.name === 'TimeoutError';
  const reason = late ? 'the server does not answer in time' : 'the server cannot be reached';
  return new Unreachable(reason, { cause: thrown });
}

/** The relay writes sentence and remedy into one message; here they are two again. */
function toApiError(code: ApiErrorCode, message: string, response: Response): ApiError {
  const { remedy } = describeApiError(code);
  const sentence = message.endsWith(` ${remedy}`) ? message.slice(0, -remedy.length - 1) : message;
  const wait = response.headers.get('retry-after');
  return new ApiError(code, sentence, { ...(wait && { headers: { 'Retry-After': wait } }) });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
