import type { Precision } from '../../../contract';
import { type Backend, elementCount, Scope } from '../../../gpu';
import type { LatentSize } from '../../../pipeline/latents';
import { type Blocks, blockSize, type Checkpoint } from '../../../weights';
import { bitsOf, precisionFor } from '../../layers/layer-data';
import { checkpointOfShapes } from '../../layers/shape-checkpoint';
import type { TensorShapes } from '../../layers/tensor-shapes';
import { maxPromptTokens } from '../../umt5/text-encoder-config';
import { measureChunkTokens } from '../chunk-size';
import type { TransformerConfig } from '../config-schemas';
import type { ModelConfig } from '../model-config';
import { createTinyDecoder } from '../tiny-decoder';
import { publishedTinyDecoder, tinyGraphs } from '../tiny-decoder/tiny-decoder-weights';
import { tokensPerFrame } from '../tokens';
import { Transformer, tokenWidth } from '../transformer';
import { createVaeDecoder, decodeCost, decoderGraphs } from '../vae';
import { transformerTensors, vaeTensors } from '../wan-tensors';

/** A latent frame of 1280×704. */
export const nativeFrame = { height: 44, width: 80 } as const;

/** A clip of as many tokens: whole frames of 1280×704 where they fit, else two of one row. */
export function clipOfTokens(config: TransformerConfig, tokens: number): LatentSize {
  const [, patchHeight, patchWidth] = config.patch_size;
  const frames = tokens / tokensPerFrame(config, { ...nativeFrame, frames: 1 });
  if (Number.isInteger(frames) && frames > 1) return { ...nativeFrame, frames };
  return { frames: 2, height: patchHeight, width: (tokens / 2) * patchWidth };
}

export type Decoder = 'tiny' | 'full';

/** A network with random weights of a model's widths, on a device. */
export interface SyntheticNetwork {
  /** Computes it once; resolves when it is submitted. */
  run(): Promise<void>;
  dispose(): Promise<void>;
}

/**
 * One block of the transformer, in 8 bits, with the embedding and the head of a clip, whose first frame is given.
 *
 * @throws KinoraError `OUT_OF_MEMORY`; then nothing of it stays on the device
 */
