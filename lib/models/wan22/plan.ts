import type { KernelSetting, Precision } from '../../contract';
import { CountingBackend, type DeviceBytes, elementCount } from '../../gpu';
import { integerDots, type KernelChoice } from '../../gpu/kernels';
import { defaultChoice } from '../../gpu/kernels/variants';
import type { StepCache } from '../../pipeline/caches';
import { denoise } from '../../pipeline/denoise';
import { type ClipSize, type LatentSize, latentFrames } from '../../pipeline/latents';
import { type DenoiseCosts, MemoryPlanner, type Residency } from '../../pipeline/memory/plan';
import { createScheduler } from '../../pipeline/schedulers';
import { type Checkpoint, withAliases } from '../../weights';
import { bitsOf } from './blocks';
import { chunkLadder, mostTokens, queryChunkTokens } from './chunk-size';
import { type ModelConfig, maxPromptTokens } from './config';
import { Wan22Denoiser } from './denoiser';
import { precisionFor } from './layer-data';
import type { LoraBranch, LoraBranches } from './lora';
import { checkpointOfShapes } from './shape-checkpoint';
import {
  type TensorShapes,
  textEncoderAliases,
  textEncoderTensors,
  transformerTensors,
} from './tensors';
import { encodePrompts } from './text-encoder';
import { createTinyDecoder } from './tiny-decoder';
import { chunkTokens as cutTokens, tokensPerFrame } from './tokens';
import { Transformer, transformerKernels } from './transformer';
import { decodeOptions, measureEncoder } from './vae';

/** What the memory is planned for. */
export interface Wan22PlanRequest {
  /** The size at which the model runs, and frames of a clip, 4n+1. */
  readonly native: ClipSize;
  /** The kernels of our own that compute; null where the runtime does. Exact ones of a usual device when absent. */
  readonly kernels?: KernelChoice | null;
  /** What the runtime's attention kernel sustains; decides its chunk size. */
  readonly flopsPerSecond?: number;
  /** Most tokens that go through a block together, where that was measured. */
  readonly chunkTokens?: number;
  /** Most bytes that the device takes in one buffer; any number of them when absent. */
  readonly largestBuffer?: number;
  /** Tokens of the prompts: one, or two with guidance. Two of the longest when absent. */
  readonly promptTokens?: readonly number[];
  readonly lora?: LoraBranches;
  /** What the clip is decoded with: the tiny decoder's tensors, or the VAE when absent. */
  readonly tinyDecoder?: TensorShapes;
  /** Whether what the blocks add is kept for later steps. */
  readonly reusesBlocks?: boolean;
}

/** What every device with WebGPU has. */
const usualDevice = {
  features: new Set([integerDots]),
  limits: { workgroupBytes: 2 ** 14, threads: 256, bindingBytes: 2 ** 27, storageBuffers: 8 },
};

/** What computes on a usual device; null where the runtime does. `matrix` takes the memory of `exact`. */
export function usualChoice(setting: KernelSetting): KernelChoice | null {
  if (setting === 'runtime') return null;
  return defaultChoice(usualDevice, setting === 'fast' ? 'fast' : 'exact');
}

/** What a common GPU's attention sustains, where none was measured. */
const usualFlopsPerSecond = 3e12;

/**
 * Counts what the stages of a clip take: the engine's own code runs on a backend that only counts.
 */
export async function planWan22(
  config: ModelConfig,
  precision: Precision,
  request: Wan22PlanRequest,
): Promise<MemoryPlanner> {
  const { width, height, frames } = request.native;
  const { scale_factor_spatial: scale, scale_factor_temporal: stride } = config.vae;
  const size = {
    frames: latentFrames(frames, stride),
    height: height / scale,
    width: width / scale,
  };
  const perFrame = tokensPerFrame(config.transformer, size);
  const tokens = size.frames * perFrame;
  const kernels = request.kernels === undefined ? usualChoice('exact') : request.kernels;
  const flops = request.flopsPerSecond ?? usualFlopsPerSecond;
  const usual = transformerKernels(new CountingBackend(kernels), config.transformer)
    ? mostTokens
    : queryChunkTokens(config.transformer, tokens, flops);
  const wanted = request.chunkTokens ?? usual;
  const promptTokens = request.promptTokens ?? [maxPromptTokens, maxPromptTokens];
  const { lora, reusesBlocks } = request;
  const options = { precision, promptTokens, lora, reusesBlocks, kernels };
  const latent = { latentHeight: size.height, latentWidth: size.width };
  const cut = (most: number) => largestChunk(size.frames, perFrame, most);
  const count = (chunkTokens: number) => countDenoising(config, size, chunkTokens, options);
  const first = await count(cut(wanted));
  const denoising: [DenoiseCosts, ...DenoiseCosts[]] = [first];
  const tiny =
    request.tinyDecoder && (await countTinyDecoder(request.tinyDecoder, latent, kernels));
  let smallest = first.chunkTokens;
  for (const chunkTokens of chunkLadder(wanted).map(cut)) {
    if (chunkTokens >= smallest) continue;
    denoising.push(await count(chunkTokens));
    smallest = chunkTokens;
  }
  return new MemoryPlanner(
    {
      native: request.native,
      precision,
      tokens,
      blocks: config.transformer.num_layers,
      text: await countText(config, options),
      image: await measureEncoder(config.vae, latent, { kernels }),
      denoising,
      decoding: tiny
        ? [{ tiles: 'full', bytes: tiny, work: 1 }]
        : await decodeOptions(config.vae, latent, kernels),
      // A preview is decoded as the clip is, by a decoder whose work hardly counts.
      ...(tiny && { preview: tiny }),
    },
    request.largestBuffer,
  );
}

