import type { LanguageModel } from './language-model';

/** Result of one generation: the text, whole or (`timedOut`) what came in time; null where nothing usable came. */
export interface Answer {
  readonly text: string | null;
  readonly timedOut: boolean;
}

/**
 * Asks the model once. Ends when the time is over or the signal is aborted, even where the model does not
 * react to either.
 *
 * @throws the reason of the signal
 */
export async function generateWithin(
  model: LanguageModel,
  request: Omit<Parameters<LanguageModel['generate']>[0], 'signal'>,
  limitMs: number,
  signal: AbortSignal,
): Promise<Answer> {
  signal.throwIfAborted();
  const controller = new AbortController();
  let soFar: string | null = null;
  let running = true;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onAbort = () => {};
  const ended = new Promise<'timeout' | 'cancelled'>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, limitMs), 'timeout');
    onAbort = () => resolve('cancelled');
    signal.addEventListener('abort', onAbort, { once: true });
  });
  const answer = (async () =>
    model.generate({
      ...request,
      signal: controller.signal,
      onText: (text) => {
        if (!running || typeof text !== 'string') return;
        soFar = text;
        request.onText?.(text);
      },
    }))().then(
    (text) => ({ text: typeof text === 'string' ? text : null, timedOut: false }),
    () => ({ text: null, timedOut: false }),
  );
  try {
    const result = await Promise.race([answer, ended]);
    if (result === 'cancelled' || signal.aborted) {
      throw signal.reason;
    }
    return result === 'timeout' ? { text: soFar, timedOut: true } : result;
  } finally {
    running = false;
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    controller.abort();
  }
}
