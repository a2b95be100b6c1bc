import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';

/** Random part of a pause, so that nodes which were started together do not work at the same moment. */
const jitter = 0.2;

/**
 * Repeats work until the signal; a round that has begun is finished. Errors are logged, and the loop
 * continues.
 *
 * @param seconds between the end of one round and the start of the next, ± 20 %
 */
export async function repeat(
  name: string,
  seconds: number,
  work: () => Promise<unknown>,
  { signal, log }: { signal: AbortSignal; log: Logger },
): Promise<void> {
  while (true) {
    const ms = seconds * 1000 * (1 + jitter * (2 * Math.random() - 1));
    // Only its signal rejects a pause.
    await delay(ms, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return;
    try {
      await work();
    } catch (error) {
      log.error({ err: error, loop: name }, `${name} failed and will be repeated`);
    }
  }
}

/**
 * Resolves when the work ends or the time is over, whichever is first.
 *
 * @returns whether the work ended in time
 */
export async function within(ms: number, work: PromiseLike<unknown>): Promise<boolean> {
  const ended = new AbortController();
  // Only its signal rejects a pause.
  const late = delay(ms, false, { signal: ended.signal, ref: false }).catch(() => false);
  try {
    return await Promise.race([Promise.resolve(work).then(() => true), late]);
  } finally {
    ended.abort();
  }
}
