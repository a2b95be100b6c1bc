import type { TensorShapes } from '../../layers/tensor-shapes';
import type { VaeConfig } from '../config-schemas';
import { tinyDecoderTensors } from '../wan-tensors';

/** The tensors of `taew2_2`, or of `taew2_1` for the VAE without a patch: their widths are alike (README). */
export function publishedTinyDecoder({ vae }: { readonly vae: VaeConfig }): TensorShapes {
  const widths: Readonly<Record<string, readonly number[]>> = {
    'decoder.1.weight': [256],
    'decoder.8.weight': [128],
    'decoder.14.weight': [64],
    'decoder.20.weight': [64],
  };
  return tinyDecoderTensors(vae, (name) => widths[name]);
}
