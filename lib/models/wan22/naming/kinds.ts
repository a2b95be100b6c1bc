import type { Contents } from './contents';
import type { FileKind } from './recognise';

type Recogniser = (contents: Contents) => FileKind | null;

const foreign = (name: string): FileKind => ({ name, component: null });

const loraName =
  /^lora_unet_|\.(lora_[AB]|lora_up|lora_down|lora\.up|lora\.down)(\.default)?\.weight$|\.(diff|diff_b|diff_m|alpha)$|\.(hada_w1_a|lokr_w1|dora_scale)$/;

function lora(contents: Contents): FileKind | null {
  return contents.has(loraName) ? foreign('a LoRA') : null;
}

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

const t5Block =
  /^encoder\.block\.\d+\.layer\.|^enc\.blk\.\d+\.|^blocks\.\d+\.(attn\.[qkvo]|pos_embedding\.embedding|ffn\.gate\.0|ffn\.fc[12])\./;
const t5Decoder = /^decoder\.block\.\d+\.|^dec\.blk\.\d+\./;
const t5Vocabulary = /^(shared|encoder\.embed_tokens|token_embd|token_embedding)\.weight$/;
/** Token counts of the public T5 families. */
const t5Families: Readonly<Record<number, string>> = { 32128: 'T5', 250112: 'mT5' };

/** T5 and its kin: the encoder alone is ours, and its vocabulary tells which. */
function t5(contents: Contents): FileKind | null {
  if (!contents.has(t5Block) && !contents.has(t5Decoder)) {
    // A shard may hold nothing but the embedding.
    if (contents.names.every((name) => t5Vocabulary.test(name)) && contents.names.length > 0) {
      return { name: 'a text encoder', component: 'text_encoder' };
    }
    return null;
  }
  const vocabulary = contents.shape(t5Vocabulary)?.at(0);
  const family = vocabulary === undefined ? undefined : t5Families[vocabulary];
  if (contents.has(t5Decoder)) {
    return foreign(`a whole ${family ?? 'T5'} text model with its decoder`);
  }
  if (family) return foreign(`a ${family} text encoder, not a UMT5 one`);
  return { name: 'a UMT5 text encoder', component: 'text_encoder' };
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

/** Architectures that GGUF files of image and video models name. */
const pictureModels = new Set(
  'flux sd1 sdxl sd3 aura hidream cosmos ltxv hyvid lumina2 qwen_image pig'.split(' '),
);
const ours = new Set(['wan', 't5encoder']);

/** A GGUF file that says itself that it is something else. */
function namedByItself({ architecture, has }: Contents): FileKind | null {
  if (architecture === undefined || ours.has(architecture)) return null;
  if (architecture === 't5') return foreign('a whole T5 text model with its decoder');
  if (pictureModels.has(architecture))
    return foreign(`another image or video model (${architecture})`);
  if (has(/^(blk\.\d+\.|token_embd\.weight$)/)) return foreign(`a text model (${architecture})`);
  return null;
}

/** Models that are recognised by a single name. */
const marks: readonly (readonly [RegExp, string])[] = [
  [
    /^(double_blocks|single_blocks)\.\d+\.|^single_transformer_blocks\.\d+\./,
    'a Flux or Hunyuan transformer',
  ],
  [/^joint_blocks\.\d+\./, 'a Stable Diffusion 3 transformer'],
  [/^(input_blocks|output_blocks)\.\d+\./, 'a Stable Diffusion model'],
  [/^(down_blocks|up_blocks)\.\d+\.(attentions|resnets)\./, 'a Stable Diffusion model'],
  [/^(patchify_proj|caption_projection)\./, 'an LTX-Video or PixArt transformer'],
  [/^transformer_blocks\.\d+\./, 'a transformer of another image or video model'],
  [
    /^(encoder|decoder)\.(down|up|mid|down_blocks|up_blocks|mid_block)\./,
    'a VAE of an image model',
  ],
  [/^(text_model|visual|vision_model)\./, 'a CLIP model'],
  [
    /^(layers|h)\.\d+\.(self_attn|attn|mlp|input_layernorm)\.|^blk\.\d+\.|^language_model\./,
    'a text model',
  ],
];

function byMark(contents: Contents): FileKind | null {
  const found = marks.find(([pattern]) => contents.has(pattern));
  return found ? foreign(found[1]) : null;
}

/** In order: what a file says of itself, what changes other weights, our own kinds, all others. */
export const kinds: readonly Recogniser[] = [
  namedByItself,
  lora,
  wanTransformer,
  t5,
  wanVae,
  tinyDecoder,
  byMark,
];
