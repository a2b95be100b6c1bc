import type { ModelManifest, Size } from '../contract';
import { CountingBackend } from '../gpu';
import { type Checkpoint, withAliases } from '../weights';
import { queryChunkTokens } from './chunk-size';
import { latentFrames } from './clips';
import { type ModelConfig, maxPromptTokens } from './config';
import { denoise } from './denoise';
import type { Precision } from './layers';
import { createScheduler } from './scheduler';
import { textEncoderAliases, textEncoderTensors, transformerTensors } from './tensors';
import { encodePrompts } from './text-encoder';
import { tokensPerFrame } from './tokens';
import { Transformer } from './transformer';
import { vaeDecoderMemory, vaeEncoderMemory } from './vae';

/** Device bytes of one stage. */
export interface StagePlan {
  readonly stage: 'text' | 'image' | 'denoise' | 'decode';
  readonly weights: number;
  /** Tensors of ours between runs, the latents among them. */
  readonly activations: number;
  /** The decoder's memory of past frames. */
  readonly caches: number;
  /** Intermediates inside the runtime's runs. */
  readonly runtime: number;
  /** Highest sum at any moment of the stage. */
  readonly peak: number;
}

export interface PlanRequest {
  readonly size: Size;
  /** Frames of a clip, 4n+1; the model's longest when absent. */
  readonly frames?: number;
  readonly precision?: Precision;
  /** What the device's attention kernel sustains; decides the chunk size. */
  readonly flopsPerSecond?: number;
}

export interface MemoryPlan {
  readonly stages: readonly StagePlan[];
  /** The largest stage: each frees its memory before the next one starts. */
  readonly peak: number;
  readonly tokens: number;
  readonly chunkTokens: number;
  readonly native: { readonly width: number; readonly height: number; readonly frames: number };
}

/**
 * The memory that a clip of a model will take on the device, computed and not run: text encoder and
 * denoising by the engine's own code on a backend that only counts, the VAE by the sizes of its layers.
 * The longest prompt (512 tokens) and guidance are assumed.
 */
export async function planMemory(
  config: ModelConfig,
  manifest: ModelManifest,
  request: PlanRequest,
): Promise<MemoryPlan> {
  const precision = request.precision ?? manifest.precision;
  const { width, height } = manifest.nativeSizes[request.size];
  const frames = request.frames ?? manifest.maxClipFrames;
  const { scale_factor_spatial: scale, scale_factor_temporal: stride } = config.vae;
  const size = {
    frames: latentFrames(frames, stride),
    height: height / scale,
    width: width / scale,
  };
  const tokens = size.frames * tokensPerFrame(config.transformer, size);
  const flops = request.flopsPerSecond ?? 3e12;
  const chunkTokens = queryChunkTokens(config.transformer, tokens, flops);

  const encoder = vaeEncoderMemory(config.vae, size.height, size.width);
  const decoder = vaeDecoderMemory(config.vae, size.height, size.width);
  const stages: StagePlan[] = [
    await planText(config, precision),
    { stage: 'image', ...encoder, peak: encoder.total },
    await planDenoise(config, precision, size, chunkTokens),
    { stage: 'decode', ...decoder, peak: decoder.total },
  ];
  return {
    stages,
    peak: Math.max(...stages.map((stage) => stage.peak)),
    tokens,
    chunkTokens,
    native: { width, height, frames },
  };
}

/** Layers come and go one by one, so one of them tells the peak. */
async function planText(config: ModelConfig, precision: Precision): Promise<StagePlan> {
  const one = { ...config.text_encoder, num_layers: 1 };
  const checkpoint = withAliases(zeros(textEncoderTensors(one)), textEncoderAliases);
  const backend = new CountingBackend();
  const prompt = new Array<number>(maxPromptTokens).fill(0);
  await encodePrompts(backend, checkpoint, one, [prompt, prompt], { precision });
  return { stage: 'text', ...peaksOf(backend) };
}

/**
 * One step with one block and with two: whatever depends on the blocks grows by the same for each, so
 * the rest follows. Nothing lives for a single block only, so the peaks of the parts add up alike.
 */
async function planDenoise(
  config: ModelConfig,
  precision: Precision,
  size: { frames: number; height: number; width: number },
  maxChunkTokens: number,
): Promise<StagePlan> {
  const measure = async (layers: number) => {
    const transformer = { ...config.transformer, num_layers: layers };
    const backend = new CountingBackend();
    const checkpoint = zeros(transformerTensors(transformer));
    const model = await Transformer.load(backend, checkpoint, transformer, { precision });
    const values = transformer.in_channels * size.height * size.width;
    const embeds = new Float32Array(maxPromptTokens * transformer.text_dim);
    await denoise(backend, model, {
      size,
      held: new Float32Array(values),
      noise: new Float32Array(values * size.frames),
      scheduler: createScheduler({ kind: 'unipc', steps: 1, flowShift: 5 }),
      guidanceScale: 5,
      prompt: embeds,
      negativePrompt: embeds,
      maxChunkTokens,
    });
    return peaksOf(backend);
  };
  const one = await measure(1);
  const two = await measure(2);
  const grow = (part: keyof typeof one) =>
    one[part] + (config.transformer.num_layers - 1) * (two[part] - one[part]);
  return {
    stage: 'denoise',
    weights: grow('weights'),
    activations: grow('activations'),
    caches: grow('caches'),
    runtime: grow('runtime'),
    peak: grow('peak'),
  };
}

function peaksOf(backend: CountingBackend) {
  const { categories } = backend.counters();
  const peak = (name: string) => categories[name]?.peak ?? 0;
  return {
    weights: peak('weights'),
    activations: peak('activations') + peak('latents'),
    caches: peak('caches'),
    runtime: peak('runtime'),
    peak: backend.peakBytes,
  };
}

/** A checkpoint of the right names and shapes that holds nothing but zeros. */
function zeros(shapes: ReadonlyMap<string, readonly number[]>): Checkpoint {
  const shape = (name: string) => shapes.get(name) ?? [];
  const count = (name: string) => shape(name).reduce((product, size) => product * size, 1);
  return {
    names: () => shapes.keys(),
    has: (name) => shapes.has(name),
    shape,
    bytes: (name) => 4 * count(name),
    read: async (name) => new Float32Array(count(name)),
    readRows: async (name, rows) => new Float32Array(rows.length * (shape(name)[1] ?? 1)),
  };
}
