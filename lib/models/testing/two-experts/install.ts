import { type ComponentId, KinoraError, type Precision } from '../../../contract';
import type { ModelInstallation, ModelPlan } from '../../../pipeline/installation';
import type { ModelFolder } from '../../../weights';
import { storedBytes } from '../../../weights/store';
import type { ComponentRecipe } from '../../../weights/store/layout';
import { type LoraArchitecture, largestRank } from '../../layers/lora';
import { layerRecipe } from '../../layers/recipes';
import { canonicalise, checkArchitecture } from '../../naming/canonicalise';
import { type ComponentArchitecture, diffusersNaming } from '../../naming/component';
import { lora, recogniseBy } from '../../naming/kinds';
import { textEncoderArchitecture, umt5 } from '../../umt5/text-encoder-naming';
import {
  embeddedTokenizer,
  textEncoderRecipe,
  tokenizerFiles,
} from '../../umt5/text-encoder-recipe';
import {
  type Expert,
  experts,
  expertTensors,
  imageEncoderTensors,
  readTwoExpertsConfig,
  type TwoExpertsConfig,
} from './network';

/** The components with weights. */
export const components = ['text_encoder', ...experts, 'image_encoder'] as const;
export type Component = (typeof components)[number];

export function recipeOf(
  component: Component,
  config: TwoExpertsConfig,
  precision: Precision,
): ComponentRecipe {
  if (component === 'text_encoder') return textEncoderRecipe(config.text_encoder, precision);
  const shapes = tensorsOf(component, config);
  const isLinear = (name: string) => component !== 'image_encoder' && name.endsWith('.weight');
  const tensors = layerRecipe(shapes, component, isLinear, precision, 'all.bin');
  return { component, tensors };
}

function tensorsOf(component: Expert | 'image_encoder', config: TwoExpertsConfig) {
  return component === 'image_encoder'
    ? imageEncoderTensors(config)
    : expertTensors(component, config);
}

function architectureOf(component: Component, config: TwoExpertsConfig): ComponentArchitecture {
  if (component === 'text_encoder') return textEncoderArchitecture(config.text_encoder);
  return {
    name: component.replace('_', ' '),
    tensors: () => tensorsOf(component, config),
    namings: [diffusersNaming],
    prefixes: [''],
  };
}

/** Both experts, as LoRA files may change them. */
export function loraArchitecture(config: TwoExpertsConfig): LoraArchitecture {
  const shapes = new Map(experts.flatMap((expert) => [...expertTensors(expert, config)]));
  return { shapes, originalName: (module) => module };
}

async function planModel(configuration: ModelFolder): Promise<ModelPlan> {
  const config = await readTwoExpertsConfig(configuration);
  const found = await Promise.all(tokenizerFiles.map((path) => configuration.exists(path)));
  return {
    check(id, files, precision) {
      const component = componentOf(id);
      const architecture = architectureOf(component, config);
      const tensors = canonicalise(architecture, files);
      checkArchitecture(architecture, tensors);
      const part = { recipe: recipeOf(component, config, precision), tensors };
      const own = component === 'text_encoder' && !found.every(Boolean);
      return own ? { ...part, files: embeddedTokenizer(files) } : part;
    },
    storedBytes: (id, precision) =>
      storedBytes(recipeOf(componentOf(id), config, precision), () => undefined),
  };
}

function componentOf(id: ComponentId): Component {
  const known = components.find((component) => component === id);
  if (known) return known;
  throw new KinoraError('MODEL_MANIFEST_INVALID', `Two experts have no component "${id}".`);
}

export const twoExpertsInstallation: ModelInstallation = {
  configurationFiles: ['sizes.json', 'text_encoder/config.json', ...tokenizerFiles],
  optionalFiles: tokenizerFiles,
  plan: planModel,
  recognise: (file) =>
    recogniseBy(
      [
        lora,
        umt5,
        ({ names }) => {
          const own = components.find((part) => names.some((name) => name.startsWith(`${part}.`)));
          return own ? { name: `the ${own.replace('_', ' ')}`, component: own } : null;
        },
      ],
      [file],
    ),
  async inspectLora(checkpoint, name, configuration) {
    const architecture = loraArchitecture(await readTwoExpertsConfig(configuration));
    return { rank: largestRank(checkpoint, architecture, name) };
  },
};
