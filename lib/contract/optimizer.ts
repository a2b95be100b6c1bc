import type { LoraFile } from './engine';
import type { PromptOptimization } from './prompt-optimization';

/** A prompt to improve. */
export interface OptimizerRequest {
  readonly prompt: string;
  /** Id of the video model, whose tokenizer limits the length. */
  readonly model: string;
  /** Adapters of the video: their trigger words stay in the prompt. */
  readonly loras: readonly LoraFile[];
  /** Never −1. */
  readonly seed: number;
  /** Milliseconds of writing, without loading the language model; 20 000 when absent. */
  readonly timeLimitMs?: number;
}

/** Interface of the optimizer worker, called through Comlink. It improves one prompt at a time. */
export interface OptimizerApi {
  /**
   * Rewrites a prompt with the installed language model, whose memory is freed before this returns.
   *
   * @param onText sees the unchecked text as it is written
   * @returns `unavailable` where no language model is installed
   * @throws KinoraError `BUSY`, `CANCELLED`, `LANGUAGE_MODEL_FAILED`, `MODEL_FILE_INVALID`, `MODEL_UNKNOWN`
   */
  optimize(
    request: OptimizerRequest,
    onText?: (soFar: string) => void,
  ): Promise<PromptOptimization>;
  /** Ends the running optimisation with `CANCELLED`. */
  cancel(): Promise<void>;
  /**
   * Tokens of a text with the tokenizer of a video model: what an optimisation on the page, with the
   * browser's own language model, counts by.
   */
  countTokens(model: string, text: string): Promise<number>;
  /** Trigger words of adapters by the metadata of their files. */
  triggerWords(loras: readonly LoraFile[]): Promise<readonly string[]>;
}
