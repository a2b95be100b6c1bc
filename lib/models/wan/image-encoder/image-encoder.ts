import { type Backend, CountingBackend, type DeviceBytes } from '../../../gpu';
import type { Compute, KernelChoice } from '../../../gpu/kernels';
import { type VisionTransformer, visionRows, visionTensors } from '../../../graph';
import type { Frame } from '../../../pipeline/latents';
import { bicubic, cutSquares, frameBytes, normalise } from '../../../pipeline/vision/squares';
import { VisionTower } from '../../../pipeline/vision/tower';
import type { Checkpoint } from '../../../weights';
import { zeroCheckpoint } from '../../layers/shape-checkpoint';
import type { TensorShapes } from '../../layers/tensor-shapes';
import type { ImageEncoderConfig } from './image-encoder-config';

/*
 * The vision tower of CLIP ViT-H (Radford et al., arXiv:2103.00020; `models/clip/modeling_clip.py` of
 * huggingface/transformers, whose tensor names these are). The features are what goes into its last layer: that one,
 * the norm behind it and the projection are never read. All in f32.
 */

const towerOf = (config: ImageEncoderConfig): VisionTransformer => ({
  imageSize: config.image_size,
  patchSize: config.patch_size,
  channels: config.hidden_size,
  // All but the last one.
  layers: config.num_hidden_layers - 1,
  heads: config.num_attention_heads,
  hidden: config.intermediate_size,
  epsilon: config.layer_norm_eps,
  patchBias: false,
  preNorm: true,
});

/** Rows of an image's features: one for each patch, and one of the class token before them. */
export const featureRows = (config: ImageEncoderConfig) => visionRows(towerOf(config));

/** The name of a tensor in CLIP's files. */
function clipName(name: string): string {
  if (name === 'class') return 'embeddings.class_embedding';
  if (name === 'positions') return 'embeddings.position_embedding.weight';
  return name
    .replace(/^patch\./, 'embeddings.patch_embedding.')
    .replace(/^pre_norm\./, 'pre_layrnorm.')
    .replace(/^layers\./, 'encoder.layers.')
    .replace(/\.norm([12])\./, '.layer_norm$1.')
    .replace(/\.(q|k|v|out)\./, '.self_attn.$1_proj.')
    .replace(/\.fc([12])\./, '.mlp.fc$1.');
}

/** Every tensor that is read. */
export function imageEncoderTensors(config: ImageEncoderConfig): TensorShapes {
  const { patch_size: p, hidden_size: d } = config;
  const shape = (name: string, dims: readonly number[]) =>
    name === 'patch.weight' ? [d, 3, p, p] : dims;
  return new Map(
    visionTensors(towerOf(config)).map(([name, dims]) => [clipName(name), shape(name, dims)]),
  );
}

const mean = [0.48145466, 0.4578275, 0.40821073];
const std = [0.26862954, 0.26130258, 0.27577711];

/**
 * A picture as the encoder sees it: brought to its square by PIL's bicubic filter, in bytes, and normalised.
 *
 * @returns [3, size, size]
 */
export function encoderPixels(
  picture: Frame,
  { image_size: size, crops }: ImageEncoderConfig,
): Float32Array {
  const fit = crops ? ('middle' as const) : ('stretch' as const);
  const preprocessing = { size, kernel: bicubic, fit, mean, std };
  return normalise(cutSquares(frameBytes(picture), preprocessing).values, preprocessing);
}

/**
 * Features of a picture, [R, D]: what the second to last layer gives. Layers are written one after another into the same
 * buffers; everything is freed when it returns or throws.
 *
 * @param pixels [3, size, size] of {@link encoderPixels}
 * @throws KinoraError as the checkpoint's reads do, `OUT_OF_MEMORY`; the signal's reason
 */
export async function encodeImage(
  backend: Backend,
  checkpoint: Checkpoint,
  config: ImageEncoderConfig,
  pixels: Float32Array,
  signal?: AbortSignal,
): Promise<Float32Array> {
  const read = (name: string) => checkpoint.read(clipName(name));
  const tower = await VisionTower.open(backend, towerOf(config), { read, signal });
  try {
    await tower.compute(pixels);
    return await backend.read(tower.x);
  } finally {
    tower.dispose();
  }
}

/**
 * Counts what {@link encodeImage} takes on a device: one layer tells the peak.
 *
 * @param compute the device that compiles the kernels; one without limits when absent
 * @throws Refusal where kernels of our own are to compute and do not
 */
export async function countImageEncoder(
  config: ImageEncoderConfig,
  kernels: KernelChoice | null,
  compute?: Compute | null,
): Promise<DeviceBytes> {
  const one = { ...config, num_hidden_layers: 2 };
  const backend = new CountingBackend(kernels, compute);
  const pixels = new Float32Array(3 * config.image_size ** 2);
  await encodeImage(backend, zeroCheckpoint(imageEncoderTensors(one), 'f32'), one, pixels);
  return backend.measured();
}
