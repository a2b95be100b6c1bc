import type { KernelSetting, Precision } from '../../contract';
import { type DeviceBytes, kernelSet, Refusal } from '../../gpu';
import { integerDots, type KernelChoice } from '../../gpu/kernels';
import { defaultChoice } from '../../gpu/kernels/families';
import { type ClipSize, latentFrames } from '../../pipeline/latents';
import { type DenoiseCosts, MemoryPlanner } from '../../pipeline/memory/memory-plan';
import { zeroCheckpoint } from '../layers/shape-checkpoint';
import type { TensorShapes } from '../layers/tensor-shapes';
import { countTextEncoder } from '../umt5/text-encoder';
import { maxPromptTokens } from '../umt5/text-encoder-config';
import { chunkLadder, mostTokens, queryChunkTokens } from './chunk-size';
import { countImageEncoder, featureRows } from './image-encoder/image-encoder';
import type { ModelConfig } from './model-config';
import { tinyDecoderGraphs } from './tiny-decoder/tiny-decoder-network';
import { tinyConfig, tinyWeights } from './tiny-decoder/tiny-decoder-weights';
import { chunkTokens as cutTokens, tokensPerFrame } from './tokens';
import { type DenoisePlanOptions, planDenoising } from './transformer';
import {
  decodeOptions,
  type LatentFrameSize,
  measureEncoder,
  measureGraphs,
  type VaePlanOptions,
} from './vae';

/**
 * What the memory is planned for. By default exact kernels of a usual device compute, for two of the longest prompts.
 */
export interface WanPlanRequest
  extends Partial<Omit<DenoisePlanOptions, 'precision' | 'given' | 'imageRows'>> {
  /** The size at which the model runs, and frames of a clip, 4n+1. */
  readonly native: ClipSize;
  /** What the runtime's attention kernel sustains; decides its chunk size. */
  readonly flopsPerSecond?: number;
  /** Most tokens that go through a block together, where that was measured. */
  readonly chunkTokens?: number;
  /** Whether there are two prompts, where none are given. True when absent. */
  readonly guided?: boolean;
  /** What the clip is decoded with: the tiny decoder's tensors, or the VAE when absent. */
  readonly tinyDecoder?: TensorShapes;
}

/** Limits of every device with WebGPU. */
const usualDevice = {
  features: new Set([integerDots]),
  limits: { workgroupBytes: 2 ** 14, threads: 256, bindingBytes: 2 ** 27, storageBuffers: 8 },
};

/** What computes on a usual device; null where the runtime does. `matrix` takes the memory of `exact`. */
export function usualChoice(setting: KernelSetting): KernelChoice | null {
  if (setting === 'runtime') return null;
  return defaultChoice(usualDevice, setting === 'fast' ? 'fast' : 'exact');
}

/** Rate of a common GPU's attention, where none was measured. */
const usualFlopsPerSecond = 3e12;

/**
 * Counts what the stages of a clip take. Denoising is compiled, without a device where none is given; the other stages
 * run the engine's own code on a backend that only counts.
 *
 * @throws Refusal where kernels of our own are to compute and do not
 */
export async function planWan(
  config: ModelConfig,
  precision: Precision,
  request: WanPlanRequest,
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
  const usual = kernelSet(kernels)
    ? mostTokens
    : queryChunkTokens(config.transformer, tokens, flops);
  const preferred = request.chunkTokens ?? usual;
  const { promptTokens = Array(request.guided === false ? 1 : 2).fill(maxPromptTokens) } = request;
  const { largestBuffer, compute } = request;
  const { image_encoder: encoder, kind } = config;
  // The plan counts only the first frame of a clip's pictures.
  const given = kind.pictures === 'frames' ? [0] : [];
  const imageRows = encoder ? featureRows(encoder) : undefined;
  const options = { ...request, precision, promptTokens, kernels, given, imageRows };
  const latent = { latentHeight: size.height, latentWidth: size.width };
  // Tokens of the largest chunk of the clip; as a bound it cuts alike.
  const cut = (most: number) => {
    const chunks = cutTokens(size.frames, perFrame, given.length, most);
    return Math.max(...chunks.map(({ count }) => count));
  };
  const denoising: DenoiseCosts[] = [];
  let refused: Refusal | undefined;
  for (const chunkTokens of new Set([preferred, ...chunkLadder(preferred)].map(cut))) {
    try {
      denoising.push(await planDenoising(config.transformer, size, chunkTokens, options));
    } catch (error) {
      // A binding may hold the rows of a smaller chunk.
      if (!(error instanceof Refusal)) throw error;
      refused ??= error;
    }
  }
  const [first, ...smaller] = denoising;
  if (!first) throw refused;
  const tiny =
    request.tinyDecoder && (await measureTinyDecoder(request.tinyDecoder, latent, options));
  return new MemoryPlanner(
    {
      native: request.native,
      precision,
      tokens,
      blocks: config.transformer.num_layers,
      text: await countTextEncoder(config.text_encoder, precision, promptTokens, kernels, compute),
      image: larger(
        await measureEncoder(config.vae, latent, options),
        encoder ? await countImageEncoder(encoder, kernels, compute) : undefined,
      ),
      denoising: [first, ...smaller],
      decoding: tiny
        ? [{ tiles: 'full', bytes: tiny, work: 1 }]
        : await decodeOptions(config.vae, latent, options),
      // A preview is decoded as the clip is, by a decoder whose work hardly counts.
      ...(tiny && { preview: tiny }),
    },
    largestBuffer,
  );
}

/** The tiny decoder takes whole frames only. */
async function measureTinyDecoder(
  shapes: TensorShapes,
  size: LatentFrameSize,
  options: VaePlanOptions,
): Promise<DeviceBytes> {
  const checkpoint = zeroCheckpoint(shapes, 'f32');
  const config = tinyConfig(checkpoint);
  const graphs = tinyDecoderGraphs(config, size);
  return measureGraphs(graphs, tinyWeights(checkpoint, config), options);
}

/** What two parts of a stage take that run one after the other. */
function larger(a: DeviceBytes, b: DeviceBytes | undefined): DeviceBytes {
  return b && b.peak > a.peak ? { ...b, largest: Math.max(a.largest, b.largest) } : a;
}
