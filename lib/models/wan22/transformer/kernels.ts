import { type Backend, type Compute, type GraphSizes, type KernelSet, Program } from '../../../gpu';
import type { KernelChoice } from '../../../gpu/kernels';
import type { Graph } from '../../../graph';
import { maxPromptTokens, type TransformerConfig, transformerDim } from '../config';
import type { ReadOptions } from '../layer-data';
import { type LinearSpec, specOf } from '../layers';
import { shapeOfTensor, transformerTensors } from '../tensors';
import type { ClipTokens } from './clip';
import * as network from './network';
import { type OuterLinear, outerLinears } from './weights';

/** In which form a transformer's weights are on the device: its graphs depend on it. */
export type WeightForm = Pick<ReadOptions, 'precision' | 'lora'>;

/** The kernels of a choice that compute a transformer; null where the runtime does. */
export function transformerKernels(choice: KernelChoice | null | undefined): KernelSet | null {
  if (!choice?.linear || !choice.attention) return null;
  const { linear, attention, fastLinear = null, fastAttention = null, storage = 'f16' } = choice;
  return { linear, attention, fastLinear, fastAttention, storage };
}

/** Graphs, and the ranks that a LoRA has beside their layers, by the names of these. */
export interface AdaptedGraphs {
  readonly graphs: ReadonlySet<Graph>;
  readonly ranks: GraphSizes['ranks'];
}

/** All graphs of a clip. */
export function clipGraphs(
  config: TransformerConfig,
  form: WeightForm,
  reusesBlocks = false,
): AdaptedGraphs {
  const { patchEmbedding, projOut } = outerSpecs(config, form);
  const graphs = new Set([
    network.patchEmbedding(patchEmbedding),
    network.head(config, projOut, false),
  ]);
  if (reusesBlocks) {
    graphs.add(network.head(config, projOut, true));
    graphs.add(network.blocksResidual(transformerDim(config)));
  }
  const modules: [name: string, module: string][] = [
    ['patch_embedding', outerLinears.patchEmbedding],
    ['proj_out', outerLinears.projOut],
  ];
  const tensors = architecture(config);
  for (let index = 0; index < config.num_layers; index++) {
    const module = (role: network.BlockLinear) => `blocks.${index}.${role}`;
    const specs = Object.fromEntries(
      network.blockLinears.map((role) => [role, specOf(tensors, module(role), form)]),
    ) as network.BlockSpecs;
    graphs.add(network.selfAttention(config, specs));
    graphs.add(network.crossFeedForward(config, specs));
    for (const role of network.blockLinears) modules.push([role, module(role)]);
  }
  return { graphs, ranks: ranksOf(modules, form) };
}

/** The graphs of the embeddings, which are the runtime's also where kernels compute the clip. */
export function embeddingGraphs(
  config: TransformerConfig,
  form: WeightForm,
): readonly AdaptedGraphs[] {
  const specs = outerSpecs(config, form);
  const { timeLinear1, timeLinear2, timeProjection, textLinear1, textLinear2 } = specs;
  const time = { linear1: timeLinear1, linear2: timeLinear2, projection: timeProjection };
  const text = { linear1: textLinear1, linear2: textLinear2 };
  return [
    {
      graphs: new Set([network.timeEmbedding(config, time)]),
      ranks: ranksOf(
        [
          ['linear_1', outerLinears.timeLinear1],
          ['linear_2', outerLinears.timeLinear2],
          ['time_proj', outerLinears.timeProjection],
        ],
        form,
      ),
    },
    {
      graphs: new Set([network.textEmbedding(text)]),
      ranks: ranksOf(
        [
          ['linear_1', outerLinears.textLinear1],
          ['linear_2', outerLinears.textLinear2],
        ],
        form,
      ),
    },
  ];
}

/** What the graphs of a clip are run on. @param rows T, of the texts; of the longest when absent */
export function sizesOf(
  { chunks }: Pick<ClipTokens, 'chunks'>,
  ranks: GraphSizes['ranks'],
  rows = maxPromptTokens,
): GraphSizes {
  return { chunks, ranks, sizes: { T: rows }, classed: new Set(['modulation', 'temb']) };
}

/** What a clip is compiled for. */
export interface KernelTarget {
  readonly kernels: KernelSet;
  readonly limits: Compute['limits'];
  readonly maxBufferBytes: Backend['maxBufferBytes'];
}

/**
 * Compiles all that a clip computes. No device is needed for it.
 *
 * @throws Refusal
 */
export function compileClip(
  { kernels, limits, maxBufferBytes }: KernelTarget,
  { graphs, ranks }: AdaptedGraphs,
  of: Pick<ClipTokens, 'chunks'>,
): Program {
  return new Program(graphs, { kernels, limits, ...sizesOf(of, ranks) }, maxBufferBytes);
}

function architecture(config: TransformerConfig) {
  const shapes = transformerTensors(config);
  return {
    has: (name: string) => shapes.has(name),
    shape: (name: string) => shapeOfTensor(shapes, name),
  };
}

function outerSpecs(
  config: TransformerConfig,
  form: WeightForm,
): Readonly<Record<OuterLinear, LinearSpec>> {
  const tensors = architecture(config);
  const specs = Object.entries(outerLinears).map(([role, name]) => [
    role,
    specOf(tensors, name, { ...form, precision: 'f32' }),
  ]);
  return Object.fromEntries(specs);
}

/** Ranks by the names of layers in a graph, of the modules that they are. */
function ranksOf(
  modules: readonly (readonly [name: string, module: string])[],
  { lora }: WeightForm,
): GraphSizes['ranks'] {
  const ranks = new Map<string, readonly number[]>();
  for (const [name, module] of modules) {
    const rank = lora?.branches.get(module)?.rank;
    if (rank) ranks.set(name, [...new Set([...(ranks.get(name) ?? []), rank])]);
  }
  return ranks;
}
