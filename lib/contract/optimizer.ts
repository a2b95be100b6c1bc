import type { PromptOptimization } from './prompt-optimization';

/** The length of a prompt, by the tokenizer of a video model. */
export interface PromptLength {
  /** Of the whole prompt, its end token included. */
  readonly tokens: number;
  /** Most tokens that the model reads. */
  readonly limit: number;
  /** Characters (UTF-16) of the prompt that the model reads; what comes after them is cut. */
  readonly kept: number;
}

/** A prompt to improve. */
export interface OptimizerRequest {
  readonly prompt: string;
  /** Id of the video model, whose tokenizer limits the length. */
  readonly model: string;
  /** Never −1. */
  readonly seed: number;
  /** Milliseconds of writing, without loading the language model; 20 000 when absent. */
  readonly timeLimitMs?: number;
}

/** Interface of the optimizer worker, called through Comlink. Improving is cancelled by ending the worker. */
export interface OptimizerApi {
  /**
   * Continues a prompt with the installed language model, whose memory is freed before this returns.
   *
   * @param onText sees the unchecked text as it is written
   * @returns `unavailable` where no language model is installed
   * @throws KinoraError `LANGUAGE_MODEL_FAILED`, `MODEL_FILE_INVALID`, `MODEL_UNKNOWN`
   */
  optimize(
    request: OptimizerRequest,
    onText?: (soFar: string) => void,
  ): Promise<PromptOptimization>;
  /**
   * Measures a text with the tokenizer of a video model, which stays in memory: about 170 MB for the real one.
   *
   * @param model the bundled model's tokenizer serves where it is not installed; it counts at least as many
   * @throws KinoraError `MODEL_UNKNOWN`, and those of the model's files
   */
  measurePrompt(model: string, text: string): Promise<PromptLength>;
}
