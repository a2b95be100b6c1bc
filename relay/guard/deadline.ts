import { GuardError } from './errors';

/** Node fires a longer timer at once. */
const maxTimerMs = 2 ** 31 - 1;

/** The time limits of one call over all its hops, and its abort signal. */
export class CallDeadline {
  readonly #controller = new AbortController();
  readonly #total: NodeJS.Timeout;
  readonly #answer: NodeJS.Timeout;
  readonly #unlink: () => void;
  /** Rejects at the end of a limit. A socket that is still connecting does not react to the signal. */
  readonly ended: Promise<never>;

  constructor(
    readonly host: string,
    totalMs: number,
    answerMs: number,
    stop: AbortSignal | undefined,
  ) {
    const { signal } = this.#controller;
    this.ended = new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    // Nobody may be waiting when it rejects.
    this.ended.catch(() => undefined);
    this.#total = setTimeout(
      () => this.#end('timeout', 'took too long to answer.'),
      Math.min(totalMs, maxTimerMs),
    );
    this.#answer = setTimeout(
      () => this.#end('timeout', `did not answer within ${answerMs / 1000} s.`),
      Math.min(answerMs, maxTimerMs),
    );
    const onStop = () => {
      const sentence = `The call of ${host} was stopped.`;
      this.#controller.abort(new GuardError('unreachable', sentence, { cause: stop?.reason }));
    };
    stop?.addEventListener('abort', onStop, { once: true });
    this.#unlink = () => stop?.removeEventListener('abort', onStop);
    if (stop?.aborted) onStop();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  readonly answered = (): void => clearTimeout(this.#answer);

  /** Stops all timers: the call has ended. */
  readonly done = (): void => {
    clearTimeout(this.#total);
    clearTimeout(this.#answer);
    this.#unlink();
  };

  #end(reason: GuardError['reason'], rest: string): void {
    this.#controller.abort(new GuardError(reason, `${this.host} ${rest}`));
  }
}
