import type { GraphSizes } from '../../../gpu';
import type { Graph } from '../../../graph';
import type { ReadOptions } from '../../layers/layer-data';
import { type LinearSpec, specOf } from '../../layers/linear';
import { shapeOfTensor } from '../../layers/tensors';
import { maxPromptTokens } from '../../umt5/config';
import { type TransformerConfig, transformerDim } from '../config';
import { transformerTensors } from '../tensors';
import type { ClipTokens } from './clip';
import * as network from './network';
import { outerLinears } from './weights';

/** In which form a transformer's weights are on the device: its graphs depend on it. */
export type WeightForm = Pick<ReadOptions, 'precision' | 'lora'>;

/** Graphs of a transformer, and the ranks that a LoRA has beside their layers, by the names of these. */
export class AdaptedGraphs {
  readonly graphs = new Set<Graph>();
  readonly ranks = new Map<string, readonly number[]>();
  readonly #tensors;

  constructor(
    readonly config: TransformerConfig,
    readonly form: WeightForm,
  ) {
    const shapes = transformerTensors(config);
    this.#tensors = {
      has: (name: string) => shapes.has(name),
      shape: (name: string) => shapeOfTensor(shapes, name),
    };
  }

  /**
   * Adds a graph.
   *
   * @param modules the diffusers names of its layers, by the names that the graph has for them
   */
  add<Name extends string>(
    modules: Readonly<Record<Name, string>>,
    make: (specs: Readonly<Record<Name, LinearSpec>>) => Graph,
    precision = this.form.precision,
  ): void {
    const { lora } = this.form;
    const specs: Partial<Record<Name, LinearSpec>> = {};
    for (const name of Object.keys(modules) as Name[]) {
      specs[name] = specOf(this.#tensors, modules[name], { ...this.form, precision });
      const rank = lora?.branches.get(modules[name])?.rank;
      if (rank) this.ranks.set(name, [...new Set([...(this.ranks.get(name) ?? []), rank])]);
    }
    this.graphs.add(make(specs as Record<Name, LinearSpec>));
  }
}

/** All graphs of a clip, those of its embeddings included. */
export function clipGraphs(
  config: TransformerConfig,
  form: WeightForm,
  reusesBlocks = false,
): AdaptedGraphs {
  const clip = new AdaptedGraphs(config, form);
  const { patchEmbedding: patch_embedding, projOut: proj_out, timeProjection } = outerLinears;
  const { timeLinear1, timeLinear2, textLinear1, textLinear2 } = outerLinears;
  clip.add(
    {
      'time_embedder.linear_1': timeLinear1,
      'time_embedder.linear_2': timeLinear2,
      time_proj: timeProjection,
    },
    (of) =>
      network.timeEmbedding(config, {
        linear1: of['time_embedder.linear_1'],
        linear2: of['time_embedder.linear_2'],
        projection: of.time_proj,
      }),
    'f32',
  );
  clip.add(
    { 'text_embedder.linear_1': textLinear1, 'text_embedder.linear_2': textLinear2 },
    (of) =>
      network.textEmbedding({
        linear1: of['text_embedder.linear_1'],
        linear2: of['text_embedder.linear_2'],
      }),
    'f32',
  );
  clip.add({ patch_embedding }, (of) => network.patchEmbedding(of.patch_embedding), 'f32');
  for (const reuses of reusesBlocks ? [false, true] : [false]) {
    clip.add({ proj_out }, (of) => network.head(config, of.proj_out, reuses), 'f32');
  }
  if (reusesBlocks) clip.graphs.add(network.blocksResidual(transformerDim(config)));
  for (let index = 0; index < config.num_layers; index++) {
    const roles = network.blockLinears.map((role) => [role, `blocks.${index}.${role}`]);
    const modules: Record<network.BlockLinear, string> = Object.fromEntries(roles);
    clip.add(modules, (specs) => network.selfAttention(config, specs));
    clip.add(modules, (specs) => network.crossFeedForward(config, specs));
  }
  return clip;
}

/** What the graphs are run on. @param rows T of the texts; that of the longest when absent */
export function sizesOf(
  { chunks }: Pick<ClipTokens, 'chunks'>,
  { ranks }: Pick<AdaptedGraphs, 'ranks'>,
  rows = maxPromptTokens,
): GraphSizes {
  return { chunks, ranks, sizes: { T: rows }, classed: new Set(['modulation', 'temb']) };
}
