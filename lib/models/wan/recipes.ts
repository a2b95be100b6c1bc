import type { Precision } from '../../contract';
import type { ComponentRecipe, StoredForm, TensorRecipe } from '../../weights/store/layout';
import { layerRecipe, packOf, plainRecipe, tensorRecipes } from '../layers/recipes';
import { shapeOfTensor } from '../layers/tensor-shapes';
import { textEncoderRecipe } from '../umt5/text-encoder-recipe';
import {
  decoderBlocks,
  encoderBlocks,
  type TransformerConfig,
  type VaeBlock,
  type VaeConfig,
  withDecoder,
} from './config-schemas';
import { type Expert, expertsOf } from './experts';
import { imageEncoderTensors } from './image-encoder/image-encoder';
import type { ModelConfig } from './model-config';
import { blockLinears } from './transformer/transformer-network';
import { allPhases, derived, newestFirst, transposed } from './vae/vae-weights';
import { isDecoding, transformerTensors, vaeTensors } from './wan-tensors';

/** Components whose tensors are converted by the model's architecture. */
export type ConvertedComponent = Expert | 'text_encoder' | 'vae' | 'image_encoder';

/** Those that a model has. */
export function convertedComponents(config: ModelConfig): readonly ConvertedComponent[] {
  const image = config.image_encoder ? (['image_encoder'] as const) : [];
  return [...expertsOf(config), 'text_encoder', 'vae', ...image];
}

/**
 * How a component is kept in the store: every tensor that the loaders read, in the order in which they read them, so
 * that a layer is one contiguous read. Tensors that no loader reads are left out.
 *
 * @param precision of the model; VAE and image encoder have none, and the text encoder at least 8 bits
 */
export function componentRecipe(
  component: ConvertedComponent,
  config: ModelConfig,
  precision: Precision,
): ComponentRecipe {
  switch (component) {
    case 'text_encoder':
      return textEncoderRecipe(config.text_encoder, precision);
    case 'vae':
      return { component, tensors: vaeRecipe(config.vae) };
    case 'image_encoder': {
      const shapes = config.image_encoder ? [...imageEncoderTensors(config.image_encoder)] : [];
      return plainRecipe(component, new Map(shapes.map(([name, shape]) => [name, { shape }])));
    }
    default:
      return { component, tensors: transformerRecipe(config.transformer, precision) };
  }
}

/** One pack per block: its linears in the wanted precision, then its vectors; one for all around. */
function transformerRecipe(transformer: TransformerConfig, precision: Precision): TensorRecipe[] {
  const shapes = transformerTensors(transformer);
  const recipe = tensorRecipes(shapes);
  const all: TensorRecipe[] = [];
  for (const name of shapes.keys()) {
    if (!name.startsWith('blocks.')) all.push(recipe(name, 'f32', 'around.bin'));
  }
  for (let i = 0; i < transformer.num_layers; i++) {
    const name = `blocks.${i}`;
    const linears = new Set(blockLinears(transformer).map((role) => `${name}.${role}.weight`));
    const isLinear = (tensor: string) => linears.has(tensor);
    all.push(...layerRecipe(shapes, name, isLinear, precision, packOf('block', i)));
  }
  return all;
}

/** One pack per level of the encoder and of the decoder; kernels in the order that the graphs want. */
export function vaeRecipe(vae: VaeConfig): TensorRecipe[] {
  const shapes = vaeTensors(vae);
  const recipe = tensorRecipes(shapes);
  const all: TensorRecipe[] = [];

  /** `name.weight` in another order, then its bias. */
  const kernel = (
    name: string,
    pack: string,
    form: StoredForm,
    storedName: string,
    reorder: TensorRecipe['reorder'],
  ) => {
    const weight = recipe(`${name}.weight`, form, pack);
    all.push({ ...weight, name: storedName, ...(reorder && { reorder }) });
    all.push(recipe(`${name}.bias`, 'compact', pack));
  };
  const plain = (name: string, pack: string) =>
    kernel(name, pack, 'compact', `${name}.weight`, undefined);
  const convolution = (name: string, pack: string) => {
    const [filters = 0, inputs = 0, depth = 1, ...size] = shapeOfTensor(shapes, `${name}.weight`);
    const area = size.reduce((product, n) => product * n, 1);
    kernel(name, pack, 'compact', derived.taps(name), {
      shape: [depth, filters, inputs, ...size],
      apply: (data) => newestFirst(data, filters * inputs, depth, area, depth),
    });
  };
  const shortcut = (name: string, pack: string) => {
    const [filters = 0, inputs = 0] = shapeOfTensor(shapes, `${name}.weight`);
    kernel(name, pack, 'compact', derived.transposed(name), {
      shape: [inputs, filters],
      apply: (data) => transposed(data, filters, inputs),
    });
  };
  const norm = (name: string, pack: string) => all.push(recipe(`${name}.gamma`, 'compact', pack));
  const residual = (name: string, pack: string) => {
    convolution(`${name}.conv1`, pack);
    norm(`${name}.norm1`, pack);
    convolution(`${name}.conv2`, pack);
    norm(`${name}.norm2`, pack);
    if (shapes.has(`${name}.conv_shortcut.weight`)) shortcut(`${name}.conv_shortcut`, pack);
  };
  const resnets = (block: VaeBlock, pack: string) => {
    for (const name of block.resnets) residual(name, pack);
  };
  const middle = (name: string, pack: string) => {
    residual(`${name}.resnets.0`, pack);
    plain(`${name}.attentions.0.to_qkv`, pack);
    norm(`${name}.attentions.0.norm`, pack);
    plain(`${name}.attentions.0.proj`, pack);
    residual(`${name}.resnets.1`, pack);
  };

  convolution('encoder.conv_in', 'encoder-in.bin');
  for (const [i, block] of encoderBlocks(vae).entries()) {
    const pack = packOf('encoder', i);
    resnets(block, pack);
    if (block.space) plain(`${block.resampler}.resample.1`, pack);
    if (block.time) convolution(`${block.resampler}.time_conv`, pack);
  }
  middle('encoder.mid_block', 'encoder-out.bin');
  convolution('encoder.conv_out', 'encoder-out.bin');
  norm('encoder.norm_out', 'encoder-out.bin');
  plain('quant_conv', 'encoder-out.bin');

  plain('post_quant_conv', 'decoder-in.bin');
  convolution('decoder.conv_in', 'decoder-in.bin');
  middle('decoder.mid_block', 'decoder-in.bin');
  convolution('decoder.conv_out', 'decoder-in.bin');
  norm('decoder.norm_out', 'decoder-in.bin');
  for (const [i, block] of decoderBlocks(vae).entries()) {
    const pack = packOf('decoder', i);
    resnets(block, pack);
    if (!block.space) continue;
    const upsample = `${block.resampler}.resample.1`;
    const [filters = 0, inputs = 0] = shapeOfTensor(shapes, `${upsample}.weight`);
    // Sums, which need not be exact in 16 bits.
    kernel(upsample, pack, 'f32', derived.phases(upsample), {
      shape: [4, filters, inputs, 2, 2],
      apply: (data) => allPhases(data, filters * inputs),
    });
    if (block.time) convolution(`${block.resampler}.time_conv`, pack);
  }
  return all;
}

/** The decoding half of {@link vaeRecipe}, for a decoder whose first convolution has so many filters. */
export function lightDecoderRecipe(vae: VaeConfig, filters: number): ComponentRecipe {
  const tensors = vaeRecipe(withDecoder(vae, filters)).filter(({ source }) => isDecoding(source));
  return { component: 'light_decoder', tensors };
}
