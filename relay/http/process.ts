import inspector from 'node:inspector';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import { within } from '../loop';

/** One Ctrl-C may arrive twice, by the terminal and by npm: only a later one is a second. */
const sameSignalMs = 500;
const lookAtParentMs = 500;

/** How a process ends. */
export interface Ending {
  readonly log: Logger;
  readonly say: (line: string) => void;
  /** Ends everything gently. */
  readonly stop: () => Promise<void>;
  /** Longest time that may take; then the process ends as it is. */
  readonly limitMs: number;
  /** Also ends when the process that started this one has gone. */
  readonly withParent: boolean;
}

/**
 * Ends the process by SIGINT, SIGTERM or SIGHUP: gently at the first, with code 0; at once at the
 * second. An uncaught exception is logged and ends it with code 1, as what it broke is not known.
 */
export function endOnSignals({ log, say, stop, limitMs, withParent }: Ending): void {
  let askedAt = 0;
  const end = async () => {
    const ended = await within(limitMs, stop()).catch((error: unknown) => {
      log.error({ err: error }, 'the stop failed');
      return false;
    });
    process.exit(ended ? 0 : 1);
  };
  const onSignal = (code: number) => () => {
    const now = performance.now();
    if (askedAt === 0) {
      askedAt = now;
      log.info('stopping');
      say('Stopping; once more to end at once …');
      void end();
    } else if (now - askedAt > sameSignalMs) {
      process.exit(code);
    }
  };
  process.on('SIGINT', onSignal(130));
  process.on('SIGTERM', onSignal(143));
  process.on('SIGHUP', onSignal(129));
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'uncaught exception');
    say(`Kinora ends: ${error.message}`);
    process.exit(1);
  });
  // Next lets rejections of requests that were broken off through to here: no reason to end.
  process.on('unhandledRejection', (error) => {
    log.error({ err: error }, 'unhandled rejection');
  });
  // Whoever read our sentences may be gone.
  process.stderr.on('error', () => undefined);
  if (withParent) followParent(onSignal(143));
}

/** Windows gives orphans no new parent: there, a stop has to be asked for. */
function followParent(onGone: () => void): void {
  const parent = process.ppid;
  const look = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(look);
    onGone();
  }, lookAtParentMs);
  look.unref();
}

/** How long the main thread may do nothing but one thing, in seconds. */
const standstillSeconds = 30;

/**
 * What the other thread runs, as text: the main one is of no use when it stands still, and a file
 * would have to be found and compiled. It counts its own beats and reads no clock, so that a machine
 * that slept has not stood still.
 */
const program = `
  const { workerData } = require('node:worker_threads');
  const { writeSync } = require('node:fs');
  const beats = new Int32Array(workerData.beats);
  let seen = -1;
  let missed = 0;
  setInterval(() => {
    const now = Atomics.load(beats, 0);
    missed = now === seen ? missed + 1 : 0;
    seen = now;
    if (missed < workerData.ticks) return;
    try {
      writeSync(2, workerData.sentence);
    } catch {}
    process.kill(process.pid, 'SIGKILL');
  }, workerData.tickMs);
`;

/**
 * Ends the process when its event loop stands still for half a minute: nothing is answered then, and no
 * signal is heard, so that only a restart helps. One known reason is a full disk under PGlite, which
 * spins for ever. Not under a debugger, which stops the loop on purpose.
 *
 * @param options.seconds tests need less
 */
export function watchLoop({ seconds = standstillSeconds }: { seconds?: number } = {}): void {
  if (inspector.url() !== undefined) return;
  const ticks = 10;
  const tickMs = (seconds * 1000) / ticks;
  const beats = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => Atomics.add(beats, 0, 1), tickMs / 2).unref();
  const sentence = `Kinora ends: it has answered nothing for ${seconds} s. Is the disk full? Start it again.\n`;
  const worker = new Worker(program, {
    eval: true,
    // What loads TypeScript for the main thread is nothing for this one.
    execArgv: [],
    workerData: { beats: beats.buffer, ticks, tickMs, sentence },
  });
  // Without it the server is what it was before: no reason to end.
  worker.on('error', () => undefined);
  worker.unref();
}
