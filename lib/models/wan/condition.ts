import type { Backend } from '../../gpu';
import { type KeyFrame, latentOf } from '../../pipeline/key-frames';
import { type Frame, latentFrames } from '../../pipeline/latents';
import type { NamedTensors } from '../../pipeline/model';
import type { Checkpoint } from '../../weights';
import { encodeImage, encoderPixels } from './image-encoder/image-encoder';
import { maskChannels, type VideoConfig } from './model-config';
import { encodeClip, encodeFirstFrame } from './vae';

/** Names of what a clip is conditioned by. */
export const conditionName = 'condition';
export const featuresName = 'features';
const framePrefix = 'latent.';

/** Name of a given latent frame among the tensors of a clip's pictures. */
export function givenName(frame: number): string {
  return framePrefix + frame;
}

/** The given latent frames of a clip in ascending order, each [C, 1, h, w]. */
export function givenFrames(pictures: NamedTensors): { frame: number; latent: Float32Array }[] {
  return Object.entries(pictures)
    .filter(([name]) => name.startsWith(framePrefix))
    .map(([name, latent]) => ({ frame: Number(name.slice(framePrefix.length)), latent }))
    .sort((a, b) => a.frame - b.frame);
}

/** Dependencies of the encoding of pictures. */
interface PictureEncoders {
  readonly config: Pick<VideoConfig, 'kind' | 'vae' | 'image_encoder'>;
  readonly vae: Checkpoint;
  readonly imageEncoder: Checkpoint | null;
}

/** What a clip that shows given pictures is denoised under: see {@link VideoModel.encodeImages}. */
export function encodePictures(
  backend: Backend,
  encoders: PictureEncoders,
  images: readonly KeyFrame[],
  frames: number,
  signal?: AbortSignal,
  held: readonly Float32Array[] = [],
): Promise<NamedTensors> {
  return encoders.config.kind.pictures === 'frames'
    ? encodeGiven(backend, encoders, images, held, signal)
    : encodeCondition(backend, encoders, images, frames, signal);
}

/** Each picture alone, as a first frame: `latent.N` is latent frame N, [C, 1, h, w]; held frames as they are. */
async function encodeGiven(
  backend: Backend,
  { config: { vae: config }, vae }: PictureEncoders,
  images: readonly KeyFrame[],
  held: readonly Float32Array[],
  signal: AbortSignal | undefined,
): Promise<NamedTensors> {
  const latents = new Map<Frame, Float32Array>();
  const named = Object.fromEntries(held.map((latent, f) => [givenName(f), latent]));
  for (const { frame, image } of images) {
    const latent =
      latents.get(image) ?? (await encodeFirstFrame(backend, config, vae, image, { signal }));
    latents.set(image, latent);
    named[givenName(latentOf(frame, config.scale_factor_temporal))] = latent;
  }
  return named;
}

/**
 * `condition` [4 + z, F, h, w]: the latents of a clip that shows the given pictures and grey everywhere else, and
 * before them a mask of 4 channels. Channel c of latent frame f is 1 where frame 4(f − 1) + 1 + c is given; all four
 * of latent frame 0 are the first frame's (`prepare_latents` of diffusers' `WanImageToVideoPipeline`). `features` of
 * the first picture where there is an image encoder.
 */
async function encodeCondition(
  backend: Backend,
  { config, vae, imageEncoder }: PictureEncoders,
  images: readonly KeyFrame[],
  frames: number,
  signal: AbortSignal | undefined,
): Promise<NamedTensors> {
  const { scale_factor_temporal: stride, z_dim } = config.vae;
  const count = latentFrames(frames, stride);
  const pictures = new Map<number, Frame>(images.map(({ frame, image }) => [frame, image]));
  const latents = await encodeClip(backend, config.vae, vae, pictures, count, { signal });
  const plane = latents.length / (z_dim * count);
  const condition = new Float32Array((maskChannels + z_dim) * count * plane);
  for (const frame of pictures.keys()) {
    const latent = latentOf(frame, stride);
    for (let c = 0; c < maskChannels; c++) {
      if (frame > 0 && c !== (frame - 1) % stride) continue;
      const start = (c * count + latent) * plane;
      condition.fill(1, start, start + plane);
    }
  }
  condition.set(latents, maskChannels * count * plane);
  const [first] = images;
  const { image_encoder: encoder } = config;
  if (!encoder || !imageEncoder || !first) return { [conditionName]: condition };
  const pixels = encoderPixels(first.image, encoder);
  const features = await encodeImage(backend, imageEncoder, encoder, pixels, signal);
  return { [conditionName]: condition, [featuresName]: features };
}
