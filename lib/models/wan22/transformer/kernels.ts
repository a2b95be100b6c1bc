import type { Backend, KernelSet } from '../../../gpu';
import { hasAttention } from '../../../gpu/kernels';
import type { Graph } from '../../../graph';
import { type TransformerConfig, transformerDim } from '../config';
import type { AdaptedBlock } from './blocks';
import * as network from './network';
import type { TransformerWeights } from './weights';

/** The kernels for a transformer; null where the runtime has to compute it. */
export function transformerKernels(backend: Backend, config: TransformerConfig): KernelSet | null {
  const choice = backend.compute && backend.kernels?.choice;
  if (!choice?.linear || !choice.attention) return null;
  const { linear, attention, fastLinear = null, fastAttention = null, storage = 'f16' } = choice;
  // Rows start at aligned offsets, and are whole vectors.
  const fits =
    transformerDim(config) % 64 === 0 &&
    hasAttention(config.attention_head_dim) &&
    config.ffn_dim % 4 === 0 &&
    config.in_channels % 4 === 0 &&
    config.out_channels % 4 === 0;
  return fits ? { linear, attention, fastLinear, fastAttention, storage } : null;
}

/** All graphs of a clip, and the ranks that a LoRA has beside their layers, by the names of these. */
export function clipGraphs(
  config: TransformerConfig,
  { patchEmbedding, projOut }: Pick<TransformerWeights, 'patchEmbedding' | 'projOut'>,
  blocks: readonly AdaptedBlock[],
  reusesBlocks = false,
): { readonly graphs: ReadonlySet<Graph>; readonly ranks: ReadonlyMap<string, readonly number[]> } {
  const graphs = new Set([
    network.patchEmbedding(patchEmbedding.spec),
    network.head(config, projOut.spec, false),
  ]);
  if (reusesBlocks) {
    graphs.add(network.head(config, projOut.spec, true));
    graphs.add(network.blocksResidual(transformerDim(config)));
  }
  const ranks = new Map<string, readonly number[]>();
  const addRank = (name: string, rank: number | undefined) => {
    if (rank) ranks.set(name, [...new Set([...(ranks.get(name) ?? []), rank])]);
  };
  addRank('patch_embedding', patchEmbedding.tensors.down?.dims[0]);
  addRank('proj_out', projOut.tensors.down?.dims[0]);
  for (const { specs, ranks: ofBlock } of blocks) {
    graphs.add(network.selfAttention(config, specs));
    graphs.add(network.crossFeedForward(config, specs));
    for (const [role, rank] of ofBlock) addRank(role, rank);
  }
  return { graphs, ranks };
}
