import inspector from 'node:inspector';
import { Worker } from 'node:worker_threads';

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
