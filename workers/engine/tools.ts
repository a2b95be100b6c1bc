import type { LanguageModel } from '../../lib/prompts';
import { openSafetyChecker, type SafetyChecker } from '../../lib/safety';
import { findSafetyChecker, openModelStore } from '../../lib/weights/store';

/** A language model whose memory is held until it is closed. */
export interface OpenLanguageModel extends LanguageModel {
  close(): Promise<void>;
}

/** What a browser may have besides a video model. */
export interface EngineTools {
  /**
   * The safety checker for a model; null where none is installed.
   *
   * @throws KinoraError of files that cannot be used
   */
  safetyChecker(modelId: string): Promise<SafetyChecker | null>;
  /**
   * Loads the language model; null where none is installed.
   *
   * @throws KinoraError of a file that cannot be used, `CANCELLED`
   */
  languageModel(signal: AbortSignal): Promise<OpenLanguageModel | null>;
}

/** What is installed in this browser. */
export const installedTools: EngineTools = {
  async safetyChecker(modelId) {
    const found = await findSafetyChecker(await openModelStore(), modelId);
    return found && openSafetyChecker(found.folder, found);
  },
  // Nothing stores a language model yet.
  languageModel: async () => null,
};
