import { setTimeout as delay } from 'node:timers/promises';
import { KinoraError, toKinoraError } from '../contract';
import { Screen } from './screen';

/** One command as it runs: what it says, what ends it, and what to take down after it. */
export class Command {
  readonly screen = new Screen(process.stdout);
  readonly #abort = new AbortController();
  /** The last first. */
  readonly #cleanups: (() => Promise<unknown>)[] = [];

  /** Aborted by Ctrl-C. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  readonly say = (line: string): void => this.screen.line(line);

  /** To be done at the end, however it ends. */
  afterwards(cleanup: () => Promise<unknown>): void {
    this.#cleanups.push(cleanup);
  }

  /**
   * Lets Ctrl-C end the work where it is done first; what does not end by itself is left behind.
   *
   * @param stop asks the work to end
   * @param patienceMs how long it may take to do so
   * @throws KinoraError `CANCELLED`, with what `stopped` says
   */
  async interruptible<T>(
    work: () => Promise<T>,
    stop: () => Promise<unknown>,
    { patienceMs = 3000, stopped = () => new KinoraError('CANCELLED') } = {},
  ): Promise<T> {
    // A signal that came before the listener below would be lost.
    this.signal.throwIfAborted();
    let onAbort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => {
        const asked = stop().catch(() => undefined);
        void Promise.race([asked, delay(patienceMs)]).then(() => reject(stopped()));
      };
      this.signal.addEventListener('abort', onAbort);
    });
    // Work that was asked to stop may end well or badly: either way it was stopped.
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
      // The terminal and npm may each pass on one Ctrl-C; only a later one means impatience.
      if (this.signal.aborted && performance.now() - abortedAt > 1000) process.exit(130);
      if (this.signal.aborted) return;
      abortedAt = performance.now();
      this.#abort.abort();
      this.say('Stopping …');
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
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
      process.stderr.write(`${error.code}: ${error.message}\n${error.remedy}\n`);
      return error.code === 'CANCELLED' ? 130 : 1;
    } finally {
      for (const cleanup of this.#cleanups.reverse()) await cleanup().catch(() => undefined);
    }
  }
}