/** Tokens of the largest chunk of a clip with one conditioning frame; as a bound it cuts alike. */
function largestChunk(frames: number, perFrame: number, most: number): number {
  return Math.max(...cutTokens(frames, perFrame, 1, most).map(({ count }) => count));
}

interface CountOptions {
  readonly precision: Precision;
  /** Tokens of one prompt, or of two with guidance. */
  readonly promptTokens: readonly number[];
  readonly lora?: LoraBranches | undefined;
  readonly reusesBlocks?: boolean | undefined;
  /** Null when absent. */
  readonly kernels?: KernelChoice | null;
}

/** Layers come and go one by one, so one of them tells the peak. */
async function countText(config: ModelConfig, options: CountOptions): Promise<DeviceBytes> {
  const one = { ...config.text_encoder, num_layers: 1 };
  const zeros = zeroCheckpoint(textEncoderTensors(one), options.precision);
  const checkpoint = withAliases(zeros, textEncoderAliases);
  const backend = new CountingBackend(options.kernels);
  const prompts = options.promptTokens.map((tokens) => new Array<number>(tokens).fill(0));
  await encodePrompts(backend, checkpoint, one, prompts, { precision: options.precision });
  return backend.measured();
}

/**
 * One step with one block and with two: whatever depends on the blocks grows by the same for each, so
 * the rest follows. No memory belongs to a single block only, so the peaks of the parts add up alike.
 * A LoRA is taken to change each block as it changes the one with the largest ranks.
 */
export async function countDenoising(
  config: Pick<ModelConfig, 'transformer'>,
  size: LatentSize,
  maxChunkTokens: number,
  options: CountOptions,
): Promise<DenoiseCosts> {
  const lora = options.lora ? uniform(options.lora) : undefined;
  const measure = async (layers: number) => {
    const transformer = { ...config.transformer, num_layers: layers };
    const backend = new CountingBackend(options.kernels);
    const checkpoint = zeroCheckpoint(transformerTensors(transformer), options.precision);
    const { precision } = options;
    const reading = { precision, ...(lora ? { lora } : {}) };
    const model = await Transformer.load(backend, checkpoint, transformer, reading);
    const values = transformer.in_channels * size.height * size.width;
    const embeds = (tokens: number) => new Float32Array(tokens * transformer.text_dim);
    await denoise(backend, new Wan22Denoiser(model, maxChunkTokens), {
      size,
      image: new Float32Array(values),
      texts: options.promptTokens.map(embeds),
      noise: () => new Float32Array(values * size.frames),
      scheduler: createScheduler({ kind: 'unipc', steps: 1, flowShift: 5 }),
      guidanceScale: options.promptTokens.length > 1 ? 5 : 1,
      cache: options.reusesBlocks ? countedCache : { kind: 'none' },
    });
    return backend.measured();
  };
  const [one, two] = [await measure(1), await measure(2)];
  const blocks = config.transformer.num_layers;
  const blockBytes = two.weights - one.weights;
  const grown = (part: keyof DeviceBytes) => one[part] + (blocks - 1) * (two[part] - one[part]);
  const bytes = ({ residentBlocks, bufferSets }: Residency): DeviceBytes => {
    const onDevice = residentBlocks >= blocks ? blocks : residentBlocks + bufferSets;
    const saved = (blocks - onDevice) * blockBytes;
    return {
      weights: grown('weights') - saved,
      activations: grown('activations'),
      caches: grown('caches'),
      runtime: grown('runtime'),
      peak: grown('peak') - saved,
      largest: two.largest,
    };
  };
  return { chunkTokens: maxChunkTokens, largest: two.largest, blockBytes, bytes };
}

/**
 * The tiny decoder takes whole frames only; its second latent frame meets every state that it can be in.
 */
async function countTinyDecoder(
  shapes: TensorShapes,
  size: { readonly latentHeight: number; readonly latentWidth: number },
  kernels: KernelChoice | null,
): Promise<DeviceBytes> {
  const backend = new CountingBackend(kernels);
  const decoder = await createTinyDecoder(backend, zeroCheckpoint(shapes, 'f32'), size);
  const { inputs } = decoder.network.first.spec;
  const frame = new Float32Array(inputs * size.latentHeight * size.latentWidth);
  for await (const _ of decoder.decodeClip([frame, frame]));
  return backend.measured();
}

/** Only whether blocks are reused matters: their residuals are allocated before the first step. */
const countedCache: StepCache = {
  kind: 'magcache',
  settings: { ratios: [1, 1], threshold: 1, mostSkips: 1, computedShare: 1 },
};

/** A LoRA that gives each of the first two blocks the largest rank that any block has. */
function uniform({ branches }: LoraBranches): LoraBranches {
  const widest = new Map<string, LoraBranch>();
  for (const [name, branch] of branches) {
    const [, role] = /^blocks\.\d+\.(.+)$/.exec(name) ?? [];
    for (const target of role ? [`blocks.0.${role}`, `blocks.1.${role}`] : [name]) {
      const known = widest.get(target);
      if (!known || known.rank < branch.rank) widest.set(target, branch);
    }
  }
  return { branches: widest, deltas: new Map() };
}

/**
 * A checkpoint of the right names and shapes. The matrices of the layers have no content at all: they
 * would be large, and nothing looks at it.
 */
function zeroCheckpoint(shapes: TensorShapes, precision: Precision): Checkpoint {
  return checkpointOfShapes(shapes, {
    read: (_, shape) => new Float32Array(elementCount(shape)),
    readLinear(_, __, columns) {
      const bits = bitsOf(precisionFor(precision, columns));
      if (bits === null) return new Float32Array(0);
      return { bits, values: new Uint8Array(0), scales: new Float32Array(0) };
    },
    readRow: (_, __, width) => new Float32Array(width),
  });
}