export async function openBlock(
  backend: Backend,
  config: ModelConfig,
  size: LatentSize,
): Promise<SyntheticNetwork> {
  const transformer = { ...config.transformer, num_layers: 1 };
  const checkpoint = syntheticCheckpoint(transformerTensors(transformer), 'int8');
  const owned: { dispose(): void }[] = [];
  const dispose = async () => {
    for (const part of owned.reverse()) part.dispose();
    await backend.releaseSessions();
  };
  const own = <T extends { dispose(): void }>(part: T): T => {
    owned.push(part);
    return part;
  };
  try {
    const tokens = size.frames * tokensPerFrame(transformer, size);
    const maxChunkTokens = await measureChunkTokens(backend, transformer, tokens);
    const model = own(
      await Transformer.load(backend, checkpoint, transformer, { precision: 'int8' }),
    );
    const clip = own(await model.createClip(size, { given: [0], maxChunkTokens, guided: false }));
    const scope = own(new Scope(backend));
    const width = tokenWidth(transformer);
    const rows = (name: string, count: number) =>
      scope.float32([count, width], 'latents', noise(name, count * width, 1));
    const free = tokens - clip.conditioningTokens;
    const latents = {
      conditioning: rows('frame', clip.conditioningTokens),
      free: rows('tokens', free),
    };
    const times = {
      conditioning: model.createTimeEmbedding(scope),
      noisy: model.createTimeEmbedding(scope),
    };
    await model.embedTime(clip, 0, times.conditioning);
    await model.embedTime(clip, 700, times.noisy);
    const embeds = noise('text', maxPromptTokens * transformer.text_dim, 1);
    const text = own(await model.prepareText(clip, embeds));
    const velocity = { conditioning: null, free: scope.float32([free, width], 'latents') };
    return {
      run: () => model.velocity(clip, latents, times, [{ text, velocity }]),
      dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Tensors and graphs of the published tiny decoder, or of the VAE's own. */
function decoderOf(config: ModelConfig, decoder: Decoder, { height, width }: LatentSize) {
  const size = { latentHeight: height, latentWidth: width };
  const tiny = publishedTinyDecoder(config);
  return decoder === 'tiny'
    ? { size, tensors: tiny, graphs: tinyGraphs(tiny, size) }
    : { size, tensors: vaeTensors(config.vae), graphs: decoderGraphs(config.vae, size) };
}

/** Operations of a decoder for so many latent frames. */
export function decoderFlops(config: ModelConfig, decoder: Decoder, size: LatentSize): number {
  return decodeCost(decoderOf(config, decoder, size).graphs, size.frames).flops;
}

/** @throws KinoraError `OUT_OF_MEMORY`; then nothing of it stays on the device */
export async function openDecoder(
  backend: Backend,
  config: ModelConfig,
  decoder: Decoder,
  latents: LatentSize,
): Promise<SyntheticNetwork> {
  const { size, tensors } = decoderOf(config, decoder, latents);
  const checkpoint = syntheticCheckpoint(tensors, 'f32');
  const network = await (decoder === 'tiny'
    ? createTinyDecoder(backend, checkpoint, size)
    : createVaeDecoder(backend, config.vae, checkpoint, size));
  const frame = noise('frame', config.vae.z_dim * latents.height * latents.width, 1);
  const clip = Array.from({ length: latents.frames }, () => frame);
  return {
    async run() {
      for await (const _ of network.decodeClip(clip));
    },
    async dispose() {
      network.dispose();
      await backend.releaseSessions();
    },
  };
}

/** Passes of one block, and the tiny decoder, as often as a video has them; both have run once. */
export async function openVideo(
  backend: Backend,
  config: ModelConfig,
  latents: LatentSize,
  passes: number,
): Promise<SyntheticNetwork> {
  const block = await openBlock(backend, config, latents);
  try {
    const decoder = await openDecoder(backend, config, 'tiny', latents);
    await block.run();
    await decoder.run();
    return {
      async run() {
        for (let i = 0; i < passes; i++) await block.run();
        await decoder.run();
      },
      dispose: () => decoder.dispose().finally(block.dispose),
    };
  } catch (error) {
    await block.dispose();
    throw error;
  }
}

/** Standard deviation of a byte whose values are all equally frequent. */
const byteDeviation = Math.sqrt((256 ** 2 - 1) / 12);

/**
 * A checkpoint of given shapes, filled with noise when it is read: weights of a real width without a
 * file. Linear weights come in blocks at once, as a store has them. The same name always has the same
 * content. Weights are scaled by 1/√(fan-in), so that activations neither grow nor vanish.
 */
export function syntheticCheckpoint(shapes: TensorShapes, precision: Precision): Checkpoint {
  const read = (name: string, shape: readonly number[]) =>
    noise(name, elementCount(shape), fanIn(shape));
  return checkpointOfShapes(shapes, {
    read,
    readLinear(name, rows, columns) {
      const bits = bitsOf(precisionFor(precision, columns));
      return bits === null ? read(name, [rows, columns]) : noiseBlocks(name, rows, columns, bits);
    },
    readRow: (name, row, width) => noise(`${name} ${row}`, width, 1),
  });
}

/** What sums up to one output: 1 for a norm or a bias. */
function fanIn(shape: readonly number[]): number {
  return shape.length > 1 ? elementCount(shape.slice(1)) : 1;
}

/** Uniform numbers with a deviation of 1/√fanIn. */
function noise(name: string, count: number, fanIn: number): Float32Array<ArrayBuffer> {
  const bits = randomWords(name, count);
  const out = new Float32Array(bits.buffer);
  const half = 2 ** 31;
  const scale = Math.sqrt(3 / fanIn) / half;
  for (let i = 0; i < count; i++) out[i] = ((bits[i] as number) - half) * scale;
  return out;
}

/** Random weights in blocks of 32, with a deviation of 1/√columns. */
function noiseBlocks(name: string, rows: number, columns: number, bits: 8 | 4): Blocks {
  const count = (rows * columns * bits) / 8;
  const values = new Uint8Array(randomWords(name, Math.ceil(count / 4)).buffer, 0, count);
  const deviation = bits === 8 ? byteDeviation : Math.sqrt((16 ** 2 - 1) / 12);
  const scales = new Float32Array((rows * columns) / blockSize);
  scales.fill(1 / (deviation * Math.sqrt(columns)));
  return { bits, values, scales };
}

/** Marsaglia's xorshift32, seeded by a name (FNV-1a). */
function randomWords(name: string, count: number): Uint32Array<ArrayBuffer> {
  let state = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    state = Math.imul(state ^ name.charCodeAt(i), 0x01000193);
  }
  state ||= 1;
  const words = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  return words;
}
