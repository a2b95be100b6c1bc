import type { MatrixConfig } from './compute';
import type { KernelMode, Storage } from './kernel';

/*
 * The variants of the kernels, what they compute, and what is chosen of them: data without a kernel's text.
 */

interface InSubgroups {
  /** Invocations of a subgroup; the device chooses when absent. */
  readonly subgroup?: number;
}

/** The matrices that a kernel computes with, and the subgroups that do. */
export interface SubgroupMatrices extends MatrixConfig, InSubgroups {
  /** Of the largest subgroup: a workgroup has so many invocations for each of its parts. */
  readonly subgroupSize: number;
}

/** How the subgroups of a workgroup share its tile of `rows × columns`. */
export interface MatrixTiling extends SubgroupMatrices {
  readonly rows: number;
  readonly columns: number;
  /** Parts of the tile, each of one subgroup: down and across. */
  readonly down: number;
  readonly across: number;
}

/** A tile of pixels in a run, or in a rectangle of so many across, whose surroundings are in workgroup memory at once. */
export interface ConvolutionTiling extends MatrixTiling {
  readonly window?: number;
}

/** Geometry of a linear kernel: a workgroup computes `rows × columns`, a thread `threadRows × threadColumns` of them. */
export interface LinearVariant extends InSubgroups {
  /** Power of two. */
  readonly rows: number;
  /** Power of two. */
  readonly columns: number;
  readonly threadRows: number;
  /** Multiple of 4. */
  readonly threadColumns: number;
  /** How tiles lie in workgroup memory where x is f16, f32 otherwise; f16 needs the feature `shader-f16`. */
  readonly shared: 'f32' | 'f16';
  /** Whether a multiply-add has to round once, which WGSL does not promise: of fast linears. */
  readonly fused?: boolean;
  /** Where matrix units compute the shapes that they can (`linear-matrix.ts`). */
  readonly matrix?: MatrixTiling;
}

/** What a linear kernel computes: `W·x + b + up·t`, and what is done with it. */
export interface LinearShape {
  /** Elements of a row of x: a multiple of 4, and of 32 for a weight in blocks. */
  readonly k: number;
  /** Elements of a row of y: a multiple of 4 where y is f16. */
  readonly n: number;
  /** f32 or bf16 [N, K], or blocks of 32 along K as `lib/gpu/reference.ts` reads them: bytes (q8) or nibbles (q4). */
  readonly weight: 'f32' | 'bf16' | 'q8' | 'q4';
  readonly input: Storage;
  /** Of y; f32 where y is updated in place. */
  readonly output: Storage;
  readonly bias: boolean;
  /** Columns of t and up, a multiple of 4; 0 without a low-rank branch. */
  readonly rank: number;
  /** Elements of up; f32 when absent. */
  readonly up?: 'f32' | 'bf16';
  /** `added`, `gated` and `times` update y in place: `y += sum`, `y += gate ⊙ sum`, `y *= sum`. */
  readonly epilogue: 'none' | 'gelu' | 'added' | 'gated' | 'times';
  /** Whether results beyond ±65504, which f16 clamps, are counted. */
  readonly counted?: boolean;
}

/** Geometry of an attention kernel: a workgroup handles `queries` rows, `keys` keys at a time. */
export interface AttentionVariant extends InSubgroups {
  readonly queries: number;
  readonly keys: number;
  /** How tiles of operands in f16 lie in workgroup memory; f16 needs the feature `shader-f16`. */
  readonly shared: 'f32' | 'f16';
  /**
   * Whether the next operands are loaded before the products of these, which hides the time that they take; false where
   * a thread has no registers for them (README).
   */
  readonly ahead?: false;
  /** Rows of a thread; eight of 64 queries or more when absent, and four of fewer. */
  readonly threadRows?: 4 | 8;
}

/** What a call needs of an attention kernel. */
export interface AttentionShape {
  /** Channels of a head: a multiple of 8, at most {@link largestHead}. */
  readonly headSize: number;
  readonly q: Storage;
  readonly kv: Storage;
  readonly out: Storage;
  /** What is added to the logits: one number to those of the last key, or a matrix [rows, keys]. */
  readonly bias: 'none' | 'last' | 'full';
}

/** Geometry of a kernel: a workgroup handles `queries` rows, `keys` keys at a time. */
export interface MatrixAttentionVariant extends SubgroupMatrices {
  readonly queries: number;
  readonly keys: number;
  /** Parts of the rows, each of one subgroup. */
  readonly parts: number;
}

/**
 * Geometry of a convolution: a workgroup computes `pixels × filters`, a thread `threadPixels × threadFilters` of
 * them. Filters are multiples of 4.
 */
export interface ConvolutionVariant extends InSubgroups {
  readonly pixels: number;
  readonly filters: number;
  readonly threadPixels: number;
  readonly threadFilters: number;
  /** Where matrix units compute what they can (`convolution-matrix.ts`). */
  readonly matrix?: ConvolutionTiling;
}

/** What the text of a convolution's kernel depends on. Channels and sizes are uniforms. */
export interface ConvolutionShape {
  /** Frames that are convolved over time: bindings `x0` (the newest), `x1`, `x2`. */
  readonly frames: 1 | 2 | 3;
  readonly input: Storage;
  /** As `packedWeights` (`convolution-weights.ts`) has them; null for filters [N, C, height, width] in f32. */
  readonly weight: Storage | null;
  readonly output: Storage;
  /**
   * What is added: nothing; what the result's place has (`stored`); from the image `side` the same pixel and
   * channel; channels of the small image, repeated over the pixels that a pixel becomes; the same pixel through a
   * 1×1 convolution, whose weights lie behind the others.
   */
  readonly residual: 'none' | 'stored' | 'same' | 'repeated' | 'linear';
  /** Of `side`; that of the input for `linear`. */
  readonly side: Storage;
  readonly bias: boolean;
  /** Of the sum; PReLU with a slope for each filter. */
  readonly activation: 'relu' | 'prelu' | null;
  /** The pixels that a pixel becomes have the same neighbours, and a bias each: [4·N]. */
  readonly shuffled: boolean;
  /** Whether the number of filters is a multiple of 4; if not, the output is f32. */
  readonly wholeVectors: boolean;
}

/**
 * The variants of the kernels that a device uses: the tuner's winners, or the best guess before it ran. Plain
 * data, so that it can be stored. Null where a family has no usable variant: then the runtime
 * computes the networks that need it.
 */
export interface KernelChoice {
  readonly mode: KernelMode;
  /** How activations lie between two kernels; f16 when absent. Sums and residual streams are f32. */
  readonly storage?: Storage;
  readonly linear: LinearVariant | null;
  readonly attention: AttentionVariant | null;
  readonly convolution: ConvolutionVariant | null;
  /**
   * In the mode `fast`, for what it computes: the layers and the self-attention of the transformer's blocks. The
   * families above compute the rest, and this too where it is null.
   */
  readonly fastLinear?: LinearVariant | null;
  readonly fastAttention?: AttentionVariant | null;
  /** In the mode `matrix`, for the convolutions that it computes; those above compute the rest, and all where it is null. */
  readonly matrixConvolution?: ConvolutionVariant | null;
  /** In the mode `matrix`, for the self-attention of the transformer's blocks. */
  readonly matrixAttention?: MatrixAttentionVariant | null;
}

/** A family of kernels whose variants are compared, as `KernelChoice` names it. */
export type Family = Exclude<keyof KernelChoice, 'mode' | 'storage'>;
