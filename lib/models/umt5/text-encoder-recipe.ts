import { KinoraError, type Precision } from '../../contract';
import type { ModelFolder, TensorFile } from '../../weights';
import { type KeptFile, modelFolderOf, type StoreFolder } from '../../weights/store';
import type { ComponentRecipe } from '../../weights/store/layout';
import { layerRecipe, packOf, tensorRecipes } from '../layers/recipes';
import { textEncoderPrecision } from './text-encoder';
import { type TextEncoderConfig, textEncoderTensors } from './text-encoder-config';
import { tokenizerFilesFromGguf } from './tokenizer';

/** Files of the configuration that the header of a GGUF text encoder may have instead. */
export const tokenizerFiles = [
  'tokenizer/tokenizer.json',
  'tokenizer/tokenizer_config.json',
] as const;

/**
 * How the text encoder is kept in the store: one pack per layer. The embedding table has its own, of
 * which a prompt reads single rows.
 *
 * @param precision of the model; see {@link textEncoderPrecision}
 */
export function textEncoderRecipe(
  config: TextEncoderConfig,
  precision: Precision,
): ComponentRecipe {
  const shapes = textEncoderTensors(config);
  const recipe = tensorRecipes(shapes);
  const tensors = [recipe('shared.weight', 'compact', 'embedding.bin')];
  // Every matrix of a layer is a linear, but for the table of relative positions.
  const isLinear = (name: string, shape: readonly number[]) =>
    shape.length === 2 && !name.includes('relative_attention_bias');
  const stored = textEncoderPrecision(precision);
  for (let i = 0; i < config.num_layers; i++) {
    const name = `encoder.block.${i}`;
    tensors.push(...layerRecipe(shapes, name, isLinear, stored, packOf('layer', i)));
  }
  tensors.push(recipe('encoder.final_layer_norm.weight', 'f32', 'around.bin'));
  return { component: 'text_encoder', tensors };
}

/**
 * What is kept with the weights of a text encoder: where the configuration has no tokenizer, the one that
 * a GGUF file has in its header.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_CONFIG_INVALID`
 */
export function embeddedTokenizer(files: readonly TensorFile[]): KeptFile[] {
  const gguf = files.map((file) => file.gguf).find((header) => header !== null);
  if (!gguf?.metadata.has('tokenizer.ggml.model')) {
    throw new KinoraError(
      'MODEL_FILE_MISSING',
      'The model has no tokenizer: neither its folder "tokenizer" nor its text encoder has one.',
      { remedy: 'Add tokenizer.json and tokenizer_config.json, or use a GGUF text encoder.' },
    );
  }
  const { tokenizer, config } = tokenizerFilesFromGguf(gguf);
  const json = (name: string, content: unknown): KeptFile => ({
    name,
    bytes: new TextEncoder().encode(JSON.stringify(content)),
  });
  return [json('tokenizer.json', tokenizer), json('tokenizer_config.json', config)];
}

/**
 * The configuration of an installed model, with the tokenizer that came with its text encoder where there
 * is one.
 *
 * @param folder the model's folder in the store
 */
export async function installedConfiguration(folder: StoreFolder): Promise<ModelFolder> {
  const configuration = modelFolderOf(folder.folder('configuration'));
  const encoder = folder.folder('text_encoder');
  if (!(await encoder.open('tokenizer.json'))) return configuration;
  const own = modelFolderOf(encoder);
  const place = (path: string) => {
    const inside = /^tokenizer\/(.+)$/.exec(path)?.[1];
    return inside === undefined ? ([configuration, path] as const) : ([own, inside] as const);
  };
  const at = <T>(path: string, read: (from: ModelFolder, inside: string) => Promise<T>) =>
    read(...place(path));
  return {
    open: (path) => at(path, (from, inside) => from.open(inside)),
    text: (path) => at(path, (from, inside) => from.text(inside)),
    json: (path) => at(path, (from, inside) => from.json(inside)),
    exists: (path) => at(path, (from, inside) => from.exists(inside)),
  };
}
