import { untilAborted } from '../contract';

/** A language model that answers one instruction; its runtime is the caller's. */
export interface LanguageModel {
  readonly name: string;
  /** SHA-256 of its file, in hex. */
  readonly sha256: string;
  /**
   * The text of the answer. Any rejection counts as "no result". After `signal` is aborted, what came so far
   * is the last text given to `onText`.
   */
  generate(request: {
    system: string;
    user: string;
    /** GBNF of llama.cpp. */
    grammar?: string;
    seed: number;
    maxTokens: number;
    signal: AbortSignal;
    onText?: ((soFar: string) => void) | undefined;
  }): Promise<string>;
}

export interface OptimizeOptions {
  model: LanguageModel;
  /** Seed of the sampling. */
  seed: number;
  /** Tokens of a text with the video model's own tokenizer. */
  countTokens: (text: string) => Promise<number> | number;
  /** Limit of all generation together; 20 000 by default. */
  timeLimitMs?: number | undefined;
  /** Cancels the optimisation: `optimizePrompt` rejects with its reason. */
  signal: AbortSignal;
  /** The model's text so far, unchecked, to show while it is written. */
  onText?: ((soFar: string) => void) | undefined;
  /** Clock in milliseconds. */
  now?: () => number;
}

/**
 * Asks the model once. Ends when the time is over or the signal is aborted, even where the model does not
 * react to either.
 *
 * @returns the text, whole or (`timedOut`) what came in time; null where nothing usable came
 * @throws the reason of the signal
 */
export async function generateWithin(
  model: LanguageModel,
  request: Omit<Parameters<LanguageModel['generate']>[0], 'signal'>,
  limitMs: number,
  signal: AbortSignal,
): Promise<{ readonly text: string | null; readonly timedOut: boolean }> {
  signal.throwIfAborted();
  const limit = AbortSignal.timeout(Math.max(0, Math.ceil(limitMs)));
  const either = AbortSignal.any([signal, limit]);
  let soFar: string | null = null;
  const onText = (text: string) => {
    if (either.aborted) return;
    soFar = text;
    request.onText?.(text);
  };
  try {
    const answer = model.generate({ ...request, signal: either, onText });
    return { text: await untilAborted(answer, either), timedOut: false };
  } catch {
    // A model that fails has no result, as one that is too late has only a part of it.
    signal.throwIfAborted();
    return { text: limit.aborted ? soFar : null, timedOut: limit.aborted };
  }
}
