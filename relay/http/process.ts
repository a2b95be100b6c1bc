import type { Logger } from 'pino';
import { within } from '../loop';

/** One Ctrl-C may arrive twice, from the terminal and from npm: a second one comes later than this. */
const sameSignalMs = 500;
const parentCheckMs = 500;

/**
 * Ends the process by SIGINT, SIGTERM or SIGHUP: the first one stops the node and ends with code 0, the
 * second one ends at once. An uncaught exception is logged and ends the process with code 1, as the state
 * after it is unknown.
 *
 * @param options.limitMs time limit of the stop; then the process ends as it is
 * @param options.withParent also ends when the process that started this one has ended
 */
export function endOnSignals(options: {
  readonly log: Logger;
  readonly print: (line: string) => void;
  readonly stop: () => Promise<void>;
  readonly limitMs: number;
  readonly withParent: boolean;
}): void {
  const { log, print, stop, limitMs, withParent } = options;
  let firstAt = 0;
  const end = async () => {
    const ended = await within(limitMs, stop()).catch((error: unknown) => {
      log.error({ err: error }, 'the stop failed');
      return false;
    });
    process.exit(ended ? 0 : 1);
  };
  const onSignal = (code: number) => () => {
    const now = performance.now();
    if (firstAt === 0) {
      firstAt = now;
      log.info('stopping');
      print('Stopping; once more to end at once …');
      void end();
    } else if (now - firstAt > sameSignalMs) {
      process.exit(code);
    }
  };
  process.on('SIGINT', onSignal(130));
  process.on('SIGTERM', onSignal(143));
  process.on('SIGHUP', onSignal(129));
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'uncaught exception');
    print(`Kinora ends: ${error.message}`);
    process.exit(1);
  });
  // Next does not handle rejections of requests that were cut off: no reason to end.
  process.on('unhandledRejection', (error) => {
    log.error({ err: error }, 'unhandled rejection');
  });
  // The reader of stderr may have ended.
  process.stderr.on('error', () => undefined);
  // After a signal it is no second one: a service manager or Ctrl-C ends npm's shell at the same time.
  if (withParent) followParent(() => firstAt === 0 && onSignal(143)());
}

/**
 * Whether a script of package.json runs this process. Then npm's shell is its parent, which a SIGTERM to
 * npm ends without passing it on.
 */
export function isRunByNpm(environment: Readonly<Record<string, string | undefined>>): boolean {
  return environment.npm_lifecycle_event !== undefined;
}

/**
 * Calls `onEnd` when the process that started this one has ended. On Windows the parent's id does not change
 * then, so this has no effect there.
 */
export function followParent(onEnd: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onEnd();
  }, parentCheckMs).unref();
}
