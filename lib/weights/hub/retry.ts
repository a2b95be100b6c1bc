import { type ErrorCode, KinoraError, untilAborted } from '../../contract';

/** Time and chance, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** @throws the signal's reason when it is aborted meanwhile */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Uniform in [0, 1). */
  random(): number;
}

/** How long a request is tried. */
export interface RetryPolicy {
  /** Before the second attempt; doubles with each further one. */
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
  /** Attempts in a row that brought nothing. */
  readonly attempts: number;
  /** An answer that brings no byte for this long counts as lost. */
  readonly stallMs: number;
  /** At least so long after a 429: its `Retry-After` may be hidden from the page. */
  readonly rateLimitDelayMs: number;
  /** A server that asks to wait longer than this is not waited for. */
  readonly longestWaitMs: number;
  /** Attempts in a row that were refused as too many; the hub counts within five minutes. */
  readonly rateLimitAttempts: number;
  /** After so long without anything there is no further attempt. */
  readonly longestTotalMs: number;
}

/**
 * About a minute and a half of attempts; a connection that is away for longer pauses the download. A hub
 * that is asked too often is asked for six minutes.
 */
export const standardPolicy: RetryPolicy = {
  firstDelayMs: 500,
  longestDelayMs: 30_000,
  attempts: 8,
  stallMs: 30_000,
  rateLimitDelayMs: 30_000,
  rateLimitAttempts: 12,
  longestWaitMs: 300_000,
  longestTotalMs: Number.POSITIVE_INFINITY,
};

/** For what someone waits for in front of a dialog: about three seconds, then they can try again. */
export const briefPolicy: RetryPolicy = {
  firstDelayMs: 400,
  longestDelayMs: 800,
  attempts: 3,
  stallMs: 3000,
  rateLimitDelayMs: 800,
  rateLimitAttempts: 3,
  longestWaitMs: 1000,
  longestTotalMs: 2000,
};

/** The clock of this machine; tests have one of their own. */
export const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  async sleep(ms, signal) {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    await (signal ? untilAborted(over, signal) : over).finally(() => clearTimeout(timer));
  },
};

/** A failure that may pass: the request is made again. */
export class Transient extends Error {
  override readonly name = 'Transient';

  /**
   * @param code what it becomes when it does not pass
   * @param sentence what happened, as a part of a sentence: "it answers 503"
   * @param waitMs how long the server asks to wait
   * @param isRateLimited whether it refuses because of many requests
   */
  constructor(
    readonly code: ErrorCode,
    readonly sentence: string,
    readonly waitMs: number | null = null,
    options?: ErrorOptions,
    readonly isRateLimited = false,
  ) {
    super(sentence, options);
  }
}

/** Counts attempts that brought nothing, and waits between them. */
export class RetryBudget {
  #failures = 0;
  #since: number;

  constructor(
    readonly clock: Clock,
    readonly policy: RetryPolicy,
    /** Name of the fetched file for messages: "file a.json". */
    readonly subject: string,
    readonly onWait?: (sentence: string, waitMs: number) => void,
    /** Host of the hub; absent where the file may lie elsewhere. */
    readonly server?: string,
  ) {
    this.#since = clock.now();
  }

  /** Something came: the count starts anew. */
  reset(): void {
    this.#failures = 0;
    this.#since = this.clock.now();
  }

  /**
   * Waits before the next attempt.
   *
   * @throws KinoraError with the failure's code when there have been too many; everything that is not
   * {@link Transient}, at once
   */
  async wait(failure: unknown, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (!(failure instanceof Transient)) throw failure;
    this.#failures++;
    const { clock, policy } = this;
    const tooLong = (failure.waitMs ?? 0) > policy.longestWaitMs;
    const late = clock.now() - this.#since >= policy.longestTotalMs;
    const attempts = failure.isRateLimited ? policy.rateLimitAttempts : policy.attempts;
    if (tooLong || late || this.#failures >= attempts) throw this.#final(failure);
    const full = Math.min(policy.longestDelayMs, policy.firstDelayMs * 2 ** (this.#failures - 1));
    // Half of it by chance, so that many ranges do not come back at the same moment.
    const backoff = full / 2 + (full / 2) * clock.random();
    const retryAfterMs = failure.waitMs ?? (failure.isRateLimited ? policy.rateLimitDelayMs : 0);
    const waitMs = Math.max(retryAfterMs * (1 + clock.random() / 10), backoff);
    this.onWait?.(failure.sentence, waitMs);
    await clock.sleep(waitMs, signal);
  }

  #final(failure: Transient): KinoraError {
    const wait =
      failure.waitMs === null ? '' : ` and asks to wait ${Math.ceil(failure.waitMs / 1000)} s`;
    const reason = `${failure.sentence}${wait}.`;
    // If the hub is away, the first failed request tells nothing.
    const sentence =
      failure.code === 'HUB_UNREACHABLE' && this.server !== undefined
        ? `The hub ${this.server} cannot be reached: ${reason}`
        : `The ${this.subject} could not be fetched: ${reason}`;
    return new KinoraError(failure.code, sentence, { cause: failure });
  }
}
