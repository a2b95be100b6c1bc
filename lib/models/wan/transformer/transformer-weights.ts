import type { DeviceTensor, Scope } from '../../../gpu';
import type { Checkpoint } from '../../../weights';
import { type LayerData, namesUnder, type ReadOptions, readLayer } from '../../layers/layer-data';
import { freshMemory, LayerLoader, type Linear, type Placement } from '../../layers/linear';
import { maxPromptTokens } from '../../umt5/text-encoder-config';
import { type TransformerConfig, transformerDim } from '../config-schemas';
import { headRows } from '../tokens';
import { transformerTensors } from '../wan-tensors';
import { type BlockLinear, type BlockSpecs, blockLinears } from './transformer-network';

type Tensor = DeviceTensor<'float32'>;

/** One block's tensors, named as in the checkpoint. */
export interface BlockWeights {
  readonly linears: ReadonlyMap<BlockLinear, Linear>;
  readonly specs: BlockSpecs;
  readonly scaleShiftTable: Tensor; // [6, D]
  readonly attn1: { readonly normQ: Tensor; readonly normK: Tensor }; // [D] each
  readonly attn2: {
    readonly normQ: Tensor;
    readonly normK: Tensor;
    /** Of the image branch. */
    readonly normAddedK?: Tensor;
  };
  readonly norm2: { readonly weight: Tensor; readonly bias: Tensor };
}

/** The linear layers outside of the blocks, by their diffusers names. */
export const outerLinears = {
  patchEmbedding: 'patch_embedding',
  timeLinear1: 'condition_embedder.time_embedder.linear_1',
  timeLinear2: 'condition_embedder.time_embedder.linear_2',
  timeProjection: 'condition_embedder.time_proj',
  textLinear1: 'condition_embedder.text_embedder.linear_1',
  textLinear2: 'condition_embedder.text_embedder.linear_2',
  projOut: 'proj_out',
} as const;
export type OuterLinear = keyof typeof outerLinears;

/** Those of the features of an image. */
export const imageEmbedder = 'condition_embedder.image_embedder';
export const imageEmbedderLinears = {
  linear1: `${imageEmbedder}.ff.net.0.proj`,
  linear2: `${imageEmbedder}.ff.net.2`,
} as const;

/** The transformer's tensors outside of its blocks. They stay on the device. */
export interface TransformerWeights extends Readonly<Record<OuterLinear, Linear>> {
  readonly scaleShiftTable: Tensor; // [2, D]
  /** The columns of the patch embedding for what a clip is conditioned by, without a bias. */
  readonly conditionEmbedding?: Linear;
  readonly imageEmbedding?: {
    readonly linear1: Linear;
    readonly linear2: Linear;
    /** As the graph names them. */
    readonly norms: Readonly<Record<string, Tensor>>;
  };
}

/**
 * Uploads the tensors outside of the blocks: 2 % of the weights, always in f32.
 *
 * @throws KinoraError as the checkpoint's reads do
 */
export async function loadNonBlockWeights(
  scope: Scope,
  checkpoint: Checkpoint,
  config: TransformerConfig,
  options: ReadOptions,
): Promise<TransformerWeights> {
  const plain = { ...options, precision: 'f32' } as const;
  const expected = transformerTensors(config);
  const names = [...checkpoint.names()].filter(
    (name) => !name.startsWith('blocks.') && expected.has(name),
  );
  const data = await readLayer(checkpoint, names, new Set(), plain);
  const loader = new LayerLoader(freshMemory(scope), checkpoint, plain, data);
  const { projOut, patchEmbedding, ...others } = outerLinears;
  const linears: Partial<Record<OuterLinear, Linear>> = {};
  for (const [role, name] of Object.entries(others)) {
    linears[role as OuterLinear] = await loader.linear(name);
  }
  linears.projOut = await loader.linear(projOut, { rows: headRows(config) });
  const d = transformerDim(config);
  const [latent, condition] = [tokenWidth(config), conditionWidth(config)];
  const columns = (first: number, count: number) => ({ columns: { first, count } });
  linears.patchEmbedding = await loader.linear(patchEmbedding, columns(0, latent));
  return {
    ...(linears as Record<OuterLinear, Linear>),
    scaleShiftTable: await loader.tensor('scale_shift_table', [2, d]),
    ...(condition > 0 && {
      conditionEmbedding: await loader.linear(patchEmbedding, columns(latent, condition)),
    }),
    ...(config.image_dim && { imageEmbedding: await image(config.image_dim) }),
  };

  async function image(width: number) {
    const norms: Record<string, Tensor> = {};
    for (const [norm, size] of [
      ['norm1', width],
      ['norm2', d],
    ] as const) {
      for (const role of ['weight', 'bias']) {
        norms[`${norm}.${role}`] = await loader.tensor(`${imageEmbedder}.${norm}.${role}`, [size]);
      }
    }
    return {
      linear1: await loader.linear(imageEmbedderLinears.linear1),
      linear2: await loader.linear(imageEmbedderLinears.linear2),
      norms,
    };
  }
}

