import { setTimeout as delay } from 'node:timers/promises';
import { followParent, isRunByNpm } from '../../relay/http/process';
import { type ErrorCode, KinoraError, toKinoraError } from '../contract';
import { printError } from './arguments';
import { type Output, Screen } from './screen';

/** Exit codes other than 1. */
const exitCodes: Partial<Record<ErrorCode, number>> = { CANCELLED: 130, TERMS_NOT_ACCEPTED: 2 };

/** A running command: its output, the signals that end it, and its cleanup. */
export class Command {
  readonly screen: Screen;
  readonly #abort = new AbortController();
  /** Run in reverse order. */
  readonly #cleanups: (() => Promise<unknown>)[] = [];

  constructor(output: Output = process.stdout) {
    this.screen = new Screen(output);
  }

  /** Aborted by Ctrl-C. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  readonly say = (line: string): void => this.screen.line(line);

  /** Registers work for the end of the command, also after an error. */
  afterwards(cleanup: () => Promise<unknown>): void {
    this.#cleanups.push(cleanup);
  }

  /**
   * Runs work that Ctrl-C stops. When it does not stop in time, it is abandoned.
   *
   * @param stop asks the work to stop; without it nothing is left half done when the browser is closed in the middle
   * @param timeoutMs how long stopping may take
   * @throws KinoraError `CANCELLED`, with what `stopped` says
   */
  async interruptible<T>(
    work: () => Promise<T>,
    stop: () => Promise<unknown> = async () => undefined,
    { timeoutMs = 3000, stopped = () => new KinoraError('CANCELLED') } = {},
  ): Promise<T> {
    // The listener below would miss a signal that came earlier.
    this.signal.throwIfAborted();
    let onAbort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => {
        // The command ends all the same.
        const stopping = stop().catch(() => undefined);
        void Promise.race([stopping, delay(timeoutMs)]).then(() => reject(stopped()));
      };
      this.signal.addEventListener('abort', onAbort);
    });
    // Work that was asked to stop counts as stopped, whether it then resolves or rejects.
    const ended = work().then(
      (value) => (this.signal.aborted ? aborted : value),
      (thrown: unknown) => (this.signal.aborted ? aborted : Promise.reject(thrown)),
    );
    try {
      return await Promise.race([ended, aborted]);
    } finally {
      this.signal.removeEventListener('abort', onAbort);
    }
  }

  /** Runs the command. @returns its exit code */
  async run(work: (command: Command) => Promise<void>): Promise<number> {
    let abortedAt = 0;
    const onSignal = () => {
      // The terminal and npm may both pass on one Ctrl-C. Only a second one after a second ends at once.
      if (this.signal.aborted && performance.now() - abortedAt > 1000) process.exit(130);
      if (this.signal.aborted) return;
      abortedAt = performance.now();
      this.#abort.abort();
      this.say('Stopping …');
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
    if (isRunByNpm(process.env)) followParent(() => !this.signal.aborted && onSignal());
    try {
      await work(this);
      return 0;
    } catch (thrown) {
      this.screen.end();
      const known = toKinoraError(thrown);
      const cancelled = this.signal.aborted && known.code !== 'CANCELLED';
      const error = cancelled
        ? new KinoraError('CANCELLED', 'The command was stopped before it was done.')
        : known;
      printError(error);
      return exitCodes[error.code] ?? 1;
    } finally {
      // One that fails must not keep the others from it.
      for (const cleanup of this.#cleanups.reverse()) await cleanup().catch(() => undefined);
    }
  }
}
