import { KinoraError } from '../../contract';
import type { RecognisedFile } from '../../pipeline/installation';
import { type Checkpoint, checkpointOf, type TensorFile } from '../../weights';
import { type ComponentTensors, canonicalise, checkArchitecture } from '../naming/canonicalise';
import { type ComponentArchitecture, diffusersNaming } from '../naming/component';
import {
  byMark,
  type Contents,
  foreign,
  lora,
  namedByItself,
  type Recogniser,
  recogniseBy,
} from '../naming/kinds';
import { textEncoderArchitecture, umt5 } from '../umt5/text-encoder-naming';
import { expertOfPath, isExpert } from './experts';
import { imageEncoderTensors } from './image-encoder/image-encoder';
import type { TransformerFacts, WanKind } from './kinds';
import type { ModelConfig, VideoConfig } from './model-config';
import { originalTransformerName, originalVaeName } from './original-names';
import type { ConvertedComponent } from './recipes';
import {
  lightDecoderTensors,
  tinyDecoderTensors,
  transformerTensors,
  vaeTensors,
} from './wan-tensors';

/** The components whose tensors have names and shapes of their own; an adapter has those of a LoRA. */
export type WeightComponent = ConvertedComponent | 'light_decoder' | 'tiny_decoder';

/** References may come without a text encoder. */
type PartsConfig = VideoConfig & Partial<ModelConfig>;

/** A component by its configuration, as weight files may have it. */
function architectureOf(component: WeightComponent, config: PartsConfig): ComponentArchitecture {
  const { transformer, vae, image_encoder: image, text_encoder: text } = config;
  switch (component) {
    case 'text_encoder':
      if (!text) throw new TypeError('the model has no text encoder');
      return textEncoderArchitecture(text);
    case 'transformer':
    case 'transformer_2':
      return {
        name: 'transformer',
        tensors: () => transformerTensors(transformer),
        namings: [diffusersNaming, { name: 'original', rename: originalTransformerName }],
        prefixes: ['', 'model.diffusion_model.', 'diffusion_model.', 'model.', 'transformer.'],
      };
    case 'vae':
      return {
        name: 'VAE',
        tensors: () => vaeTensors(vae),
        namings: [
          diffusersNaming,
          { name: 'original', rename: (name) => originalVaeName(name, vae) },
        ],
        prefixes: ['', 'model.', 'vae.', 'first_stage_model.'],
      };
    case 'image_encoder':
      if (!image) throw new TypeError('the model has no image encoder');
      return {
        name: 'image encoder',
        tensors: () => imageEncoderTensors(image),
        namings: [{ name: 'transformers', rename: (name) => name }],
        prefixes: ['', 'vision_model.', 'image_encoder.vision_model.'],
        // The last layer and what is behind it are not read.
        harmless: [
          /^encoder\.layers\.\d+\./,
          /^post_layernorm\./,
          /visual_projection\./,
          /position_ids$/,
        ],
      };
    case 'light_decoder':
      return {
        name: 'light decoder',
        tensors: (shapeOf) => lightDecoderTensors(vae, shapeOf),
        namings: [diffusersNaming],
        prefixes: [''],
        // The VAE itself encodes.
        harmless: [/^(encoder|quant_conv)\./, projectionHeads],
      };
    case 'tiny_decoder':
      return {
        name: 'tiny decoder',
        // It has no configuration: its widths come from its own tensors.
        tensors: (shapeOf) => tinyDecoderTensors(vae, shapeOf),
        namings: [diffusersNaming],
        prefixes: ['', 'model.'],
        // Only the decoding half of a tiny autoencoder is used.
        harmless: [/^encoder\./],
      };
  }
}

/**
 * The tensors of a component by diffusers' names, checked against its architecture.
 *
 * @param files one file, or the shards of one; only their headers are used
 * @throws KinoraError `MODEL_WRONG_KIND` when the files are recognised as something else, and as {@link canonicalise}
 * and {@link checkArchitecture} do
 */
export function locateComponent(
  component: WeightComponent,
  files: readonly TensorFile[],
  config: PartsConfig,
): ComponentTensors {
  const architecture = architectureOf(component, config);
  const { name, component: actual } = recogniseBy(recognisers(config.kind), files);
  // A file that is not recognised passes; the transformers of a pair look alike.
  if (name !== '' && actual !== (isExpert(component) ? 'transformer' : component)) {
    const label = files.map(({ file }) => file.name).join(', ');
    throw new KinoraError(
      'MODEL_WRONG_KIND',
      `${label} is ${name}, but the ${architecture.name} of a ${config.kind.name} model is wanted.`,
    );
  }
  const located = canonicalise(architecture, files);
  checkArchitecture(architecture, located);
  return located;
}

/** A component's files as a checkpoint. @throws KinoraError as {@link locateComponent} does */
export function openComponent(...of: Parameters<typeof locateComponent>): Checkpoint {
  const [component, , config] = of;
  return checkpointOf(architectureOf(component, config).name, locateComponent(...of));
}

