import type { DeviceTensor, Scope } from '../../../gpu';
import type { LatentSize } from '../../../pipeline/latents';
import type { Chunk } from '../tokens';
import type { BlockWeights } from './weights';

export type Tensor = DeviceTensor<'float32'>;

/** What the blocks need of one timestep. */
export interface TimeEmbedding {
  readonly temb: Tensor; // [1, D]
  readonly modulation: Tensor; // [6, D]
}

/** The timesteps of a clip's tokens. */
export interface Times {
  /** Of the conditioning tokens: 0. */
  readonly conditioning: TimeEmbedding;
  readonly noisy: TimeEmbedding;
}

/** Memory for a text's keys and values in one block, in the layout of the clip that made it. */
export interface TextMemory {
  readonly keys: DeviceTensor;
  readonly values: DeviceTensor;
}

/** A prompt as the blocks see it. */
export interface TextContext {
  /** T: rows of the context, of keys and of values. */
  readonly rows: number;
  readonly context: Tensor; // [T, D]
  /** Added to the logit of the last key, which stands for all empty rows of the text at once. */
  readonly lastBias: number;
  /** Null where the clip has memory of its own for it. */
  readonly memory: TextMemory | null;
  dispose(): void;
}

/** Rows of all tokens [S, C·ph·pw] in two tensors. A chunk has rows of one of them only. */
export interface TokenRows {
  /** Null where these tokens are left out. */
  readonly conditioning: Tensor | null; // [P, C·ph·pw]
  readonly free: Tensor; // [S − P, C·ph·pw]
}

/** The tensor with a chunk's rows and the first of them; null where they are left out. */
export function placeOf(
  { conditioning, free }: TokenRows,
  chunk: Chunk,
  conditioningTokens: number,
): { readonly tensor: Tensor; readonly start: number } | null {
  if (!chunk.conditioning) return { tensor: free, start: chunk.start - conditioningTokens };
  return conditioning && { tensor: conditioning, start: chunk.start };
}

/** Sizes and work of a clip that are known before it runs. */
export interface ClipOptions {
  /** Latent frames that are given: they stay as they are, at timestep 0. */
  readonly conditioningFrames: number;
  /** Upper bound of a chunk. */
  readonly maxChunkTokens: number;
  /** Whether two branches will run (guidance scale over 1). */
  readonly guided: boolean;
  /** Whether what the blocks add is kept for later steps. */
  readonly reusesBlocks?: boolean;
}

/** Where the head takes its rows from: a residual stream, or the embedded tokens and what the blocks added before. */
export type HeadSource = { readonly stream: number } | { readonly reused: number };

/**
 * The activations of a clip on the device and the steps of a pass over them, in the order of the README. There
 * is a residual stream [S, D] for each guidance branch: 0, and 1 with guidance. Steps resolve when their work is
 * submitted.
 */
export interface Clip {
  readonly size: LatentSize;
  /** S */
  readonly tokens: number;
  /** Tokens of the conditioning frames. */
  readonly conditioningTokens: number;
  /** Takes memory for the keys and values of a text of T rows. */
  createTextMemory(scope: Scope, rows: number): TextMemory | null;
  /** Patch embedding of tokens into stream 0. Tokens that are left out have no defined content then. */
  embed(tokens: TokenRows): Promise<void>;
  /** Stream 1 becomes a copy of stream 0. */
  fork(): void;
  /** Steps 1 and 2. */
  selfAttention(stream: number, block: BlockWeights, times: Times): Promise<void>;
  /** Steps 3 and 4. The keys and values of the text are computed before. */
  crossFeedForward(
    stream: number,
    block: BlockWeights,
    times: Times,
    text: TextContext,
  ): Promise<void>;
  /**
   * Holds stream 0, the embedded tokens, for {@link keepResidual}.
   *
   * @throws TypeError where the clip was not made to reuse its blocks
   */
  holdEmbedded(branch: number): void;
  /** Keeps what the blocks added to what was held. */
  keepResidual(branch: number, stream: number): Promise<void>;
  /** @param velocity where the result goes */
  head(source: HeadSource, times: Times, velocity: TokenRows): Promise<void>;
  /** Ends a pass: brings what its kernels have counted to the CPU. */
  finish(): Promise<void>;
  /** Stream 0, [S, D]. */
  read(): Promise<Float32Array>;
  dispose(): void;
}
