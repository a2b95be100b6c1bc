import type { Contents } from '../../naming/contents';
import {
  byMark,
  type FileKind,
  foreign,
  lora,
  namedByItself,
  type Recogniser,
} from '../../naming/kinds';
import { umt5 } from '../../umt5/naming';

/** A shard may hold no more than the end of a block. */
const transformerBlock =
  /^(vace_)?blocks\.\d+\.(self_attn|cross_attn|attn1|attn2|ffn\.(net\.)?\d|norm3|modulation|scale_shift_table)\b/;
const transformerEnds = /^(time_projection\.1|condition_embedder\.time_proj)\.weight$/;
/** Tensors that show the transformer's width, and on which axis. */
const widths: readonly (readonly [RegExp, number])[] = [
  [/^blocks\.\d+\.(self_attn|cross_attn|attn1|attn2)\.norm_[qk]\.weight$/, 0],
  [/^blocks\.\d+\.ffn\.(2|net\.2)\.(weight|bias)$/, 0],
  [/^blocks\.\d+\.(modulation|scale_shift_table)$/, -1],
  [/^patch_embedding\.(weight|bias)$/, 0],
  [transformerEnds, -1],
];

/** Wan's transformers; the widths tell them apart. */
function wanTransformer(contents: Contents): FileKind | null {
  if (!contents.has(transformerBlock) && !contents.has(transformerEnds)) return null;
  const [width] = widths.flatMap(([name, axis]) => contents.shape(name)?.at(axis) ?? []);
  const patch = contents.shape(/^patch_embedding\.weight$/);
  // A patch is 1·2·2 in all of them. Some GGUF files join the kernel's dimensions.
  const inputs =
    patch && width ? patch.reduce((product, n) => product * n, 1) / (4 * width) : undefined;
  const vace = contents.has(/^vace_/) ? ' VACE' : '';
  const image = contents.has(
    /\.(k_img|v_img|add_k_proj|add_v_proj)\.|^img_emb\.|\.image_embedder\./,
  );
  if (width === 5120) {
    if (image) return foreign(`the transformer of Wan2.1-I2V-14B${vace}`);
    if (inputs === 36) return foreign('a transformer of Wan2.2-I2V-A14B');
    return foreign(`a transformer of Wan 14B${vace} (Wan2.1-14B or Wan2.2-A14B)`);
  }
  if (width === 1536) return foreign(`the transformer of Wan2.1${vace}-1.3B`);
  if (vace) return foreign('a VACE transformer of Wan2.2');
  if (width === 3072 && Number.isInteger(inputs) && inputs !== 48) {
    return foreign(`a variant of the Wan2.2-5B transformer with ${inputs} input channels`);
  }
  return { name: 'a transformer of Wan2.2-TI2V', component: 'transformer' };
}

const nestedVae =
  /^encoder\.downsamples\.\d+\.downsamples\.|^decoder\.upsamples\.\d+\.upsamples\.|^encoder\.down_blocks\.\d+\.(resnets|downsampler)\.|^decoder\.up_blocks\.\d+\.upsampler\./;
const flatVae =
  /^encoder\.downsamples\.\d+\.(residual|resample|shortcut|time_conv)|^decoder\.upsamples\.\d+\.(residual|resample|shortcut|time_conv)|^encoder\.down_blocks\.\d+\.(norm1|conv1|resample)\.|^decoder\.up_blocks\.\d+\.upsamplers\.\d+\.(resample|time_conv)/;

/** Wan's VAEs: three-dimensional kernels; the one of Wan2.1 has 16 latent channels. */
function wanVae(contents: Contents): FileKind | null {
  const kernel = contents.shape(/^decoder\.(conv1|conv_in)\.weight$/);
  const latent =
    (kernel?.length === 5 ? kernel[1] : undefined) ??
    contents.shape(/^(conv2|post_quant_conv)\.weight$/)?.at(0);
  const nested = contents.has(nestedVae);
  const flat = contents.has(flatVae);
  if (!nested && !flat) return null;
  if (kernel?.length === 4) return null;
  if (flat || latent === 16) return foreign('the VAE of Wan2.1 with 16 latent channels');
  return { name: 'the VAE of Wan2.2', component: 'vae' };
}

/** Tiny autoencoders: numbered layers; their first one tells which latents they are for. */
function tinyDecoder(contents: Contents): FileKind | null {
  if (!contents.has(/^decoder\.\d+\.conv\.\d+\.weight$/)) return null;
  const first = contents.shape(/^decoder\.[01]\.weight$/);
  if (first?.length !== 4) return null;
  if (first[1] === 48) return { name: 'a tiny decoder of Wan2.2', component: 'tiny_decoder' };
  return foreign(`a tiny decoder for latents of ${first[1]} channels, not 48`);
}

/** In order: what a file says of itself, what changes other weights, our own kinds, all others. */
export const kinds: readonly Recogniser[] = [
  namedByItself(['wan', 't5encoder']),
  lora,
  wanTransformer,
  umt5,
  wanVae,
  tinyDecoder,
  byMark,
];
