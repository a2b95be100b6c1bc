import type { Backend } from '../../gpu';
import { softClamp, tinyDecoderGraphs } from './tiny-decoder/tiny-decoder-network';
import { tinyConfig, tinyWeights } from './tiny-decoder/tiny-decoder-weights';
import { type ClipDecoder, FrameDecoder, type VaeDecoderOptions } from './vae/decoder';
import { channelsLast } from './vae/pixels';
import { openImages } from './vae/vae-executor';
import type { VaeCheckpoint } from './vae/vae-weights';

/**
 * Loads a tiny decoder: TAEHV's for Wan2.1 and Wan2.2, base or super (tiny-decoder/README.md). It takes model-space latents
 * without mean and std, as the VAE's decoder does, and gives RGB in 0…1. Variant and widths come from the file's own
 * tensors.
 *
 * @param checkpoint tensors by the original names, `decoder.N…`
 * @throws KinoraError `TENSOR_MISSING` when the file is neither variant, `TENSOR_SHAPE`, `OUT_OF_MEMORY`
 * @throws Refusal where a kernel fails; nothing stays allocated then
 */
export async function createTinyDecoder(
  backend: Backend,
  checkpoint: VaeCheckpoint,
  options: VaeDecoderOptions,
): Promise<ClipDecoder> {
  const config = tinyConfig(checkpoint);
  const { variant, inputs, outputs } = config;
  // Pixels of a block that is folded into channels; three stages double the pixels of a latent position.
  const patch = Math.sqrt(outputs / 3);
  const graphs = tinyDecoderGraphs(config, options);
  const weights = tinyWeights(checkpoint, config);
  const network = {
    graphs,
    input: (latentFrame: Float32Array) => {
      const limited = variant === 'base' ? latentFrame.map(softClamp) : latentFrame;
      return channelsLast(
        limited,
        () => 1,
        () => 0,
        inputs,
      );
    },
    scale: 8 * patch,
    patch,
    order: 'row-column',
    range: [0, 1],
  } as const;
  return new FrameDecoder(network, options, await openImages(backend, graphs, weights, options));
}
