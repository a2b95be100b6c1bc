import type { DeviceTensor, Scope } from '../../gpu';
import type { Checkpoint } from '../../weights/checkpoint';
import { type TransformerConfig, transformerDim } from '../config';
import { LayerLoader, type Linear, type LoaderOptions } from '../layers';
import { headRows } from '../tokens';
import { type BlockLinear, type BlockSpecs, blockLinears } from './graphs';

type Tensor = DeviceTensor<'float32'>;

/** One block's tensors, named as in the checkpoint. */
export interface BlockWeights {
  readonly linears: Readonly<Record<BlockLinear, Linear>>;
  readonly specs: BlockSpecs;
  readonly scaleShiftTable: Tensor; // [6, D]
  readonly attn1: { readonly normQ: Tensor; readonly normK: Tensor }; // [D] each
  readonly attn2: { readonly normQ: Tensor; readonly normK: Tensor };
  readonly norm2: { readonly weight: Tensor; readonly bias: Tensor };
}

/** All of the transformer's tensors on the device. */
export interface TransformerWeights {
  readonly patchEmbedding: Linear;
  readonly timeLinear1: Linear;
  readonly timeLinear2: Linear;
  readonly timeProjection: Linear;
  readonly textLinear1: Linear;
  readonly textLinear2: Linear;
  readonly blocks: readonly BlockWeights[];
  readonly scaleShiftTable: Tensor; // [2, D]
  readonly projOut: Linear;
}

/**
 * Uploads the transformer into `scope`. The linears of the blocks (98 % of the weights) take the
 * wanted precision; everything around them stays f32.
 *
 * @throws KinoraError as the checkpoint's reads do
 */
export async function loadTransformerWeights(
  scope: Scope,
  checkpoint: Checkpoint,
  config: TransformerConfig,
  options: LoaderOptions,
): Promise<TransformerWeights> {
  const loader = new LayerLoader(scope, checkpoint, options);
  const plain = { precision: 'f32' } as const;
  const embedder = 'condition_embedder';
  const around = {
    patchEmbedding: await loader.linear('patch_embedding', plain),
    timeLinear1: await loader.linear(`${embedder}.time_embedder.linear_1`, plain),
    timeLinear2: await loader.linear(`${embedder}.time_embedder.linear_2`, plain),
    timeProjection: await loader.linear(`${embedder}.time_proj`, plain),
    textLinear1: await loader.linear(`${embedder}.text_embedder.linear_1`, plain),
    textLinear2: await loader.linear(`${embedder}.text_embedder.linear_2`, plain),
    scaleShiftTable: await loader.tensor('scale_shift_table', [2, transformerDim(config)]),
    projOut: await loader.linear('proj_out', { ...plain, rows: headRows(config) }),
  };
  const blocks: BlockWeights[] = [];
  for (let index = 0; index < config.num_layers; index++) {
    blocks.push(await loadBlock(loader, config, `blocks.${index}`));
  }
  return { ...around, blocks };
}

async function loadBlock(
  loader: LayerLoader,
  config: TransformerConfig,
  name: string,
): Promise<BlockWeights> {
  const d = transformerDim(config);
  const linears: Partial<Record<BlockLinear, Linear>> = {};
  for (const role of blockLinears) linears[role] = await loader.linear(`${name}.${role}`);
  const complete = linears as Record<BlockLinear, Linear>;
  const vector = (tensor: string) => loader.tensor(`${name}.${tensor}`, [d]);
  return {
    linears: complete,
    specs: Object.fromEntries(
      blockLinears.map((role) => [role, complete[role].spec]),
    ) as BlockSpecs,
    scaleShiftTable: await loader.tensor(`${name}.scale_shift_table`, [6, d]),
    attn1: {
      normQ: await vector('attn1.norm_q.weight'),
      normK: await vector('attn1.norm_k.weight'),
    },
    attn2: {
      normQ: await vector('attn2.norm_q.weight'),
      normK: await vector('attn2.norm_k.weight'),
    },
    norm2: { weight: await vector('norm2.weight'), bias: await vector('norm2.bias') },
  };
}
