import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Signal } from '../lib/contract';

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

/** The work, which is done once: later calls wait for the same end. */
export function once<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | null = null;
  return () => {
    done ??= work();
    return done;
  };
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

/** Pause after a round that failed, in milliseconds. */
const failedMs = 1000;

/**
 * Begins work in rounds until the signal, as soon as there is news, something has ended, or the time of the last round
 * is over; then waits for what has begun. A round that fails is logged and repeated.
 *
 * @param options.listen calls its argument at news
 * @param round begins what there is to do, none of which may reject; gets the number that has not ended.
 *   @returns milliseconds until the next
 */
export async function workUntil(
  signal: AbortSignal,
  options: { listen: (onNews: () => void) => () => void; log: Logger },
  round: (begin: (work: Promise<void>) => void, underWay: number) => Promise<number>,
): Promise<void> {
  const wake = new Signal();
  const onNews = () => wake.raise();
  const underWay = new Set<Promise<void>>();
  const begin = (work: Promise<void>) => {
    const ending = work.finally(() => {
      underWay.delete(ending);
      wake.raise();
    });
    underWay.add(ending);
  };
  signal.addEventListener('abort', onNews, { once: true });
  const stopListening = options.listen(onNews);
  while (!signal.aborted) {
    const ms = await round(begin, underWay.size).catch((err: unknown) => {
      options.log.error({ err }, 'no work could be begun; it will be tried again');
      return failedMs;
    });
    if (!signal.aborted) await wake.wait(ms);
  }
  stopListening();
  await Promise.all(underWay);
}
