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
  /** Trigger words of the request's LoRAs. */
  triggerWords: readonly string[];
  /** Seed of the sampling; taken modulo 2³². */
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
