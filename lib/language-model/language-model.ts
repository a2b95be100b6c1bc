/** What is asked of a language model. */
export interface TextRequest {
  readonly system: string;
  readonly user: string;
  /** GBNF grammar of the answer; a model that takes none ignores it. */
  readonly grammar?: string;
  /** Any non-negative integer. */
  readonly seed: number;
  readonly maxTokens: number;
  readonly signal: AbortSignal;
  /** Called with the text so far as it grows. */
  readonly onText?: (soFar: string) => void;
}

/** A chat model that answers one request at a time. */
export interface LanguageModel {
  readonly name: string;
  /** SHA-256 of its file in hex; null where there is no file. */
  readonly sha256: string | null;
  /** Whether the same seed gives the same text again. */
  readonly repeatable: boolean;
  /**
   * The text of the answer.
   *
   * @throws on any trouble, which counts as "no result", and when `signal` is aborted
   */
  generate(request: TextRequest): Promise<string>;
}

/** A language model whose memory is held until it is closed. */
export interface OpenLanguageModel extends LanguageModel {
  close(): Promise<void>;
}
