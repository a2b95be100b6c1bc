import { type ComponentId, isAdapterPart, KinoraError } from '../../contract';
import type { LoraFit, ModelInstallation, ModelPlan } from '../../pipeline/installation';
import type { ModelFolder, SafetensorsCheckpoint, TensorFile } from '../../weights';
import { storedBytes } from '../../weights/store';
import { largestRank } from '../layers/lora';
import { plainRecipe } from '../layers/recipes';
import { embeddedTokenizer, tokenizerFiles } from '../umt5/text-encoder-recipe';
import { checkAdapter } from './adapter';
import { expertOfLora, noiseOfLora } from './experts';
import { processorFile } from './image-encoder/image-encoder-config';
import type { WanKind } from './kinds';
import { baseOfLora, loraArchitectureOf, unusedTensors } from './lora';
import {
  type ModelConfig,
  readModelConfig,
  readVideoConfig,
  type VideoConfig,
} from './model-config';
import { componentRecipe, convertedComponents, lightDecoderRecipe } from './recipes';
import { locateComponent, recognise, type WeightComponent } from './wan-naming';
import { decoderWidth } from './wan-tensors';

/** Files of the diffusers layout that are no weights. */
const commonFiles = [
  'model_index.json',
  'scheduler/scheduler_config.json',
  'text_encoder/config.json',
  ...tokenizerFiles,
  'transformer/config.json',
  'vae/config.json',
] as const;

/** Parts that only some models of a varying kind have: the second transformer, or the image encoder. */
const ownFiles = ['transformer_2/config.json', 'image_encoder/config.json', processorFile] as const;

/** What the library has to know of the models of a kind. */
export function wanInstallation(kind: WanKind): ModelInstallation {
  const own = kind.varies ? ownFiles : [];
  return {
    configurationFiles: [...commonFiles, ...own],
    optionalFiles: [...tokenizerFiles, ...own],
    loraNeed: kind.loraNeed,
    recognise: (file) => recognise(kind, file),
    plan: async (configuration) =>
      planModel(configuration, await readModelConfig(configuration, kind)),
    inspectLora: async (checkpoint, name, configuration) =>
      inspectLora(checkpoint, name, await readVideoConfig(configuration, kind)),
  };
}

function inspectLora(
  checkpoint: SafetensorsCheckpoint,
  name: string,
  config: VideoConfig,
): LoraFit {
  const architecture = loraArchitectureOf(config);
  const rank = largestRank(checkpoint, architecture, name);
  if (!config.kind.varies) return { rank };
  const noise = noiseOfLora({ name }, checkpoint.metadata);
  return {
    rank,
    base: baseOfLora(checkpoint, name),
    ...(noise && { noise }),
    unused: unusedTensors(checkpoint, architecture).length,
  };
}

async function planModel(configuration: ModelFolder, config: ModelConfig): Promise<ModelPlan> {
  const present = await Promise.all(tokenizerFiles.map((path) => configuration.exists(path)));
  const hasTokenizer = present.every(Boolean);
  return {
    check(id, files, precision) {
      if (isAdapterPart(id)) {
        const partOf = ({ file, metadata }: TensorFile) =>
          config.kind.varies ? expertOfLora(file, metadata) : null;
        return checkAdapter(id, files, loraArchitectureOf(config), partOf);
      }
      const component = componentOf(id, config);
      const tensors = locateComponent(component, files, config);
      if (component === 'light_decoder') {
        const [filters = 0] = tensors.get(decoderWidth)?.entry.shape ?? [];
        // Its file has an encoder as well, and what its training needed.
        return { recipe: lightDecoderRecipe(config.vae, filters), tensors, needsPart: true };
      }
      if (component === 'tiny_decoder') {
        const shapes = [...tensors].map(([name, { entry }]) => [name, entry] as const);
        return { recipe: plainRecipe(component, new Map(shapes)), tensors };
      }
      const part = { recipe: componentRecipe(component, config, precision), tensors };
      const own = component === 'text_encoder' && !hasTokenizer;
      return own ? { ...part, files: embeddedTokenizer(files) } : part;
    },
    storedBytes(id, precision, blocks) {
      if (isAdapterPart(id)) return null;
      const component = componentOf(id, config);
      if (component === 'tiny_decoder' || component === 'light_decoder') return null;
      // Blocks of a GGUF file stay blocks; its vectors become plain values.
      const type = blocks ? 'Q8_0' : undefined;
      return storedBytes(componentRecipe(component, config, precision), () => type);
    },
  };
}

/** @throws KinoraError `MODEL_MANIFEST_INVALID` for a component that the model does not have */
function componentOf(id: ComponentId, config: ModelConfig): WeightComponent {
  const all = [...convertedComponents(config), 'light_decoder', 'tiny_decoder'] as const;
  const known = all.find((component) => component === id);
  if (known) return known;
  const sentence = `This ${config.kind.name} model has no component "${id}".`;
  throw new KinoraError('MODEL_MANIFEST_INVALID', sentence);
}
