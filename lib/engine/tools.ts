import { type FinisherPart, isBundled, KinoraError } from '../contract';
import { appUrl } from '../contract/site';
import { type Need, needs } from '../contract/v3/worker';
import type { OptimizerParts } from '../language-model';
import { fetchManifest } from '../pipeline/open';
import { optimizePrompt } from '../prompts';
import { openQuickChecker, openSafetyChecker, type SafetyChecker } from '../safety';
import { httpFolder, type WeightFile } from '../weights';
import {
  findFinisher,
  findLanguageModel,
  findSafetyChecker,
  openModelStore,
} from '../weights/store';
import type { WorkerAbilities } from '../worker/serve-loop';

/** What a browser may have besides a video model. */
export interface EngineTools {
  /**
   * The safety checker for a model: the one that was downloaded, else the quick one that comes with Kinora.
   *
   * @throws KinoraError of files that cannot be used
   */
  safetyChecker(modelId: string): Promise<SafetyChecker>;
  /** The file of a network that finishes videos; null where it was not downloaded. */
  finisher(part: FinisherPart): Promise<WeightFile | null>;
  /** The language model that optimises prompts, and how it is asked. */
  readonly optimizer: OptimizerParts;
}

/** What is installed in this browser. */
export const installedTools: EngineTools = {
  async safetyChecker(modelId) {
    const checker = await findSafetyChecker(await openModelStore(), modelId);
    if (!checker) return openQuickChecker(httpFolder(appUrl('/nsfwjs/')));
    const { folder, model, sha256 } = checker;
    return openSafetyChecker(folder, { model, sha256 });
  },
  finisher: (part) => findFinisher(part),
  optimizer: { find: findLanguageModel, optimize: optimizePrompt },
};

/**
 * What this browser can do besides running a model, as a worker declares it. The quick checker alone does not
 * make a tab one that checks.
 */
export function installedAbilities(modelId: string): () => Promise<WorkerAbilities> {
  let bundled: Promise<boolean> | undefined;
  return async () => {
    const checker = await findSafetyChecker(await openModelStore(), modelId);
    bundled ??= isBundledModel(modelId);
    const without = (await bundled) ? 'demonstration' : 'none';
    return {
      knows: await knownNeeds(),
      safety_checker: checker ? 'ready' : without,
      prompt_optimizer: (await findLanguageModel()) !== null,
    };
  };
}

/** What a job may need of this browser: all but what takes a network that was not downloaded. */
async function knownNeeds(): Promise<Need[]> {
  const smooths = (await findFinisher('interpolator')) !== null;
  return needs.filter((need) => smooths || need !== 'smooth');
}

/** Whether a model comes with Kinora; one that was added is not listed. */
async function isBundledModel(id: string): Promise<boolean> {
  try {
    return isBundled((await fetchManifest(id, appUrl('/models/'))).manifest);
  } catch (thrown) {
    if (thrown instanceof KinoraError && thrown.code === 'MODEL_UNKNOWN') return false;
    throw thrown;
  }
}
