import { type Compute, type GraphSizes, type KernelSet, Program } from '../../../gpu';
import type { KernelChoice } from '../../../gpu/kernels';
import type { Graph } from '../../../graph';
import { maxPromptTokens, type TransformerConfig, transformerDim } from '../config';
import type { ReadOptions } from '../layer-data';
import { type LinearSpec, specOf } from '../layers';
import { shapeOfTensor, transformerTensors } from '../tensors';
import type { ClipTokens } from './clip';
import * as network from './network';
import { outerLinears } from './weights';

/** In which form a transformer's weights are on the device: its graphs depend on it. */
export type WeightForm = Pick<ReadOptions, 'precision' | 'lora'>;

/** The kernels of a choice that compute a transformer; null where the runtime does. */
export function transformerKernels(choice: KernelChoice | null | undefined): KernelSet | null {
  if (!choice?.linear || !choice.attention) return null;
  const { linear, attention, fastLinear = null, fastAttention = null, storage = 'f16' } = choice;
  return { linear, attention, fastLinear, fastAttention, storage };
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

/** All graphs of a clip. */
export function clipGraphs(
  config: TransformerConfig,
  form: WeightForm,
  reusesBlocks = false,
): AdaptedGraphs {
  const clip = new AdaptedGraphs(config, form);
  const { patchEmbedding: patch_embedding, projOut: proj_out } = outerLinears;
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

/** The graphs of the embeddings, which are the runtime's also where kernels compute the clip. */
export function embeddingGraphs(
  config: TransformerConfig,
  form: WeightForm,
): readonly AdaptedGraphs[] {
  const { timeLinear1, timeLinear2, timeProjection, textLinear1, textLinear2 } = outerLinears;
  const [time, text] = [new AdaptedGraphs(config, form), new AdaptedGraphs(config, form)];
  time.add(
    { linear_1: timeLinear1, linear_2: timeLinear2, time_proj: timeProjection },
    ({ linear_1: linear1, linear_2: linear2, time_proj: projection }) =>
      network.timeEmbedding(config, { linear1, linear2, projection }),
    'f32',
  );
  text.add(
    { linear_1: textLinear1, linear_2: textLinear2 },
    ({ linear_1: linear1, linear_2: linear2 }) => network.textEmbedding({ linear1, linear2 }),
    'f32',
  );
  return [time, text];
}

/** What the graphs are run on. @param rows T of the texts; that of the longest when absent */
export function sizesOf(
  { chunks }: Pick<ClipTokens, 'chunks'>,
  { ranks }: Pick<AdaptedGraphs, 'ranks'>,
  rows = maxPromptTokens,
): GraphSizes {
  return { chunks, ranks, sizes: { T: rows }, classed: new Set(['modulation', 'temb']) };
}

/** What a clip is compiled for. */
export interface KernelTarget {
  readonly choice: KernelChoice | null | undefined;
  readonly limits: Compute['limits'];
  /** Most bytes of a buffer. */
  readonly maxBufferBytes: number;
}

/**
 * Compiles all that a clip computes, without a device; null where the runtime computes it.
 *
 * @throws Refusal
 */
export function compileClip(
  { choice, limits, maxBufferBytes }: KernelTarget,
  of: AdaptedGraphs,
  clip: Pick<ClipTokens, 'chunks'>,
): Program | null {
  const kernels = transformerKernels(choice);
  return (
    kernels && new Program(of.graphs, { kernels, limits, ...sizesOf(clip, of) }, maxBufferBytes)
  );
}
