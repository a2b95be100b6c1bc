import type { Precision } from '../../../contract';
import {
  type Compute,
  CountingBackend,
  compileGraphs,
  countGraphs,
  type DeviceBytes,
  type GraphSizes,
  kernelSet,
  RuntimeExecutor,
  tensorBytes,
  uniformBytes,
} from '../../../gpu';
import type { KernelChoice } from '../../../gpu/kernels';
import type { Graph } from '../../../graph';
import type { LatentSize } from '../../../pipeline/latents';
import type { DenoiseCosts, Residency } from '../../../pipeline/memory/memory-plan';
import { solverSizes, stepGraph, stepSizes } from '../../../pipeline/schedulers';
import { bitsOf, precisionFor } from '../../layers/layer-data';
import type { LoraForm } from '../../layers/lora';
import type { TransformerConfig } from '../config-schemas';
import { transformerTensors } from '../wan-tensors';
import { streamedBlocks } from './blocks';
import { tokensOf } from './clip';
import { clipGraphs, loraFactors, sizesOf } from './graphs';
import { blockLinears } from './transformer-network';
import { clipSizes, textSizes, timeSizes, tokenWidth } from './transformer-weights';

/** Facts of a clip's denoising that are known before it runs. */
export interface DenoisePlanOptions {
  readonly precision: Precision;
  /** Tokens of one prompt, or of two with guidance. */
  readonly promptTokens: readonly number[];
  /** Latent frames that are given, in ascending order; the first one when absent. */
  readonly given?: readonly number[];
  /** Rows of an image that the blocks attend to; none when absent. */
  readonly imageRows?: number | undefined;
  readonly lora?: LoraForm | undefined;
  readonly reusesBlocks?: boolean | undefined;
  /** Whether the sampler adds noise; false when absent. */
  readonly stochastic?: boolean | undefined;
  readonly evaluations?: number | undefined;
  /** The kernels of our own that compute; null where the runtime does, as when absent. */
  readonly kernels?: KernelChoice | null;
  /** The device that compiles them; one without limits when absent. */
  readonly compute?: Compute | null | undefined;
  /** Most bytes that the device takes in one buffer; any number of them when absent. */
  readonly largestBuffer?: number | undefined;
}

/**
 * What denoising takes in chunks of one size. Kernels of our own take what the clip's graphs are compiled to; the
 * tensors around it are listed by their sizes, and what the runtime takes inside is simulated.
 *
 * @throws Refusal where kernels of our own are to compute and do not
 */
