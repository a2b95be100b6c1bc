import type { LatentSize } from '../../pipeline/latents';
import { type TransformerConfig, transformerDim } from './config-schemas';

/** Tokens of one latent frame. */
export function tokensPerFrame(config: TransformerConfig, size: LatentSize): number {
  const [, patchHeight, patchWidth] = config.patch_size;
  return (size.height / patchHeight) * (size.width / patchWidth);
}

/**
 * The frames of a clip in the order of their tokens: first those that are given, so that no chunk has tokens of both
 * timesteps. Attention knows no order: where a token belongs is in its rotary angles.
 *
 * @param conditioning frames that are given, in ascending order
 */
export function tokenOrder(frames: number, conditioning: readonly number[]): number[] {
  const free = Array.from({ length: frames }, (_, f) => f).filter((f) => !conditioning.includes(f));
  return [...conditioning, ...free];
}

/**
 * Calls `visit(channel-first index, token index)` for every element of latents.
 *
 * Token s = (i·H/ph + y)·W/pw + x of frame `order[i]` holds its patch in the order (channel, dy, dx): the
 * order of the patch embedding's kernel.
 */
function forEachElement(
  channels: number,
  size: LatentSize,
  [, ph, pw]: TransformerConfig['patch_size'],
  order: readonly number[],
  visit: (latentIndex: number, tokenIndex: number) => void,
): void {
  const { frames, height, width } = size;
  let tokenIndex = 0;
  for (const f of order) {
    for (let y = 0; y < height; y += ph) {
      for (let x = 0; x < width; x += pw) {
        for (let c = 0; c < channels; c++) {
          const plane = (c * frames + f) * height;
          for (let dy = 0; dy < ph; dy++) {
            for (let dx = 0; dx < pw; dx++) {
              visit((plane + y + dy) * width + x + dx, tokenIndex++);
            }
          }
        }
      }
    }
  }
}

/**
 * Latents [C, F, H, W] → tokens [S, C·ph·pw].
 *
 * @param order of the frames ({@link tokenOrder}); their own when absent
 */
export function latentsToTokens(
  latents: Float32Array,
  channels: number,
  size: LatentSize,
  config: TransformerConfig,
  order: readonly number[] = tokenOrder(size.frames, []),
): Float32Array {
  const tokens = new Float32Array(latents.length);
  forEachElement(channels, size, config.patch_size, order, (from, to) => {
    tokens[to] = latents[from] as number;
  });
  return tokens;
}

/**
 * Tokens [S, C·ph·pw] → latents [C, F, H, W].
 *
 * @param order of the frames in the tokens; their own when absent
 */
export function tokensToLatents(
  tokens: Float32Array,
  channels: number,
  size: LatentSize,
  config: TransformerConfig,
  order: readonly number[] = tokenOrder(size.frames, []),
): Float32Array {
  const latents = new Float32Array(tokens.length);
  forEachElement(channels, size, config.patch_size, order, (to, from) => {
    latents[to] = tokens[from] as number;
  });
  return latents;
}

/**
 * The order in which rows of `proj_out` must be taken so that the head writes tokens in the order of
 * {@link latentsToTokens}: the checkpoint has them as (dy, dx, channel), the opposite of its input
 * side (transformer/README.md). With it the latents stay in token order through the whole loop.
 */
export function headRows(config: TransformerConfig): number[] {
  const [, ph, pw] = config.patch_size;
  const rows: number[] = [];
  for (let c = 0; c < config.out_channels; c++) {
    for (let patch = 0; patch < ph * pw; patch++) rows.push(patch * config.out_channels + c);
  }
  return rows;
}

/** Tokens, one after another, that go through the block graphs together. */
export interface Chunk {
  /** First token. */
  readonly start: number;
  /** Tokens. */
  readonly count: number;
  /** Whether these tokens belong to conditioning frames: timestep 0, content never changes. */
  readonly conditioning: boolean;
}

/**
 * Cuts a clip into chunks: whole frames where one fits into `maxTokens`, else parts of frames. No
 * chunk has both conditioning and noisy tokens, so that each has one timestep and modulation is a row, not a
 * table (transformer/README.md, "Two timesteps").
 *
 * @param maxTokens upper bound of a chunk, 1 or more: it bounds the time of a dispatch
 */
export function chunkTokens(
  frames: number,
  perFrame: number,
  conditioningFrames: number,
  maxTokens: number,
): Chunk[] {
  const chunks: Chunk[] = [];
  const most = Math.floor(maxTokens / perFrame);
  const cut = (from: number, to: number, conditioning: boolean) => {
    const size =
      most < 1
        ? equalPart(perFrame, maxTokens)
        : perFrame * equalPart((to - from) / perFrame, most);
    for (let start = from; start < to; start += size) {
      chunks.push({ start, count: Math.min(size, to - start), conditioning });
    }
  };
  cut(0, conditioningFrames * perFrame, true);
  cut(conditioningFrames * perFrame, frames * perFrame, false);
  return chunks;
}

/**
 * Size of the parts in which to cut `total`. Equal chunks share buffers and shapes: so it is the
 * largest divisor within the bound, unless that would make many more parts; then the last is smaller.
 */
function equalPart(total: number, most: number): number {
  const bound = Math.min(total, Math.max(1, Math.floor(most)));
  let size = bound;
  while (size > 1 && total % size !== 0) size -= 1;
  return size * 2 < bound ? bound : size;
}

/*
 * Floating-point operations of what works on rows, two for a multiplication with its addition. Norms, activations and softmax are not counted.
 */

/** One pass of the transformer's blocks over a clip of S tokens, with a text of T rows. */
export function passFlops(config: TransformerConfig, tokens: number, text: number): number {
  const d = transformerDim(config);
  const linear = 2 * tokens * d * d;
  const block =
    // Self-attention, then cross-attention and the feed-forward network.
    4 * linear +
    4 * tokens * tokens * d +
    (4 * text * d * d + 2 * linear + 4 * tokens * text * d + 4 * tokens * d * config.ffn_dim);
  return config.num_layers * block;
}
