import { at } from '../../../contract';
import { memoised } from '../../../graph';
import {
  add,
  attention,
  concat,
  convolution,
  type Dim,
  depthToSpace,
  div,
  GraphBuilder,
  gemm,
  matMul,
  mul,
  reshape,
  rmsNormalization,
  silu,
  slice,
  split,
  sqrt,
  transpose,
  type Value,
} from '../../../onnx';

/*
 * The graphs of the VAE. Images are [1, H, W, C]; H and W stay symbolic, so one
 * graph serves every layer with the same channels, at every size. Weights are inputs.
 */

type Float = Value<'float32'>;

/** How a backend wants convolutions; see `Backend.convLayout`. */
export type Layout = 'nhwc' | 'nchw';

/**
 * Guards the division of a zero vector only, as the 1e-12 of the norm's definition does (README): zero
 * rows stay zero, which the margins of row bands rely on.
 */
const epsilon = 1e-24;

/** With fewer channels the norm is composed of products, where a GPU runs it. */
const fewChannels = 64;

/** Widest matrix that ONNX Runtime multiplies without tiles. */
const untiled = 7;

/**
 * RMS norm over the channels. ONNX Runtime's kernel uses a workgroup per pixel, which is slow for a few
 * channels; there the mean square is computed by products with small matrices.
 */
export function channelNorm(x: Float, gamma: Float, channels: number, layout: Layout): Float {
  const factors = layout === 'nhwc' && channels < fewChannels ? factorsOf(channels) : null;
  if (!factors) return rmsNormalization(x, gamma, epsilon);
  const { graph } = x;
  const leading = x.dims.slice(0, -1);
  let sum = mul(x, x);
  let groups = channels;
  for (const factor of factors) {
    groups /= factor;
    const weights = new Float32Array(factor).fill(1 / factor);
    const grouped = reshape(sum, [...leading, groups, factor]);
    const sums = matMul(grouped, graph.constant('float32', [factor, 1], weights));
    sum = reshape(sums, [...leading, groups]);
  }
  return mul(div(x, sqrt(add(sum, graph.scalar(epsilon)))), gamma);
}

/** Factors of a number, each small enough for an untiled product; null where there are none. */
function factorsOf(count: number): number[] | null {
  const factors: number[] = [];
  let rest = count;
  for (let factor = untiled; factor > 1; factor--) {
    while (rest % factor === 0) {
      factors.push(factor);
      rest /= factor;
    }
  }
  return rest === 1 && count > 1 ? factors : null;
}

/**
 * Whether the three time taps of a convolution are one convolution with three times the filters. The
 * GPU's kernel works on tiles of 32 filters, so with fewer of them three separate convolutions would
 * mostly multiply padding; with more, joining only costs a split.
 */
export function joinsTaps(filters: number): boolean {
  return filters < 32;
}

/** Rows that a convolution without padding leaves of `X`; the name that `conv2d` gives them. */
const innerRows = 'conv(X)';

export interface ConvolutionSpec {
  readonly layout: Layout;
  /** Channels. */
  readonly inputs: number;
  readonly filters: number;
  readonly kernel: 1 | 3;
  /** 3: causal in time by partial sums; 1: the frame alone. */
  readonly taps: 1 | 3;
  /** RMS norm and SiLU before the convolution. */
  readonly norm: boolean;
  /** What is added to the result: nothing, an image, or an image through a 1×1 convolution. */
  readonly residual: ResidualSpec;
  /** The input has a margin row above and below, instead of zero padding there. */
  readonly margin: boolean;
}

export type ResidualSpec =
  | { readonly kind: 'none' }
  | { readonly kind: 'identity' }
  | { readonly kind: 'linear'; readonly inputs: number };

/**
 * A causal convolution over time, one frame x_t at a time: `y_t = W2·x_t + P_t`,
 * `P_{t+1} = W1·x_t + Q_t`, `Q_{t+1} = W0·x_t`. So the state is two images of partial sums with the
 * filters' channels, and no past frame is kept or convolved again.
 *
 * Inputs: x, bias, tap2; tap1, tap0, p, q for three taps, or all of them in `taps` [3·filters, …]
 * with a bias as long; gamma for the norm; residual, residualWeight, residualBias. Outputs: y; pNext,
 * qNext.
 */
