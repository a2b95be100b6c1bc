import { type ComponentId, isAdapterPart, KinoraError } from '../../contract';
import type {
  LoraFit,
  ModelInstallation,
  ModelPlan,
  RecognisedFile,
} from '../../pipeline/installation';
import type { ModelFolder, SafetensorsCheckpoint, TensorFile } from '../../weights';
import { storedBytes } from '../../weights/store';
import { largestRank } from '../layers/lora';
import { plainRecipe } from '../layers/recipes';
import type { ComponentArchitecture } from '../naming/component';
import { type Recogniser, recogniseBy } from '../naming/kinds';
import { embeddedTokenizer, tokenizerFiles } from '../umt5/install';
import { textEncoderArchitecture } from '../umt5/naming';
import { checkAdapter } from '../wan/adapter';
import {
  a14bTransformer,
  locateAs,
  wan21Transformer,
  wanArchitecture,
  wanKinds,
} from '../wan/naming';
import { type ModelConfig, readModelConfig, readVideoConfig } from './config';
import { expertOfLora, expertOfPath, noiseOfLora } from './experts';
import { processorFile } from './image-encoder/config';
import { imageEncoderTensors } from './image-encoder/image-encoder';
import { baseOfLora, loraArchitecture, unusedTensors } from './lora';
import { componentRecipe, isExpert, type WeightComponent, weightComponentsOf } from './recipes';

/** What only one of the models has: the second transformer, or the image encoder. */
const ownFiles = ['transformer_2/config.json', 'image_encoder/config.json', processorFile] as const;

/** Files of the diffusers layout that are no weights. */
const configurationFiles = [
  'model_index.json',
  'scheduler/scheduler_config.json',
  'text_encoder/config.json',
  ...tokenizerFiles,
  'transformer/config.json',
  'vae/config.json',
  ...ownFiles,
] as const;

/** The vision tower of CLIP, alone. */
const clipVision: Recogniser = (contents) =>
  contents.has(/^(vision_model\.)?embeddings\.class_embedding$/)
    ? { name: 'the image encoder of Wan2.1', component: 'image_encoder' }
    : null;

const kinds = wanKinds(
  {
    transformer: ({ width, inputs }) =>
      inputs === 36 || (inputs === undefined && width !== 3072 && width !== 1536),
    latentChannels: 16,
  },
  [clipVision],
);

/** What the library has to know of the models. */
export const wan14bInstallation: ModelInstallation = {
  configurationFiles,
  optionalFiles: [...tokenizerFiles, ...ownFiles],
  loraNeed: 'lora_14b',
  recognise,
  plan: planModel,
  inspectLora,
};

/** The halves of A14B have the same tensors: only their paths tell them apart. */
function recognise(file: TensorFile): RecognisedFile {
  const kind = recogniseBy(kinds, [file]);
  if (kind.component !== 'transformer' || kind.name === wan21Transformer) return kind;
  const component = expertOfPath(file.file.name);
  // A shard may not tell which model it is of.
  if (component || kind.name !== a14bTransformer) return component ? { ...kind, component } : kind;
  const remedy = 'Put "high" or "low" into the name of the file or of its folder.';
  return { name: `${kind.name}: for high or for low noise`, component, remedy };
}

async function inspectLora(
  checkpoint: SafetensorsCheckpoint,
  name: string,
  configuration: ModelFolder,
): Promise<LoraFit> {
  const architecture = loraArchitecture(await readVideoConfig(configuration));
  const rank = largestRank(checkpoint, architecture, name);
  const noise = noiseOfLora({ name }, checkpoint.metadata);
  return {
    rank,
    base: baseOfLora(checkpoint, name),
    ...(noise && { noise }),
    unused: unusedTensors(checkpoint, architecture).length,
  };
}

async function planModel(configuration: ModelFolder): Promise<ModelPlan> {
  const config = await readModelConfig(configuration);
  const present = await Promise.all(tokenizerFiles.map((path) => configuration.exists(path)));
  const hasTokenizer = present.every(Boolean);
  return {
    check(id, files, precision) {
      if (isAdapterPart(id)) {
        const partOf = ({ file, metadata }: TensorFile) => expertOfLora(file, metadata);
        return checkAdapter(id, files, loraArchitecture(config), partOf);
      }
      const component = componentOf(id, config);
      const kind = isExpert(component) ? 'transformer' : component;
      const architecture = architectureOf(component, config);
      const tensors = locateAs(kind, architecture, kinds, files, 'a Wan 14B model');
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
      if (component === 'tiny_decoder') return null;
      // Blocks of a GGUF file stay blocks; its vectors become plain values.
      const type = blocks ? 'Q8_0' : undefined;
      return storedBytes(componentRecipe(component, config, precision), () => type);
    },
  };
}

/** @throws KinoraError `MODEL_MANIFEST_INVALID` for a component that the model does not have */
function componentOf(id: ComponentId, config: ModelConfig): WeightComponent | 'tiny_decoder' {
  const known = [...weightComponentsOf(config), 'tiny_decoder' as const].find((own) => own === id);
  if (known) return known;
  throw new KinoraError('MODEL_MANIFEST_INVALID', `This Wan 14B model has no component "${id}".`);
}

/** A component by its configuration, as weight files may have it. */
function architectureOf(
  component: WeightComponent | 'tiny_decoder',
  config: ModelConfig,
): ComponentArchitecture {
  if (component === 'text_encoder') return textEncoderArchitecture(config.text_encoder);
  if (isExpert(component)) return wanArchitecture('transformer', config);
  if (component !== 'image_encoder') return wanArchitecture(component, config);
  const { image_encoder: encoder } = config;
  return {
    name: 'image encoder',
    tensors: () => (encoder ? imageEncoderTensors(encoder) : new Map()),
    namings: [{ name: 'transformers', rename: (name) => name }],
    prefixes: ['', 'vision_model.', 'image_encoder.vision_model.'],
    // The last layer and what is behind it are not read.
    harmless: [
      /^encoder\.layers\.\d+\./,
      /^post_layernorm\./,
      /visual_projection\./,
      /position_ids$/,
    ],
  };
}
