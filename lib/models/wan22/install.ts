import { type ComponentId, isAdapterPart, KinoraError } from '../../contract';
import type { LoraFit, ModelInstallation, ModelPlan } from '../../pipeline/installation';
import type { ModelFolder, SafetensorsCheckpoint } from '../../weights';
import { storedBytes } from '../../weights/store';
import { largestRank } from '../layers/lora';
import { plainRecipe } from '../layers/recipes';
import { embeddedTokenizer, tokenizerFiles } from '../umt5/install';
import { checkAdapter } from '../wan/adapter';
import { loraArchitectureOf } from '../wan/lora';
import { lightDecoderRecipe } from '../wan/recipes';
import { decoderWidth } from '../wan/tensors';
import { readModelConfig } from './config';
import { locateComponent, recognise, type WeightComponent, weightComponents } from './naming';
import { componentRecipe } from './recipes';

/** Files of the diffusers layout that are no weights. */
const configurationFiles = [
  'model_index.json',
  'scheduler/scheduler_config.json',
  'text_encoder/config.json',
  ...tokenizerFiles,
  'transformer/config.json',
  'vae/config.json',
] as const;

/** What the library has to know of the model: the Wan2.2-TI2V architecture. */
export const wan22Installation: ModelInstallation = {
  configurationFiles,
  optionalFiles: tokenizerFiles,
  loraNeed: 'lora_5b',
  recognise,
  plan: planModel,
  inspectLora,
};

async function planModel(configuration: ModelFolder): Promise<ModelPlan> {
  const config = await readModelConfig(configuration);
  const present = await Promise.all(tokenizerFiles.map((path) => configuration.exists(path)));
  const hasTokenizer = present.every(Boolean);
  return {
    check(id, files, precision) {
      if (isAdapterPart(id)) return checkAdapter(id, files, loraArchitectureOf(config.transformer));
      const component = componentOf(id);
      const tensors = locateComponent(component, files, config);
      if (component === 'light_decoder') {
        const [filters = 0] = tensors.get(decoderWidth)?.entry.shape ?? [];
        // Its file has an encoder as well, and what its training needed.
        return { recipe: lightDecoderRecipe(config.vae, filters), tensors, needsPart: true };
      }
      if (component !== 'tiny_decoder') {
        const part = { recipe: componentRecipe(component, config, precision), tensors };
        const own = component === 'text_encoder' && !hasTokenizer;
        return own ? { ...part, files: embeddedTokenizer(files) } : part;
      }
      const shapes = [...tensors].map(([name, { entry }]) => [name, entry] as const);
      return { recipe: plainRecipe(component, new Map(shapes)), tensors };
    },
    storedBytes(id, precision, blocks) {
      if (isAdapterPart(id)) return null;
      const component = componentOf(id);
      if (component === 'tiny_decoder' || component === 'light_decoder') return null;
      // Blocks of a GGUF file stay blocks; its vectors become plain values.
      const type = blocks ? 'Q8_0' : undefined;
      return storedBytes(componentRecipe(component, config, precision), () => type);
    },
  };
}

/** @throws KinoraError `MODEL_MANIFEST_INVALID` for a component that these models do not have */
function componentOf(id: ComponentId): WeightComponent {
  const known = weightComponents.find((component) => component === id);
  if (known) return known;
  const sentence = `A Wan2.2-TI2V model has no component "${id}".`;
  throw new KinoraError('MODEL_MANIFEST_INVALID', sentence);
}

async function inspectLora(
  checkpoint: SafetensorsCheckpoint,
  name: string,
  configuration: ModelFolder,
): Promise<LoraFit> {
  const { transformer } = await readModelConfig(configuration);
  return { rank: largestRank(checkpoint, loraArchitectureOf(transformer), name) };
}
