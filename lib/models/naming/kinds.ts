import type { RecognisedFile } from '../../pipeline/installation';
import type { TensorFile } from '../../weights';
import { loraEnding } from '../layers/lora-keys';

/** What recognising looks at: names without what tools put before them, shapes, and the GGUF's word. */
export interface Contents {
  readonly names: readonly string[];
  /** `general.architecture` of a GGUF file. */
  readonly architecture: string | undefined;
  /** Whether any name matches. */
  has(pattern: RegExp): boolean;
  /** Shape of the first tensor whose name matches. */
  shape(pattern: RegExp): readonly number[] | undefined;
}

const prefix =
  /^(base_model\.model\.|model\.|diffusion_model\.|transformer\.|text_encoder\.|vae\.|first_stage_model\.)/;

/** @param files one file, or the shards of one */
function contentsOf(files: readonly TensorFile[]): Contents {
  const shapes = new Map<string, readonly number[]>();
  for (const { tensors } of files) {
    for (const [name, { shape }] of tensors) shapes.set(bare(name), shape);
  }
  const names = [...shapes.keys()];
  return {
    names,
    architecture: files[0]?.metadata.get('general.architecture'),
    has: (pattern) => names.some((name) => pattern.test(name)),
    shape(pattern) {
      const name = names.find((candidate) => pattern.test(candidate));
      return name === undefined ? undefined : shapes.get(name);
    },
  };
}

function bare(name: string): string {
  const rest = name.replace(prefix, '');
  return rest === name ? name : bare(rest);
}

/** Tells what files are by what they contain; null where it does not know. */
export type Recogniser = (contents: Contents) => RecognisedFile | null;

/** Recognises the shards of one weight file by their tensors, by the first of some rules that knows them. */
export function recogniseBy(
  recognisers: readonly Recogniser[],
  files: readonly TensorFile[],
): RecognisedFile {
  const contents = contentsOf(files);
  for (const recogniser of recognisers) {
    const kind = recogniser(contents);
    if (kind) return kind;
  }
  return { name: '', component: null };
}

/** A file that is no part of the model. */
export const foreign = (name: string): RecognisedFile => ({ name, component: null });

/** Of other adapters, which are not read. */
const otherAdapter = /^lora_unet_|\.(hada_w1_a|lokr_w1|dora_scale)$/;

/** A LoRA of whatever model. */
export function lora(contents: Contents): RecognisedFile | null {
  return contents.has(loraEnding) || contents.has(otherAdapter) ? foreign('a LoRA') : null;
}

/** Architectures that GGUF files of image and video models name. */
const pictureModels = new Set(
  'flux sd1 sdxl sd3 aura hidream cosmos ltxv hyvid lumina2 qwen_image pig'.split(' '),
);

/** A GGUF file whose tensors tell nothing, by what it says itself: tools write any architecture there. */
export function namedByItself({ architecture, has }: Contents): RecognisedFile | null {
  if (architecture === undefined) return null;
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

/** Models of other kinds. */
export function byMark(contents: Contents): RecognisedFile | null {
  const mark = marks.find(([pattern]) => contents.has(pattern));
  return mark ? foreign(mark[1]) : null;
}
