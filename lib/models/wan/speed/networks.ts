import { type Backend, Scope } from '../../../gpu';
import type { LatentSize } from '../../../pipeline/latents';
import { maxPromptTokens } from '../../umt5/text-encoder-config';
import { measureChunkTokens } from '../chunk-size';
import type { TransformerConfig } from '../config-schemas';
import type { ModelConfig } from '../model-config';
import { createTinyDecoder } from '../tiny-decoder';
import { publishedTinyDecoder } from '../tiny-decoder/published';
import { tinyGraphs } from '../tiny-decoder/tiny-decoder-weights';
import { tokensPerFrame } from '../tokens';
import { Transformer, tokenWidth } from '../transformer';
import { createVaeDecoder, decodeCost, decoderGraphs } from '../vae';
import { transformerTensors, vaeTensors } from '../wan-tensors';
import { noise, syntheticCheckpoint } from './synthetic';

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
