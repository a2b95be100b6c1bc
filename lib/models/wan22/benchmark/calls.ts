/*
 * Graphs of the runtime that each stage runs, one after another. Chunks of tokens and bands of rows, which only
 * large sizes have, are not counted.
 */
import type { LatentSize } from '../../../pipeline/latents';
import type { TensorShapes } from '../../layers/tensors';
import { decoderBlocks, type TransformerConfig, type VaeConfig } from '../config';
import { tinyDecoderKeys } from '../tiny-decoder/keys';

/** One pass of the transformer: the three passes of each block over its rows; embedding and head. */
export function passCalls({ num_layers }: TransformerConfig): number {
  return 3 * num_layers + 2;
}

/** The VAE's decoder for a clip. */
export function decoderCalls(config: VaeConfig, { frames }: LatentSize): number {
  // 1×1 and first convolution; in the middle two residual blocks of two convolutions, and attention.
  let total = frames * (2 + 5);
  let entering = frames;
  for (const { resnets, space, time } of decoderBlocks(config)) {
    total += entering * 2 * resnets;
    // The first frame of a clip stays one.
    if (time) entering = 2 * entering - 1;
    total += entering * (Number(time) + Number(space));
  }
  return total + entering;
}

/** A tiny decoder for a clip. @param shapes of its tensors */
export function tinyDecoderCalls(shapes: TensorShapes, { frames }: LatentSize): number {
  const variant = shapes.has('decoder.0.weight') ? 'super' : 'base';
  let [total, entering] = [frames, frames];
  for (const { blocks, frames: growth } of tinyDecoderKeys[variant].stages) {
    total += entering * (blocks.length + (variant === 'super' ? 1 : 0));
    entering *= growth;
    total += entering;
  }
  return total + entering;
}
