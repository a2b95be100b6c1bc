import type { OptimizerParts } from '../../lib/language-model';
import { openSafetyChecker, type SafetyChecker } from '../../lib/safety';
import { findSafetyChecker, openModelStore } from '../../lib/weights/store';

/** What a browser may have besides a video model. */
export interface EngineTools {
  /**
   * The safety checker for a model; null where none is installed.
   *
   * @throws KinoraError of files that cannot be used
   */
  safetyChecker(modelId: string): Promise<SafetyChecker | null>;
  /** The language model that optimises prompts, and how it is asked. */
  readonly optimizer: OptimizerParts;
}

/** What is installed in this browser. */
export const installedTools: EngineTools = {
  async safetyChecker(modelId) {
    const found = await findSafetyChecker(await openModelStore(), modelId);
    if (!found) return null;
    const { folder, model, sha256 } = found;
    return openSafetyChecker(folder, { model, sha256 });
  },
  optimizer: { find: async () => null, optimize: () => Promise.reject(new Error('absent')) },
};