/** Reads a block's tensors together, in the form that is uploaded. */
export function readBlock(
  checkpoint: Checkpoint,
  config: TransformerConfig,
  index: number,
  options: ReadOptions,
): Promise<LayerData> {
  const prefix = `blocks.${index}.`;
  const names = namesUnder(checkpoint, transformerTensors(config), prefix);
  const weights = new Set(blockLinears(config).map((role) => `${prefix}${role}.weight`));
  return readLayer(checkpoint, names, weights, options);
}

/** Puts a block that was read on the device. */
export async function placeBlock(
  placement: Placement,
  checkpoint: Checkpoint,
  config: TransformerConfig,
  index: number,
  options: ReadOptions,
  data: LayerData,
): Promise<BlockWeights> {
  const loader = new LayerLoader(placement, checkpoint, options, data);
  const name = `blocks.${index}`;
  const d = transformerDim(config);
  const linears = new Map<BlockLinear, Linear>();
  for (const role of blockLinears(config)) {
    linears.set(role, await loader.linear(`${name}.${role}`));
  }
  const vector = (tensor: string) => loader.tensor(`${name}.${tensor}`, [d]);
  return {
    linears,
    specs: specsOf(linears),
    scaleShiftTable: await loader.tensor(`${name}.scale_shift_table`, [6, d]),
    attn1: {
      normQ: await vector('attn1.norm_q.weight'),
      normK: await vector('attn1.norm_k.weight'),
    },
    attn2: {
      normQ: await vector('attn2.norm_q.weight'),
      normK: await vector('attn2.norm_k.weight'),
      ...(config.image_dim && { normAddedK: await vector('attn2.norm_added_k.weight') }),
    },
    norm2: { weight: await vector('norm2.weight'), bias: await vector('norm2.bias') },
  };
}

function specsOf(linears: ReadonlyMap<BlockLinear, Linear>): BlockSpecs {
  return Object.fromEntries([...linears].map(([role, { spec }]) => [role, spec]));
}

/*
 * The tensors of a clip on the device beside those of its executor, by their sizes; all are f32. A run takes what is
 * listed here, and the memory plan counts it.
 */

/** Sizes for a clip of so many tokens. */
export function clipSizes(
  config: TransformerConfig,
  tokens: number,
  {
    guided,
    reusesBlocks = false,
    imageRows = 0,
  }: {
    readonly guided: boolean;
    readonly reusesBlocks?: boolean;
    readonly imageRows?: number | undefined;
  },
) {
  const d = transformerDim(config);
  const rows = [tokens, d];
  const condition = conditionWidth(config);
  const angles = [tokens, config.attention_head_dim / 2];
  const branches = guided ? [rows, rows] : [rows];
  return {
    /** The residual streams, by guidance branch. */
    streams: branches,
    /** What all blocks together added, by branch; none where no step reuses it. */
    residuals: reusesBlocks ? branches : [],
    rotary: { cos: angles, sin: angles },
    /** What the clip is conditioned by beside its latents, and the embedded image. */
    conditions: {
      ...(condition > 0 && { condition: [tokens, condition] }),
      ...(imageRows > 0 && { image: [imageRows, d] }),
    },
  };
}

/** Sizes for a timestep. */
export function timeSizes(config: TransformerConfig) {
  const d = transformerDim(config);
  return { sinusoid: [1, config.freq_dim], temb: [1, d], modulation: [6, d] };
}

/** Sizes for a prompt of so many tokens: rows of them, and one for all that are empty. */
export function textSizes(config: TransformerConfig, tokens: number) {
  const rows = tokens + (tokens < maxPromptTokens ? 1 : 0);
  return { embeds: [rows, config.text_dim], context: [rows, transformerDim(config)] };
}

/** Values of a token. */
export function tokenWidth({ out_channels, patch_size: [, ph, pw] }: TransformerConfig): number {
  return out_channels * ph * pw;
}

/** Values of a token that it is conditioned by, from channels behind those of the latents. */
export function conditionWidth(config: TransformerConfig): number {
  const { in_channels, out_channels } = config;
  return (tokenWidth(config) * (in_channels - out_channels)) / out_channels;
}