export const convolutionGraph = memoised((spec: ConvolutionSpec) => {
  const { layout, inputs, filters, kernel, residual } = spec;
  const g = new GraphBuilder(`vae convolution ${inputs}→${filters}`);
  const rows = spec.margin ? innerRows : 'H';
  const image = (name: string, channels: number) =>
    g.input(name, 'float32', [1, rows, 'W', channels]);
  const edge = kernel === 3 ? 1 : 0;
  const pads = [spec.margin ? 0 : edge, edge, spec.margin ? 0 : edge, edge] as const;

  const x = g.input('x', 'float32', [1, spec.margin ? 'X' : 'H', 'W', inputs]);
  const activated = spec.norm
    ? silu(channelNorm(x, g.input('gamma', 'float32', [inputs]), inputs, layout))
    : x;
  const convolved = (name: string, count: number, bias: Float | null) => {
    const weight = g.input(name, 'float32', [count, inputs, kernel, kernel]);
    return convolution(activated, weight, bias, layout, { pads });
  };
  const bias = (count: number) => g.input('bias', 'float32', [count]);
  const joined =
    spec.taps === 3 && joinsTaps(filters)
      ? split(convolved('taps', 3 * filters, bias(3 * filters)), 3, [filters, filters, filters])
      : null;
  const tap = (index: 0 | 1 | 2) =>
    joined?.[2 - index] ?? convolved(`tap${index}`, filters, index === 2 ? bias(filters) : null);

  let y = tap(2);
  if (spec.taps === 3) y = add(y, image('p', filters));
  if (residual.kind === 'identity') y = add(y, image('residual', filters));
  if (residual.kind === 'linear') {
    const matrix = g.input('residualWeight', 'float32', [residual.inputs, filters]);
    const shortcut = matMul(image('residual', residual.inputs), matrix);
    y = add(y, add(shortcut, g.input('residualBias', 'float32', [filters])));
  }
  g.output('y', y);
  if (spec.taps === 3) {
    g.output('pNext', add(tap(1), image('q', filters)));
    g.output('qNext', tap(0));
  }
  return g.build();
});

export interface UpsampleSpec {
  readonly layout: Layout;
  readonly channels: number;
  /** The parameter-free shortcut (DupUp3D): its input's channels and, per phase, which to take. */
  readonly shortcut: {
    readonly inputs: number;
    /** Output channel o of phase i is input channel `o·inputs/channels + picks[i]`. */
    readonly picks: readonly number[];
  };
  /** As for a convolution; x comes twice, without its last row (`above`) and its first (`below`). */
  readonly margin: boolean;
}

/**
 * Nearest ×2 and the 3×3 convolution behind it, plus the block's shortcut. Seen from the small
 * image, each of the four pixels that a pixel becomes is a 2×2 convolution with summed taps: the
 * same numbers for 4/9 of the multiplications (README).
 *
 * Inputs: above, below (one input x without margin), phase00…phase11 [C, C, 2, 2], bias, shortcut.
 * Output: y [1, 2H, 2W, C].
 */
export const upsampleGraph = memoised((spec: UpsampleSpec) => {
  const { layout, channels, shortcut, margin } = spec;
  const g = new GraphBuilder(`vae upsample ${channels}`);
  const rows = margin ? innerRows : 'H';
  const sources = margin
    ? (['above', 'below'] as const).map((name) => g.input(name, 'float32', [1, 'X', 'W', channels]))
    : [g.input('x', 'float32', [1, 'H', 'W', channels])];
  const bias = g.input('bias', 'float32', [channels]);
  const side = g.input('shortcut', 'float32', [1, rows, 'W', shortcut.inputs]);
  const group = shortcut.inputs / channels;
  const grouped = group === 1 ? null : reshape(side, [1, rows, 'W', channels, group]);
  const shortcutPhase = (pick: number): Float =>
    grouped ? reshape(slice(grouped, 4, pick, pick + 1), [1, rows, 'W', channels]) : side;
  const phases = [0, 1, 2, 3].map((phase) => {
    const [row, column] = [phase >> 1, phase & 1];
    const weight = g.input(`phase${row}${column}`, 'float32', [channels, channels, 2, 2]);
    const pads = [margin ? 0 : 1 - row, 1 - column, margin ? 0 : row, column] as const;
    const source = at(sources, margin ? row : 0);
    const main = convolution(source, weight, bias, layout, { pads });
    return add(main, shortcutPhase(at(shortcut.picks, phase)));
  });
  g.output('y', interleave(phases, layout));
  return g.build();
});

