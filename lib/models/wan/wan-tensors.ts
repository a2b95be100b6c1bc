/**
 * Every tensor of the model, by the name it has in diffusers' files, with its shape. A weight of a
 * linear layer is [out, in]; a convolution's is [out, in, time, height, width] or without time.
 */
import { at } from '../../contract';
import type { TensorShapes } from '../layers/tensor-shapes';
import {
  decoderBlocks,
  encoderBlocks,
  type TransformerConfig,
  transformerDim,
  type VaeBlock,
  type VaeConfig,
  withDecoder,
} from './config-schemas';
import { tinyDecoderKeys } from './tiny-decoder/keys';

/** All tensors of the transformer: 825 for the 5B, 1,303 with an image branch and 1,095 without for the 14B. */
export function transformerTensors(config: TransformerConfig): TensorShapes {
  const shapes: TensorShapes = new Map();
  const dim = transformerDim(config);
  const patch = config.patch_size[0] * config.patch_size[1] * config.patch_size[2];

  layer(shapes, 'patch_embedding', [dim, config.in_channels, ...config.patch_size]);
  layer(shapes, 'condition_embedder.time_embedder.linear_1', [dim, config.freq_dim]);
  layer(shapes, 'condition_embedder.time_embedder.linear_2', [dim, dim]);
  layer(shapes, 'condition_embedder.time_proj', [6 * dim, dim]);
  layer(shapes, 'condition_embedder.text_embedder.linear_1', [dim, config.text_dim]);
  layer(shapes, 'condition_embedder.text_embedder.linear_2', [dim, dim]);
  const { image_dim: imageDim } = config;
  if (imageDim) {
    const embedder = 'condition_embedder.image_embedder';
    layer(shapes, `${embedder}.norm1`, [imageDim]);
    layer(shapes, `${embedder}.ff.net.0.proj`, [imageDim, imageDim]);
    layer(shapes, `${embedder}.ff.net.2`, [dim, imageDim]);
    layer(shapes, `${embedder}.norm2`, [dim]);
  }
  for (let i = 0; i < config.num_layers; i++) {
    const block = `blocks.${i}`;
    shapes.set(`${block}.scale_shift_table`, [1, 6, dim]);
    for (const attention of ['attn1', 'attn2']) {
      for (const projection of ['to_q', 'to_k', 'to_v', 'to_out.0']) {
        layer(shapes, `${block}.${attention}.${projection}`, [dim, dim]);
      }
      shapes.set(`${block}.${attention}.norm_q.weight`, [dim]);
      shapes.set(`${block}.${attention}.norm_k.weight`, [dim]);
    }
    if (imageDim) {
      layer(shapes, `${block}.attn2.add_k_proj`, [dim, dim]);
      layer(shapes, `${block}.attn2.add_v_proj`, [dim, dim]);
      shapes.set(`${block}.attn2.norm_added_k.weight`, [dim]);
    }
    layer(shapes, `${block}.norm2`, [dim]);
    layer(shapes, `${block}.ffn.net.0.proj`, [config.ffn_dim, dim]);
    layer(shapes, `${block}.ffn.net.2`, [dim, config.ffn_dim]);
  }
  shapes.set('scale_shift_table', [1, 2, dim]);
  layer(shapes, 'proj_out', [patch * config.out_channels, dim]);
  return shapes;
}

/** All tensors of the VAE: 196 for Wan2.2's, 194 for Wan2.1's. */
export function vaeTensors(config: VaeConfig): TensorShapes {
  const shapes: TensorShapes = new Map();
  const { z_dim } = config;
  const down = encoderBlocks(config);
  const up = decoderBlocks(config);
  const encoderTop = at(down, down.length - 1).out_dim;
  const decoderTop = at(up, 0).in_dim;
  const decoderOut = at(up, up.length - 1).out_dim;

  convolution(shapes, 'encoder.conv_in', config.base_dim, config.in_channels);
  for (const block of down) {
    residualBlocks(shapes, block);
    resampler(shapes, block, block.out_dim);
  }
  middle(shapes, 'encoder.mid_block', encoderTop);
  shapes.set('encoder.norm_out.gamma', [encoderTop, 1, 1, 1]);
  convolution(shapes, 'encoder.conv_out', 2 * z_dim, encoderTop);
  layer(shapes, 'quant_conv', [2 * z_dim, 2 * z_dim, 1, 1, 1]);

  layer(shapes, 'post_quant_conv', [z_dim, z_dim, 1, 1, 1]);
  convolution(shapes, 'decoder.conv_in', decoderTop, z_dim);
  middle(shapes, 'decoder.mid_block', decoderTop);
  for (const block of up) {
    residualBlocks(shapes, block);
    // Two frames for each one: twice the channels.
    resampler(shapes, block, 2 * block.out_dim);
  }
  shapes.set('decoder.norm_out.gamma', [decoderOut, 1, 1, 1]);
  convolution(shapes, 'decoder.conv_out', config.out_channels, decoderOut);
  return shapes;
}

/** Has the filters of a decoder, by the same name in files and in the store. */
export const decoderWidth = 'decoder.conv_in.bias';