/** Recognises a weight file by its tensors, whatever it is called; one of a pair of transformers by its path. */
export function recognise(kind: WanKind, file: TensorFile): RecognisedFile {
  const recognised = recogniseBy(recognisers(kind), [file]);
  const { name } = recognised;
  if (recognised.component !== 'transformer' || !kind.varies || name === wan21Transformer) {
    return recognised;
  }
  const component = expertOfPath(file.file.name);
  // A shard may not tell which model it is of.
  if (component) return { ...recognised, component };
  if (name !== a14bTransformer) return recognised;
  const remedy = 'Put "high" or "low" into the name of the file or of its folder.';
  return { name: `${name}: for high or for low noise`, component, remedy };
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
function wanTransformer(contents: Contents, own: WanKind): RecognisedFile | null {
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
  const facts = { width, inputs, image };
  const name = transformerName(facts, vace);
  return !vace && own.takes(facts) ? { name, component: 'transformer' } : foreign(name);
}

/** How messages name the transformers of the models with 14 billion parameters. */
const wan21Transformer = 'the transformer of Wan2.1-I2V-14B';
const a14bTransformer = 'a transformer of Wan2.2-I2V-A14B';

function transformerName({ width, inputs, image }: TransformerFacts, vace: string): string {
  if (width === 1536) return `the transformer of Wan2.1${vace}-1.3B`;
  if (width === 5120 || inputs === 36) {
    if (image) return `${wan21Transformer}${vace}`;
    if (inputs === 36) return a14bTransformer;
    return `a transformer of Wan 14B${vace} (Wan2.1-14B or Wan2.2-A14B)`;
  }
  if (vace) return 'a VACE transformer of Wan2.2';
  if (width === 3072 && Number.isInteger(inputs) && inputs !== 48) {
    return `a variant of the Wan2.2-5B transformer with ${inputs} input channels`;
  }
  return 'a transformer of Wan2.2-TI2V';
}

/** Several parts in one file, as ComfyUI saves checkpoints. */
function wholeCheckpoint(contents: Contents): RecognisedFile | null {
  const { has } = contents;
  const parts = [
    ...(has(transformerBlock) ? ['transformer'] : []),
    ...(has(/^(text_encoders|cond_stage_model)\./) || umt5(contents) ? ['text encoder'] : []),
    ...(has(nestedVae) || has(flatVae) ? ['VAE'] : []),
  ];
  if (parts.length < 2) return null;
  const name = `a checkpoint with ${parts.join(', ')} in one file`;
  return { ...foreign(name), remedy: 'Use a file of its own for each part.' };
}

const nestedVae =
  /^encoder\.downsamples\.\d+\.downsamples\.|^decoder\.upsamples\.\d+\.upsamples\.|^encoder\.down_blocks\.\d+\.(resnets|downsampler)\.|^decoder\.up_blocks\.\d+\.upsampler\./;
const flatVae =
  /^encoder\.downsamples\.\d+\.(residual|resample|shortcut|time_conv)|^decoder\.upsamples\.\d+\.(residual|resample|shortcut|time_conv)|^encoder\.down_blocks\.\d+\.(norm1|conv1|resample)\.|^decoder\.up_blocks\.\d+\.upsamplers\.\d+\.(resample|time_conv)/;

/** Only the training of a light decoder needed them. */
const projectionHeads = /^dynamic_feature_projection_heads\./;

/** Wan's VAEs: three-dimensional kernels; the one of Wan2.1 has 16 latent channels. */
function wanVae(contents: Contents, own: WanKind): RecognisedFile | null {
  const kernel = contents.shape(/^decoder\.(conv1|conv_in)\.weight$/);
  const latent =
    (kernel?.length === 5 ? kernel[1] : undefined) ??
    contents.shape(/^(conv2|post_quant_conv)\.weight$/)?.at(0);
  const nested = contents.has(nestedVae);
  const flat = contents.has(flatVae);
  if (!nested && !flat) return null;
  if (kernel?.length === 4) return null;
  const channels = flat || latent === 16 ? 16 : 48;
  if (contents.has(projectionHeads)) {
    const name = 'a light decoder of Wan2.2';
    return { name, component: own.latentChannels === channels ? 'light_decoder' : null };
  }
  const name = channels === 16 ? 'the VAE of Wan2.1 with 16 latent channels' : 'the VAE of Wan2.2';
  return { name, component: own.latentChannels === channels ? 'vae' : null };
}

/** Tiny autoencoders: numbered layers; their first one tells which latents they are for. */
function tinyDecoder(contents: Contents, own: WanKind): RecognisedFile | null {
  if (!contents.has(/^decoder\.\d+\.conv\.\d+\.weight$/)) return null;
  const first = contents.shape(/^decoder\.[01]\.weight$/);
  if (first?.length !== 4) return null;
  const { latentChannels: channels } = own;
  if (first[1] !== channels) {
    return foreign(`a tiny decoder for latents of ${first[1]} channels, not ${channels}`);
  }
  const version = channels === 48 ? 'Wan2.2' : 'Wan2.1';
  return { name: `a tiny decoder of ${version}`, component: 'tiny_decoder' };
}

/** The vision tower of CLIP, alone. */
function clipVision({ has }: Contents): RecognisedFile | null {
  if (!has(/^(vision_model\.)?embeddings\.class_embedding$/)) return null;
  return { name: 'the image encoder of Wan2.1', component: 'image_encoder' };
}

/** In order: adapters, Wan's kinds, a file's own description, all others. */
function recognisers(own: WanKind): readonly Recogniser[] {
  return [
    lora,
    wholeCheckpoint,
    (contents) => wanTransformer(contents, own),
    umt5,
    (contents) => wanVae(contents, own),
    (contents) => tinyDecoder(contents, own),
    ...(own.varies ? [clipVision] : []),
    namedByItself,
    byMark,
  ];
}
