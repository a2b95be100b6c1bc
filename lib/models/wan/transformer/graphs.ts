import type { GraphSizes } from '../../../gpu';
import type { Graph } from '../../../graph';
import type { WeightForm } from '../../layers/layer-data';
import { factorsOf, type LinearSpec, specOf, type TensorNames } from '../../layers/linear';
import { shapeOfTensor } from '../../layers/tensor-shapes';
import { maxPromptTokens } from '../../umt5/text-encoder-config';
import { type TransformerConfig, transformerDim } from '../config-schemas';
import { transformerTensors } from '../wan-tensors';
import type { ClipTokens } from './clip';
import * as network from './transformer-network';
import {
  conditionWidth,
  imageEmbedderLinears,
  outerLinears,
  tokenWidth,
} from './transformer-weights';

function namesOf(config: TransformerConfig): TensorNames {
  const shapes = transformerTensors(config);
  return { has: (name) => shapes.has(name), shape: (name) => shapeOfTensor(shapes, name) };
}

/** Factors of a LoRA, by block (−1 outside of the blocks), and named within it: `attn1.to_q.down`. */
export function loraFactors(config: TransformerConfig, form: WeightForm) {
  const tensors = namesOf(config);
  return [...(form.lora?.branches ?? [])].flatMap(([module, { rank }]) => {
    const [, block = -1, layer = module] = /^blocks\.(\d+)\.(.*)/.exec(module) ?? [];
    const precision = block === -1 ? 'f32' : form.precision;
    return factorsOf(specOf(tensors, module, { ...form, precision }), rank).map(
      ({ role, ...factor }) => ({ ...factor, block: Number(block), name: `${layer}.${role}` }),
    );
  });
}

/** Graphs of a transformer, and the ranks that a LoRA has beside their layers, by the names of these. */
export class AdaptedGraphs {
  readonly graphs = new Set<Graph>();
  readonly ranks = new Map<string, readonly number[]>();
  readonly #tensors;

  constructor(
    readonly config: TransformerConfig,
    readonly form: WeightForm,
  ) {
    this.#tensors = namesOf(config);
  }

  /**
   * Adds a graph.
   *
   * @param modules the diffusers names of its layers, by the names that the graph has for them
   */
  add<Name extends string>(
    modules: Readonly<Partial<Record<Name, string>>>,
    make: (specs: Readonly<Record<Name, LinearSpec>>) => Graph,
    precision = this.form.precision,
  ): void {
    const { lora } = this.form;
    const specs: Partial<Record<Name, LinearSpec>> = {};
    for (const [name, module] of Object.entries(modules) as [Name, string][]) {
      specs[name] = specOf(this.#tensors, module, { ...this.form, precision });
      const rank = lora?.branches.get(module)?.rank;
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
  const [latent, condition] = [tokenWidth(config), conditionWidth(config)];
  clip.add(
    { patch_embedding },
    (of) => network.patchEmbedding({ ...of.patch_embedding, inFeatures: latent }),
    'f32',
  );
  if (condition > 0) {
    clip.add(
      { condition_embedding: patch_embedding },
      (of) => {
        const spec = { ...of.condition_embedding, inFeatures: condition, bias: false };
        return network.conditionEmbedding(spec, transformerDim(config));
      },
      'f32',
    );
  }
  for (const reuses of reusesBlocks ? [false, true] : [false]) {
    clip.add({ proj_out }, (of) => network.head(config, of.proj_out, reuses), 'f32');
  }
  if (reusesBlocks) clip.graphs.add(network.blocksResidual(transformerDim(config)));
  for (let index = 0; index < config.num_layers; index++) {
    const roles = network.blockLinears(config).map((role) => [role, `blocks.${index}.${role}`]);
    const modules: Partial<Record<network.BlockLinear, string>> = Object.fromEntries(roles);
    clip.add(modules, (specs) => network.selfAttention(config, specs));
    clip.add(modules, (specs) => network.crossFeedForward(config, specs));
  }
  return clip;
}

/** The graph that embeds the features of an image, which is run alone. */
export function imageGraph(config: TransformerConfig, form: WeightForm): AdaptedGraphs {
  const image = new AdaptedGraphs(config, form);
  image.add(
    {
      'image_embedder.linear_1': imageEmbedderLinears.linear1,
      'image_embedder.linear_2': imageEmbedderLinears.linear2,
    },
    (of) =>
      network.imageEmbedding(config, {
        linear1: of['image_embedder.linear_1'],
        linear2: of['image_embedder.linear_2'],
      }),
    'f32',
  );
  return image;
}

/** The sizes on which the graphs run. @param rows T of the texts; that of the longest when absent */
export function sizesOf(
  { chunks }: Pick<ClipTokens, 'chunks'>,
  { ranks }: Pick<AdaptedGraphs, 'ranks'>,
  rows = maxPromptTokens,
  imageRows = 0,
): GraphSizes {
  return {
    chunks,
    ranks,
    sizes: { T: rows, I: imageRows },
    classed: new Set(['modulation', 'temb']),
  };
}