/** Whether a tensor of the VAE is of its decoding half. */
export const isDecoding = (name: string) => /^(post_quant_conv|decoder)\./.test(name);

/** All tensors of a light decoder: the VAE's decoding half, in the width that the file itself has. */
export function lightDecoderTensors(
  vae: VaeConfig,
  shapeOf: (name: string) => readonly number[] | undefined,
): TensorShapes {
  const tensors = vaeTensors(withDecoder(vae, shapeOf(decoderWidth)?.[0] ?? 0));
  return new Map([...tensors].filter(([name]) => isDecoding(name)));
}

/**
 * All tensors of a tiny decoder. Its widths are the file's own, so they are taken from the tensor that
 * begins each stage; everything else must fit to them.
 *
 * @param shapeOf gives the shape of a tensor; undefined for one that is not there
 */
export function tinyDecoderTensors(
  config: Pick<VaeConfig, 'z_dim' | 'out_channels'>,
  shapeOf: (name: string) => readonly number[] | undefined,
): TensorShapes {
  const shapes: TensorShapes = new Map();
  const variant = shapeOf('decoder.0.weight') ? 'super' : 'base';
  const { first, stages, last } = tinyDecoderKeys[variant];
  const base = variant === 'base';
  const kernel = base ? [3, 3] : [1, 1];

  let width = shapeOf(`decoder.${first}.weight`)?.[0] ?? 0;
  shapes.set(`decoder.${first}.weight`, [width, config.z_dim, ...kernel]);
  if (base) shapes.set(`decoder.${first}.bias`, [width]);
  for (const { blocks, grow, convolution: index, frames } of stages) {
    for (const block of blocks) tinyBlock(shapes, `decoder.${block}.conv`, width, variant);
    const [filters = 0] = shapeOf(`decoder.${index}.weight`) ?? [];
    // The larger variant grows time behind its pixel shuffle, which takes four channels for one.
    const grown = base ? width : filters / 4;
    const [rows = 0] = shapeOf(`decoder.${grow}.conv.weight`) ?? [];
    // A file may have more rows than there are frames.
    shapes.set(`decoder.${grow}.conv.weight`, [Math.max(rows, frames * grown), grown, 1, 1]);
    shapes.set(`decoder.${index}.weight`, [filters, width, 3, 3]);
    if (!base) shapes.set(`decoder.${index}.bias`, [filters]);
    width = base ? filters : filters / 4;
  }
  layer(shapes, `decoder.${last}`, [config.out_channels, width, 3, 3]);
  return shapes;
}

function tinyBlock(shapes: TensorShapes, name: string, width: number, variant: string): void {
  if (variant === 'base') {
    layer(shapes, `${name}.0`, [width, 2 * width, 3, 3]);
    layer(shapes, `${name}.2`, [width, width, 3, 3]);
    layer(shapes, `${name}.4`, [width, width, 3, 3]);
  } else {
    shapes.set(`${name}.0.weight`, [2 * width, 1, 7, 7]);
    layer(shapes, `${name}.1`, [4 * width, 2 * width, 1, 1]);
    shapes.set(`${name}.3.weight`, [width, 4 * width, 1, 1]);
  }
}

function layer(shapes: TensorShapes, name: string, weight: readonly number[]): void {
  shapes.set(`${name}.weight`, weight);
  shapes.set(`${name}.bias`, weight.slice(0, 1));
}

function convolution(shapes: TensorShapes, name: string, out: number, input: number): void {
  layer(shapes, name, [out, input, 3, 3, 3]);
}

function residualBlocks(shapes: TensorShapes, block: VaeBlock): void {
  for (const [i, name] of block.resnets.entries()) {
    const input = i === 0 ? block.in_dim : block.out_dim;
    residual(shapes, name, input, block.out_dim);
  }
}

function residual(shapes: TensorShapes, name: string, input: number, out: number): void {
  shapes.set(`${name}.norm1.gamma`, [input, 1, 1, 1]);
  convolution(shapes, `${name}.conv1`, out, input);
  shapes.set(`${name}.norm2.gamma`, [out, 1, 1, 1]);
  convolution(shapes, `${name}.conv2`, out, out);
  if (input !== out) layer(shapes, `${name}.conv_shortcut`, [out, input, 1, 1, 1]);
}

function resampler(shapes: TensorShapes, block: VaeBlock, timeOut: number): void {
  if (!block.space) return;
  const { resampler: name } = block;
  layer(shapes, `${name}.resample.1`, [block.next_dim, block.out_dim, 3, 3]);
  if (block.time) layer(shapes, `${name}.time_conv`, [timeOut, block.out_dim, 3, 1, 1]);
}

function middle(shapes: TensorShapes, name: string, dim: number): void {
  residual(shapes, `${name}.resnets.0`, dim, dim);
  shapes.set(`${name}.attentions.0.norm.gamma`, [dim, 1, 1]);
  layer(shapes, `${name}.attentions.0.to_qkv`, [3 * dim, dim, 1, 1]);
  layer(shapes, `${name}.attentions.0.proj`, [dim, dim, 1, 1]);
  residual(shapes, `${name}.resnets.1`, dim, dim);
}
