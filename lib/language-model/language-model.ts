import type { LanguageModel } from '../prompts';

/** What a language model is asked. */
export type TextRequest = Parameters<LanguageModel['generate']>[0];

/** A language model whose memory is held until it is closed. */
export interface OpenLanguageModel extends LanguageModel {
  close(): Promise<void>;
}
