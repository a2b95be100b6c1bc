import { at } from '../../../contract';
import { type Backend, type DeviceTensor, elementCount, Scope } from '../../../gpu';
import type { LatentSize } from '../../../pipeline/latents';
import { type TransformerConfig, transformerDim } from '../config';
import { type Chunk, chunkTokens, rotaryTables, tokensPerFrame } from '../tokens';
import type { ClipOptions } from './clip';

type Tensor = DeviceTensor<'float32'>;

/** A chunk's own tables on the device. */
export interface ClipChunk extends Chunk {
  readonly cos: Tensor; // [1, L, headDim/2]
  readonly sin: Tensor;
}

/** A spare tensor for each chunk size. */
export type Spares = Map<number, Tensor>;

/**
 * One tensor per chunk, and a spare for each chunk size: an operator cannot write into its own input,
 * so a chunk's next state goes into the spare and the old one becomes the spare. Several of these can
 * share their spares.
 */
export class ChunkedTensor {
  readonly #tensors: Tensor[];

  constructor(
    scope: Scope,
    chunks: readonly Chunk[],
    width: number,
    readonly spares: Spares,
  ) {
    const make = (count: number) => scope.float32([count, width], 'activations');
    this.#tensors = chunks.map(({ count }) => make(count));
    for (const { count } of chunks) {
      if (!spares.has(count)) spares.set(count, make(count));
    }
  }

  /** The state of chunk `index`, [L, width]. */
  get(index: number): Tensor {
    const tensor = this.#tensors[index];
    if (!tensor) throw new RangeError(`there is no chunk ${index}`);
    return tensor;
  }

  /** A tensor of the chunk's size, [L, width], until the next {@link advance} of any that shares it. */
  spare(index: number): Tensor {
    const count = at(this.get(index).dims, 0);
    const spare = this.spares.get(count);
    if (!spare) throw new RangeError(`there is no spare for ${count} tokens`);
    return spare;
  }

  /** Lets `write` fill the spare tensor, which then is the chunk's state. */
  async advance(index: number, write: (from: Tensor, to: Tensor) => Promise<void>): Promise<void> {
    const from = this.get(index);
    const to = this.spare(index);
    await write(from, to);
    this.#tensors[index] = to;
    this.spares.set(at(from.dims, 0), from);
  }

  copyTo(backend: Backend, other: ChunkedTensor): void {
    this.#tensors.forEach((tensor, index) => {
      backend.copy(tensor, 0, other.get(index), 0, elementCount(tensor.dims));
    });
  }
}

/** The transformer's activations for clips of one size; allocated once per clip. */
export interface ClipMemory {
  readonly size: LatentSize;
  /** S */
  readonly tokens: number;
  readonly chunks: readonly ClipChunk[];
  /** Tokens of the conditioning frames. */
  readonly conditioningTokens: number;
  /** The residual stream, of the first branch where there are two. */
  readonly hidden: ChunkedTensor; // [L, D] each
  /** The residual stream of the second guidance branch. */
  readonly second: ChunkedTensor | null; // [L, D] each
  /** What all blocks together added, by branch; none where no step reuses it. */
  readonly residuals: readonly ChunkedTensor[]; // [L, D] each
  readonly keys: Tensor; // [1, S, D]
  readonly values: Tensor; // [1, S, D]
  /** Keys and values of a chunk of L tokens, [1, L, D], before they are copied into the clip's. */
  pieces(count: number): { readonly keys: Tensor; readonly values: Tensor };
  /** Tokens of a chunk, [L, width], between the clip's latents and the blocks. */
  tokenPiece(count: number): Tensor;
  dispose(): void;
}

/**
 * Allocates the activation memory of a clip. Dispose it when the clip is denoised.
 *
 * @throws KinoraError `OUT_OF_MEMORY`; then nothing stays on the device
 */
export function createClipMemory(
  backend: Backend,
  config: TransformerConfig,
  size: LatentSize,
  options: ClipOptions,
): ClipMemory {
  const scope = new Scope(backend);
  try {
    return takeClipMemory(scope, config, size, options);
  } catch (error) {
    scope.dispose();
    throw error;
  }
}

function takeClipMemory(
  scope: Scope,
  config: TransformerConfig,
  size: LatentSize,
  options: ClipOptions,
): ClipMemory {
  const d = transformerDim(config);
  const perFrame = tokensPerFrame(config, size);
  const tokens = perFrame * size.frames;
  const pairs = config.attention_head_dim / 2;
  const { cos, sin } = rotaryTables(config, size);
  const table = (data: Float32Array, { start, count }: Chunk) =>
    scope.float32(
      [1, count, pairs],
      'activations',
      data.subarray(start * pairs, (start + count) * pairs),
    );
  const width = config.in_channels * elementCount(config.patch_size);
  const plain = chunkTokens(
    size.frames,
    perFrame,
    options.conditioningFrames,
    options.maxChunkTokens,
  );
  const counts = [...new Set(plain.map(({ count }) => count))];
  const pieces = new Map(
    counts.map((count) => [
      count,
      {
        keys: scope.float32([1, count, d], 'activations'),
        values: scope.float32([1, count, d], 'activations'),
        tokens: scope.float32([count, width], 'activations'),
      },
    ]),
  );
  const spares: Spares = new Map();
  const piece = (count: number) => {
    const found = pieces.get(count);
    if (!found) throw new RangeError(`there is no chunk of ${count} tokens`);
    return found;
  };
  return {
    size,
    tokens,
    chunks: plain.map((chunk) => ({ ...chunk, cos: table(cos, chunk), sin: table(sin, chunk) })),
    conditioningTokens: perFrame * options.conditioningFrames,
    hidden: new ChunkedTensor(scope, plain, d, spares),
    second: options.guided ? new ChunkedTensor(scope, plain, d, spares) : null,
    residuals: Array.from(
      { length: options.reusesBlocks ? (options.guided ? 2 : 1) : 0 },
      () => new ChunkedTensor(scope, plain, d, spares),
    ),
    keys: scope.float32([1, tokens, d], 'activations'),
    values: scope.float32([1, tokens, d], 'activations'),
    pieces: piece,
    tokenPiece: (count) => piece(count).tokens,
    dispose: () => scope.dispose(),
  };
}