/** q (scaled), k, v [H·W, C] of an image. */
export const projectionsGraph = memoised(({ channels }: { channels: number }) => {
  const g = new GraphBuilder(`vae attention ${channels} in`);
  const x = reshape(g.input('x', 'float32', [1, 'H', 'W', channels]), ['M', channels]);
  const normed = rmsNormalization(x, g.input('gamma', 'float32', [channels]), epsilon);
  for (const name of ['q', 'k', 'v']) {
    const weight = g.input(`${name}Weight`, 'float32', [channels, channels]);
    const bias = g.input(`${name}Bias`, 'float32', [channels]);
    const y = gemm(normed, weight, bias);
    g.output(name, name === 'q' ? mul(y, g.scalar(1 / Math.sqrt(channels))) : y);
  }
  return g.build();
});

/** softmax(q·kᵀ)·v for some rows of q, a single head. */
export const attentionGraph = memoised(({ channels }: { channels: number }) => {
  const g = new GraphBuilder(`vae attention ${channels}`);
  const q = g.input('q', 'float32', ['L', channels]);
  const k = g.input('k', 'float32', ['M', channels]);
  const v = g.input('v', 'float32', ['M', channels]);
  const spec = { heads: 1, headSize: channels, scale: 1, bias: false };
  g.output('y', attention(spec, { q, k, v }));
  return g.build();
});

/** The attention's output projection, added to its input. The image's size is part of the graph. */
export const projectionGraph = memoised(
  ({ channels, height, width }: { channels: number; height: Dim; width: Dim }) => {
    const g = new GraphBuilder(`vae attention ${channels} out`);
    const image = [1, height, width, channels];
    const weight = g.input('weight', 'float32', [channels, channels]);
    const bias = g.input('bias', 'float32', [channels]);
    const y = gemm(g.input('attended', 'float32', ['M', channels]), weight, bias);
    g.output('y', add(g.input('x', 'float32', image), reshape(y, image)));
    return g.build();
  },
);

export interface DownsampleSpec {
  readonly layout: Layout;
  readonly channels: number;
  /** The parameter-free shortcut (AvgDown3D) as a convolution without overlap. */
  readonly shortcut: { readonly inputs: number; readonly kernel: 1 | 2 };
  /** Whether the main path halves the size, too; else it is only added. */
  readonly space: boolean;
}

/**
 * End of an encoder block: 3×3 convolution with stride 2, padded right and below, plus the shortcut.
 *
 * Inputs: x, weight, bias (with `space`), shortcut, shortcutWeight [C, inputs, k, k]. Output: y.
 */
export const downsampleGraph = memoised((spec: DownsampleSpec) => {
  const { layout, channels, shortcut, space } = spec;
  const g = new GraphBuilder(`vae downsample ${shortcut.inputs}→${channels}`);
  const x = g.input('x', 'float32', [1, 'H', 'W', channels]);
  const main = space
    ? convolution(
        x,
        g.input('weight', 'float32', [channels, channels, 3, 3]),
        g.input('bias', 'float32', [channels]),
        layout,
        { stride: 2, pads: [0, 0, 1, 1] },
      )
    : x;
  const { kernel } = shortcut;
  const side = convolution(
    g.input('shortcut', 'float32', [1, 'H', 'W', shortcut.inputs]),
    g.input('shortcutWeight', 'float32', [channels, shortcut.inputs, kernel, kernel]),
    null,
    layout,
    { stride: kernel },
  );
  g.output('y', add(main, side));
  return g.build();
});

const toChannelsFirst = (x: Float) => transpose(x, [0, 3, 1, 2]);
const toChannelsLast = (x: Float) => transpose(x, [0, 2, 3, 1]);

/** Four images of one size as the pixels (0,0), (0,1), (1,0), (1,1) of 2×2 blocks. */
export function interleave(phases: readonly Float[], layout: Layout): Float {
  return pixelShuffle(concat(phases, 3), layout);
}

/** [1, H, W, 4·C] → [1, 2H, 2W, C]; channel `(row·2 + column)·C + c` goes to (row, column). */
export function pixelShuffle(x: Float, layout: Layout): Float {
  if (layout === 'nhwc') return depthToSpace(x, 2, layout);
  return toChannelsLast(depthToSpace(toChannelsFirst(x), 2, layout));
}
