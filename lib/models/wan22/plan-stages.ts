import { CountingBackend, elementCount } from '../../gpu';
import { denoise } from '../../pipeline/denoise';
import { createScheduler } from '../../pipeline/schedulers/scheduler';
import { type Checkpoint, withAliases } from '../../weights';
import { bitsOf } from './blocks';
import type { ModelConfig } from './config';
import { precisionFor } from './layer-data';
import type { Precision } from './layers';
import type { LoraBranch, LoraBranches } from './lora';
import { checkpointOfShapes } from './shape-checkpoint';
import {
  type TensorShapes,
  textEncoderAliases,
  textEncoderTensors,
  transformerTensors,
} from './tensors';
import { encodePrompts } from './text-encoder';
import type { LatentSize } from './tokens';
import { type Residency, Transformer } from './transformer';

/** Device bytes of one stage. */
export interface StageBytes {
  readonly weights: number;
  /** Tensors of ours between runs, the latents and a LoRA's factors among them. */
  readonly activations: number;
  /** The decoder's memory of past frames. */
  readonly caches: number;
  /** Intermediates inside the runtime's runs. */
  readonly runtime: number;
  /** Highest sum at any moment of the stage. */
  readonly peak: number;
  /** The most in one buffer. */
  readonly largest: number;
}

export interface StageOptions {
  readonly precision: Precision;
  /** Tokens of one prompt, or of two with guidance. */
  readonly promptTokens: readonly number[];
  readonly lora?: LoraBranches | undefined;
}

/** Bytes of denoising by what stays on the device. */
export interface DenoisePlanner {
  /** Tokens that go through a block together, at most. */
  readonly chunkTokens: number;
  /** The most in one buffer; what stays on the device does not change it. */
  readonly largest: number;
  /** One block's weights. */
  readonly blockBytes: number;
  bytes(residency: Residency): StageBytes;
  peak(residency: Residency): number;
}

/** Layers come and go one by one, so one of them tells the peak. */
export async function planText(config: ModelConfig, options: StageOptions): Promise<StageBytes> {
  const one = { ...config.text_encoder, num_layers: 1 };
  const zeros = zeroCheckpoint(textEncoderTensors(one), options.precision);
  const checkpoint = withAliases(zeros, textEncoderAliases);
  const backend = new CountingBackend();
  const prompts = options.promptTokens.map((tokens) => new Array<number>(tokens).fill(0));
  await encodePrompts(backend, checkpoint, one, prompts, { precision: options.precision });
  return bytesOf(backend);
}

/**
 * One step with one block and with two: whatever depends on the blocks grows by the same for each, so
 * the rest follows. Nothing lives for a single block only, so the peaks of the parts add up alike.
 * A LoRA is taken to change each block as it changes the one with the largest ranks.
 */
export async function planDenoise(
  config: ModelConfig,
  size: LatentSize,
  maxChunkTokens: number,
  options: StageOptions,
): Promise<DenoisePlanner> {
  const lora = options.lora ? uniform(options.lora) : undefined;
  const measure = async (layers: number) => {
    const transformer = { ...config.transformer, num_layers: layers };
    const backend = new CountingBackend();
    const checkpoint = zeroCheckpoint(transformerTensors(transformer), options.precision);
    const { precision } = options;
    const reading = { precision, ...(lora ? { lora } : {}) };
    const model = await Transformer.load(backend, checkpoint, transformer, reading);
    const values = transformer.in_channels * size.height * size.width;
    const [prompt = 1, negative] = options.promptTokens;
    const embeds = (tokens: number) => new Float32Array(tokens * transformer.text_dim);
    await denoise(backend, model, {
      size,
      held: new Float32Array(values),
      noise: new Float32Array(values * size.frames),
      scheduler: createScheduler({ kind: 'unipc', steps: 1, flowShift: 5 }),
      guidanceScale: negative === undefined ? 1 : 5,
      prompt: embeds(prompt),
      negativePrompt: embeds(negative ?? 1),
      maxChunkTokens,
    });
    return bytesOf(backend);
  };
  const [one, two] = [await measure(1), await measure(2)];
  const blocks = config.transformer.num_layers;
  const blockBytes = two.weights - one.weights;
  const grown = (part: keyof StageBytes) => one[part] + (blocks - 1) * (two[part] - one[part]);
  const bytes = ({ residentBlocks, bufferSets }: Residency): StageBytes => {
    const held = residentBlocks >= blocks ? blocks : residentBlocks + bufferSets;
    const saved = (blocks - held) * blockBytes;
    return {
      weights: grown('weights') - saved,
      activations: grown('activations'),
      caches: grown('caches'),
      runtime: grown('runtime'),
      peak: grown('peak') - saved,
      largest: two.largest,
    };
  };
  return {
    chunkTokens: maxChunkTokens,
    largest: two.largest,
    blockBytes,
    bytes,
    peak: (residency) => bytes(residency).peak,
  };
}

function bytesOf(backend: CountingBackend): StageBytes {
  const { categories } = backend.counters();
  const peak = (name: string) => categories[name]?.peak ?? 0;
  return {
    weights: peak('weights'),
    activations: peak('activations') + peak('latents') + peak('lora'),
    caches: peak('caches'),
    runtime: peak('runtime'),
    peak: backend.peakBytes,
    largest: backend.largestBuffer,
  };
}

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