export async function planDenoising(
  config: TransformerConfig,
  size: LatentSize,
  chunkTokens: number,
  options: DenoisePlanOptions,
): Promise<DenoiseCosts> {
  const { precision, promptTokens, lora, kernels = null, reusesBlocks = false } = options;
  const { stochastic = false, evaluations = 1 } = options;
  const { largestBuffer: maxBufferBytes = Number.POSITIVE_INFINITY } = options;
  const form = { precision, plainFactors: !kernelSet(kernels), ...(lora && { lora }) };
  const guided = promptTokens.length > 1;
  const { given = [0], imageRows } = options;
  const clipOptions = { given, maxChunkTokens: chunkTokens, guided, reusesBlocks, imageRows };
  const clip = tokensOf(config, size, clipOptions);
  const texts = promptTokens.map((tokens) => textSizes(config, tokens));
  const latents = [clip.tokens - clip.conditioningTokens, tokenWidth(config)] as const;

  const counting = new CountingBackend(kernels, options.compute);
  const { compute } = counting;
  const graphs = clipGraphs(config, form, reusesBlocks);
  const target = { choice: kernels, limits: compute.limits, maxBufferBytes };
  const compiled = (of: Iterable<Graph>, sizes: GraphSizes) => compileGraphs(target, of, sizes);
  const step = [stepGraph(guided, stochastic, latents[1])];
  const programs = [
    compiled(graphs.graphs, sizesOf(clip, graphs, undefined, imageRows)),
    compiled(step, stepSizes(latents[0])),
  ].filter((program) => program !== null);
  for (const program of programs) await program.compileOn(compute);
  if (programs.length === 0) {
    const executor = new RuntimeExecutor(counting);
    for (const { context } of texts) {
      await countGraphs(executor, graphs.graphs, sizesOf(clip, graphs, context[0], imageRows));
    }
    await countGraphs(new RuntimeExecutor(counting), step, stepSizes(latents[0]));
  }
  const inside = counting.measured();

  const weights = weightBytes(config, precision);
  const factors = loraFactors(config, form).map((factor) => {
    return { ...factor, bytes: tensorBytes(factor.dtype, factor.dims) };
  });
  const { streams, residuals, rotary, conditions } = clipSizes(config, clip.tokens, clipOptions);
  const kept = [
    ...bytesOf([...streams, ...residuals, ...Object.values(rotary), ...Object.values(conditions)]),
    ...bytesOf(texts.map(({ context }) => context)),
    ...programs.flatMap(({ buffers }) => buffers),
  ];
  // Embeddings of prompts are freed before the latents are taken.
  const embeds = bytesOf(texts.map((text) => text.embeds));
  const solver = solverSizes(latents, { guided, stochastic, evaluations });
  const time = Object.values(timeSizes(config));
  const late = bytesOf([
    ...time,
    ...time,
    [clip.conditioningTokens, latents[1]],
    ...Object.values(solver),
  ]);
  const activations = inside.activations + sum(kept) + Math.max(...embeds, sum(late));
  const uniforms = programs.length > 0 ? uniformBytes : 0;
  // Three tensors of latents are read together: those of a state that is saved, or a cache's outputs with the latents.
  const runtime = inside.runtime + uniforms + 3 * tensorBytes('float32', latents);
  const ofFactors = factors.map((factor) => factor.bytes);
  const others = [weights.around, weights.block, ofFactors, kept, embeds, late].flat();
  const largest = Math.max(inside.largest, ...others);
  const [around, blockBytes] = [sum(weights.around), sum(weights.block)];
  const bytes = (residency: Residency): DeviceBytes => {
    const blocks = config.num_layers;
    const { residentBlocks, bufferSets } = residency;
    const onDevice = residentBlocks >= blocks ? blocks : residentBlocks + bufferSets;
    const ofWeights = around + onDevice * blockBytes;
    const streamed = new Set(streamedBlocks(blocks, residency));
    const inSets = factors.filter(({ block }) => streamed.has(block));
    const bySize = new Map(
      inSets.map((one) => [`${one.name} ${one.dtype} ${one.dims}`, one.bytes]),
    );
    const ofLora =
      sum(ofFactors) -
      sum(inSets.map((factor) => factor.bytes)) +
      bufferSets * sum([...bySize.values()]);
    const peak = ofWeights + activations + ofLora + runtime;
    const ofRun = activations + ofLora;
    return { weights: ofWeights, activations: ofRun, caches: 0, runtime, peak, largest };
  };
  return { chunkTokens, largest, blockBytes, bytes };
}

/** Bytes of the transformer's tensors: around the blocks, and in one block. */
function weightBytes(config: TransformerConfig, precision: Precision) {
  const shapes = transformerTensors(config);
  const layers = new Set(blockLinears(config).map((role) => `blocks.0.${role}.weight`));
  const [around, block]: [number[], number[]] = [[], []];
  for (const [name, dims] of shapes) {
    const [rows = 0, columns = 0] = dims;
    const bits = layers.has(name) ? bitsOf(precisionFor(precision, columns)) : null;
    if (bits !== null) {
      const scales = [rows, columns / 32];
      block.push(tensorBytes('uint8', [...scales, 4 * bits]), tensorBytes('float32', scales));
    } else if (name.startsWith('blocks.0.')) block.push(tensorBytes('float32', dims));
    else if (!name.startsWith('blocks.')) around.push(tensorBytes('float32', dims));
  }
  return { around, block };
}

function bytesOf(sizes: readonly (readonly number[])[]): number[] {
  return sizes.map((dims) => tensorBytes('float32', dims));
}

function sum(bytes: readonly number[]): number {
  return bytes.reduce((total, each) => total + each, 0);
}
