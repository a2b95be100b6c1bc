import { type Backend, Scope } from '../../../gpu';
import type { BenchmarkOptions } from '../../../pipeline/benchmark';
import type { LatentSize } from '../../../pipeline/latents';
import type { TransformerConfig } from '../config';
import type { WanConfig } from '../model';
import { transformerTensors } from '../tensors';
import { tokensPerFrame } from '../tokens';
import { conditionWidth, Transformer, type TransformerWeights, tokenWidth } from '../transformer';
import { noise, syntheticCheckpoint } from './synthetic';

/** Rows of an image's features: those of CLIP ViT-H. */
const imageFeatureRows = 257;

/** One frame of 1280×704. */
const native: LatentSize = { frames: 1, height: 44, width: 80 };

/**
 * A clip of as many tokens: whole frames of 1280×704 where they fit, else two frames, the first of them conditioning.
 *
 * @throws RangeError for an odd number of tokens
 */
export function clipOfTokens(config: TransformerConfig, tokens: number): LatentSize {
  const [, patchHeight, patchWidth] = config.patch_size;
  const perFrame = tokensPerFrame(config, native);
  if (tokens % perFrame === 0 && tokens > perFrame) {
    return { ...native, frames: tokens / perFrame };
  }
  const half = tokens / 2;
  if (!Number.isInteger(half)) throw new RangeError(`${tokens} tokens are no two equal frames`);
  let rows = Math.floor(Math.sqrt(half));
  while (half % rows !== 0) rows -= 1;
  return { frames: 2, height: rows * patchHeight, width: (half / rows) * patchWidth };
}

/**
 * The frame that enters the decoder beside {@link clipOfTokens}: whole where the clip has frames of 1280×704, else
 * with a position per token, a fourth of it.
 */
export function frameOfTokens(
  config: TransformerConfig,
  tokens: number,
): Pick<LatentSize, 'height' | 'width'> {
  const { frames, height, width } = clipOfTokens(config, tokens);
  const [, patchHeight, patchWidth] = config.patch_size;
  if (frames * tokensPerFrame(config, native) === tokens) return { height, width };
  return { height: height / patchHeight, width: width / patchWidth };
}

/** Blocks of the transformer with random weights of its widths, on the device. */
export interface SyntheticBlocks {
  /** Those outside of the blocks. */
  readonly weights: TransformerWeights;
  /** One pass over the clip; resolves when it is submitted. */
  pass(): Promise<void>;
  dispose(): Promise<void>;
}

/** What {@link openBlocks} takes of the options of a benchmark. */
export type BlockOptions = Pick<
  BenchmarkOptions,
  'layers' | 'tokens' | 'textTokens' | 'precision' | 'maxChunkTokens'
>;

/**
 * Puts blocks of the transformer on a device, which computes them as `backend.kernels` says.
 *
 * @throws KinoraError `OUT_OF_MEMORY`; then nothing of it stays on the device
 */
export async function openBlocks(
  backend: Backend,
  config: WanConfig,
  options: BlockOptions,
): Promise<SyntheticBlocks> {
  const { layers, tokens, textTokens, precision, maxChunkTokens } = options;
  const transformer = { ...config.transformer, num_layers: layers };
  const checkpoint = syntheticCheckpoint(transformerTensors(transformer), precision);
  const model = await Transformer.load(backend, checkpoint, transformer, options);
  const scope = new Scope(backend);
  const owned: { dispose(): void }[] = [model, scope];
  const dispose = async () => {
    for (const part of owned.reverse()) part.dispose();
    await backend.releaseSessions();
  };
  try {
    const conditioned = conditionWidth(transformer) > 0;
    const imageRows = transformer.image_dim ? imageFeatureRows : undefined;
    const conditioningFrames = conditioned ? [] : [0];
    const clipOptions = { given: conditioningFrames, maxChunkTokens, guided: false, imageRows };
    const clip = await model.createClip(clipOfTokens(transformer, tokens), clipOptions);
    owned.push(clip);
    const width = tokenWidth(transformer);
    const rows = (name: string, count: number) =>
      scope.float32([count, width], 'latents', noise(name, count * width, 1));
    const held = clip.conditioningTokens;
    const latents = {
      conditioning: held > 0 ? rows('frame', held) : null,
      free: rows('tokens', tokens - held),
    };
    const free = scope.float32([tokens - held, width], 'latents');
    if (conditioned) {
      clip.setCondition(noise('condition', tokens * conditionWidth(transformer), 1));
    }
    const { image_dim: features } = transformer;
    if (features) await model.embedImage(clip, noise('image', imageFeatureRows * features, 1));
    const conditioning = model.createTimeEmbedding(scope);
    const noisy = model.createTimeEmbedding(scope);
    await model.embedTime(clip, 0, conditioning);
    await model.embedTime(clip, 700, noisy);
    const embeds = noise('text', textTokens * transformer.text_dim, 1);
    const text = await model.prepareText(clip, embeds);
    owned.push(text);
    const branches = [{ text, velocity: { conditioning: null, free } }];
    return {
      weights: model.weights,
      pass: () => model.velocity(clip, latents, { conditioning, noisy }, branches),
      dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}
