import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';

/** How far a pause may be from its length: nodes that were started together drift apart. */
const jitter = 0.2;

/**
 * Does something again and again until the signal; what is under way then is finished. An error is
 * logged, and the loop goes on: the next time may be better.
 *
 * @param seconds between the end of one time and the start of the next, ± 20 %
 */
export async function repeat(
  what: string,
  seconds: number,
  work: () => Promise<unknown>,
  { signal, log }: { signal: AbortSignal; log: Logger },
): Promise<void> {
  while (await pause(seconds * 1000 * (1 + jitter * (2 * Math.random() - 1)), signal)) {
    try {
      await work();
    } catch (error) {
      log.error({ err: error, loop: what }, `${what} failed; it is tried again`);
    }
  }
}

/** @returns false when the signal came before the end */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal, ref: false });
  } catch {
    // The one way in which a pause fails is its signal.
  }
  return !signal.aborted;
}

/**
 * Resolves when the work ends or the time is over, whichever is first.
 *
 * @returns whether the work ended
 */
export async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  const late = delay(ms, false, { signal: over.signal, ref: false }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    over.abort();
  }
}
