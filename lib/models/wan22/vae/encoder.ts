import { at } from '../../../contract';
import type { Backend } from '../../../gpu';
import type { VaeConfig } from '../config';
import { openImages } from './images';
import { encoderFrame } from './network';
import { foldPixels } from './pixels';
import type { VaeCheckpoint, VaeLoadOptions } from './weights';

/** Planar RGB [3, height, width] in −1…1; sizes are multiples of the VAE's spatial factor. */
export interface PlanarImage {
  readonly data: Float32Array;
  readonly width: number;
  readonly height: number;
}

/**
 * Encodes the first frame of a clip. It has no past, so of every 3×3×3 kernel only the last time tap
 * sees anything and the encoder is a 2-D network (`network.ts`), in f32. Everything is freed when it returns or throws.
 *
 * @returns latent [z, 1, H/16, W/16] in model space: (mean of the moments − latents_mean) / latents_std
 * @throws TypeError when the image has another size than it says or one that the VAE cannot take
 */
export async function encodeFirstFrame(
  backend: Backend,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  image: PlanarImage,
  options: VaeLoadOptions = {},
): Promise<Float32Array<ArrayBuffer>> {
  const { data, width, height } = image;
  const factor = config.scale_factor_spatial;
  if (data.length !== 3 * width * height || width % factor !== 0 || height % factor !== 0) {
    throw new TypeError(`not an image in steps of ${factor} pixels: ${width}×${height}`);
  }
  const graph = encoderFrame(config, height / factor, width / factor);
  const images = await openImages(backend, [graph], checkpoint, { ...options, storage: 'f32' });
  try {
    const folded = foldPixels(data, height, width, config.patch_size, 'column-row');
    const { value: mean } = await images.frames(graph, { image: folded }).next();
    if (!mean) throw new TypeError('the encoder has no result');
    return normalised(mean, config);
  } finally {
    images.dispose();
  }
}

/** [h·w, z] in the VAE's space → [z, h·w] in the model's. */
function normalised(moments: Float32Array, config: VaeConfig): Float32Array<ArrayBuffer> {
  const { latents_mean: mean, latents_std: std, z_dim: z } = config;
  const pixels = moments.length / z;
  const latent = new Float32Array(moments.length);
  for (let c = 0; c < z; c++) {
    const [shift, scale] = [at(mean, c), at(std, c)];
    for (let i = 0; i < pixels; i++) {
      latent[c * pixels + i] = ((moments[i * z + c] as number) - shift) / scale;
    }
  }
  return latent;
}
