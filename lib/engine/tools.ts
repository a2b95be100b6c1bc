import {
  appUrl,
  demonstrationModel,
  type FinisherPart,
  isBundled,
  isSwitch,
  type ModelManifest,
  parseManifest,
  switches,
} from '../contract';
import { isLoraNeed, type LoraNeed, type Need, needs } from '../contract/v3';
import type { OptimizerDependencies } from '../language-model';
import type { ModelInstallations } from '../pipeline/installation';
import { fetchManifest } from '../pipeline/open';
import { optimizePrompt } from '../prompts';
import { openQuickChecker, openSafetyChecker, type SafetyChecker } from '../safety';
import { httpFolder, parseModelJson, type WeightFile } from '../weights';
import {
  findFinisher,
  findLanguageModel,
  findSafetyChecker,
  openModelStore,
} from '../weights/store';
import type { WorkerAbilities } from '../worker/serve-loop';

/** Models and networks that a browser may have besides a video model. */
export interface EngineTools {
  /**
   * The safety checker for a model: the one that was downloaded, else the quick one that comes with Kinora.
   *
   * @throws KinoraError of files that cannot be used
   */
  openChecker(modelId: string): Promise<SafetyChecker>;
  /** The file of a network that finishes videos; null where it was not downloaded. */
  finisher(part: FinisherPart): Promise<WeightFile | null>;
  /** The language model that optimises prompts, and how it is asked. */
  readonly optimizer: OptimizerDependencies;
}

/** The tools that are installed in this browser. */
export const installedTools: EngineTools = {
  async openChecker(modelId) {
    const checker = await findSafetyChecker(await openModelStore(), modelId);
    if (!checker) {
      return openQuickChecker(httpFolder(appUrl('/nsfwjs/')), modelId === demonstrationModel);
    }
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
export function installedAbilities(
  families: ModelInstallations,
  modelId: string,
): () => Promise<WorkerAbilities> {
  let opened: Promise<ModelManifest> | undefined;
  return async () => {
    const checker = await findSafetyChecker(await openModelStore(), modelId);
    opened ??= manifestOf(modelId);
    const manifest = await opened;
    const without = isBundled(manifest) ? 'demonstration' : 'none';
    return {
      knows: await knownNeeds(families[manifest.family]?.installation.loraNeed),
      safety_checker: checker ? 'ready' : without,
      prompt_optimizer: (await findLanguageModel()) !== null,
    };
  };
}

/** Needs of jobs that this browser fulfils: all but LoRAs of another model and networks that were not downloaded. */
async function knownNeeds(loraNeed: LoraNeed | undefined): Promise<Need[]> {
  const lacks: Need[] = needs.filter((need) => isLoraNeed(need) && need !== loraNeed);
  for (const name of needs.filter(isSwitch)) {
    const { network } = switches[name];
    if (network && !(await findFinisher(network))) lacks.push(name);
  }
  return needs.filter((need) => !lacks.includes(need));
}

/** The manifest of a model; that of an added one lies in the store. */
async function manifestOf(id: string): Promise<ModelManifest> {
  const added = await (await openModelStore()).folder(id).readText('model.json');
  if (!added) return (await fetchManifest(id, appUrl('/models/'))).manifest;
  return parseManifest(parseModelJson('model.json', added));
}
