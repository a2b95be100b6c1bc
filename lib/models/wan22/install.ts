import { at, type ComponentId, KinoraError } from '../../contract';
import type { CheckedPart, ModelInstallation, ModelPlan } from '../../pipeline/installation';
import {
  checkpointOf,
  locateTensors,
  type ModelFolder,
  type SafetensorsCheckpoint,
  type TensorFile,
} from '../../weights';
import { type KeptFile, storedBytes } from '../../weights/store';
import { adapterMetadata } from './adapter';
import { type ModelConfig, readModelConfig } from './config';
import { checkLora, parseLora } from './lora';
import { loraKeyReader } from './lora-keys';
import {
  canonicalise,
  checkArchitecture,
  recognise,
  type WeightComponent,
  weightComponents,
} from './naming';
import { componentRecipe, plainRecipe } from './recipes';
import { transformerTensors } from './tensors';
import { tokenizerFilesFromGguf } from './tokenizer-gguf';

/** Files of the diffusers layout that are no weights. */
const configurationFiles = [
  'model_index.json',
  'scheduler/scheduler_config.json',
  'text_encoder/config.json',
  'tokenizer/tokenizer.json',
  'tokenizer/tokenizer_config.json',
  'transformer/config.json',
  'vae/config.json',
] as const;

const tokenizerFiles = ['tokenizer/tokenizer.json', 'tokenizer/tokenizer_config.json'] as const;

/** What the library has to know of the model: the Wan2.2-TI2V architecture. */
export const wan22Installation: ModelInstallation = {
  configurationFiles,
  optionalFiles: tokenizerFiles,
  recognise,
  plan: planModel,
  inspectLora,
};

async function planModel(configuration: ModelFolder): Promise<ModelPlan> {
  const config = await readModelConfig(configuration);
  const found = await Promise.all(tokenizerFiles.map((path) => configuration.exists(path)));
  const hasTokenizer = found.every(Boolean);
  return {
    check(id, files, precision) {
      if (id === 'adapter') return checkAdapter(files, config);
      const component = componentOf(id);
      const tensors = canonicalise(component, files, config);
      checkArchitecture(component, tensors, config);
      if (component !== 'tiny_decoder') {
        const part = { recipe: componentRecipe(component, config, precision), tensors };
        const own = component === 'text_encoder' && !hasTokenizer;
        return own ? { ...part, files: embeddedTokenizer(files) } : part;
      }
      const shapes = [...tensors].map(([name, { entry }]) => [name, entry] as const);
      return { recipe: plainRecipe(component, new Map(shapes)), tensors };
    },
    storedBytes(id, precision, blocks) {
      if (id === 'adapter' || id === 'tiny_decoder') return null;
      const component = componentOf(id);
      if (component === 'tiny_decoder') return null;
      // What a GGUF file has in blocks stays in them; its vectors are plain whatever they are there.
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

/**
 * Checks an adapter by its header: its tensors are kept as they come, with the metadata of the file.
 *
 * @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`
 */
function checkAdapter(files: readonly TensorFile[], { transformer }: ModelConfig): CheckedPart {
  const name = files.map(({ file }) => file.name).join(', ');
  const tensors = locateTensors(files);
  checkLora(checkpointOf(name, tensors), transformer, name);
  const shapes = [...tensors].map(([tensor, { entry }]) => [tensor, entry] as const);
  const metadata = Object.fromEntries(files.flatMap((file) => [...file.metadata]));
  return {
    recipe: plainRecipe('adapter', new Map(shapes)),
    tensors,
    files: [jsonFile(adapterMetadata, metadata)],
  };
}

function jsonFile(name: string, content: unknown): KeptFile {
  return { name, bytes: new TextEncoder().encode(JSON.stringify(content)) };
}

/**
 * The tokenizer that a GGUF text encoder has in its header, where the configuration has none.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_CONFIG_INVALID`
 */
function embeddedTokenizer(files: readonly TensorFile[]): KeptFile[] {
  const gguf = files.map((file) => file.gguf).find((header) => header !== null);
  if (!gguf?.metadata.has('tokenizer.ggml.model')) {
    throw new KinoraError(
      'MODEL_FILE_MISSING',
      'The model has no tokenizer: neither its folder "tokenizer" nor its text encoder has one.',
      { remedy: 'Add tokenizer.json and tokenizer_config.json, or use a GGUF text encoder.' },
    );
  }
  const { tokenizer, config } = tokenizerFilesFromGguf(gguf);
  return [jsonFile('tokenizer.json', tokenizer), jsonFile('tokenizer_config.json', config)];
}

async function inspectLora(
  checkpoint: SafetensorsCheckpoint,
  name: string,
  configuration: ModelFolder,
): Promise<number> {
  const { transformer } = await readModelConfig(configuration);
  await parseLora(shapesOnly(checkpoint), transformer, name);
  const readKey = loraKeyReader(transformerTensors(transformer));
  const ranks = [...checkpoint.names()]
    .filter((key) => readKey(key)?.role === 'down')
    .map((key) => at(checkpoint.shape(key), 0));
  return Math.max(0, ...ranks);
}

/** The same header with a zero for content: shapes decide, and nothing is fetched. */
function shapesOnly(checkpoint: SafetensorsCheckpoint): SafetensorsCheckpoint {
  return { ...checkpoint, read: async () => new Float32Array(1) };
}
