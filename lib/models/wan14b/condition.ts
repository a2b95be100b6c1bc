import type { Backend } from '../../gpu';
import type { KeyFrame } from '../../pipeline/key-frames';
import { type Frame, latentFrames } from '../../pipeline/latents';
import { encodeClip } from '../wan/vae';
import type { VaeCheckpoint, VaeLoadOptions } from '../wan/vae/weights';
import { maskChannels, type VideoConfig } from './config';

/**
 * What a clip is conditioned by: the latents of a clip that shows the given pictures and grey everywhere else, and
 * before them a mask of 4 channels. Channel c of latent frame f is 1 where frame 4(f − 1) + 1 + c is given; all four
 * of latent frame 0 are the first frame's (`prepare_latents` of diffusers' `WanImageToVideoPipeline`).
 *
 * @param images in the order of their frames; the first frame is one of them
 * @param frames of the clip
 * @returns [4 + z, F, h, w]
 */
export async function encodeCondition(
  backend: Backend,
  { vae }: VideoConfig,
  checkpoint: VaeCheckpoint,
  images: readonly KeyFrame[],
  frames: number,
  options: VaeLoadOptions,
): Promise<Float32Array> {
  const { scale_factor_temporal: stride } = vae;
  const count = latentFrames(frames, stride);
  const pictures = new Map<number, Frame>(images.map(({ frame, image }) => [frame, image]));
  const latents = await encodeClip(backend, vae, checkpoint, pictures, count, options);
  const plane = latents.length / (vae.z_dim * count);
  const condition = new Float32Array((maskChannels + vae.z_dim) * count * plane);
  for (const frame of pictures.keys()) {
    const latent = Math.ceil(frame / stride);
    for (let c = 0; c < maskChannels; c++) {
      if (frame > 0 && c !== (frame - 1) % stride) continue;
      const start = (c * count + latent) * plane;
      condition.fill(1, start, start + plane);
    }
  }
  condition.set(latents, maskChannels * count * plane);
  return condition;
}
