import {
  type Activation,
  type ConvolutionLayer,
  filterDims,
  type ImageMatch,
  imageSize,
  memoised,
  repeatPicks,
} from '../../graph';
import * as onnx from '../../onnx';

type Float = onnx.Value<'float32'>;

/** How a backend wants convolutions; see `Backend.convLayout`. */
type Layout = 'nhwc' | 'nchw';

/** Guards the division of a zero vector only, as the 1e-12 of the norm's definition does. */
const epsilon = 1e-24;

/** With fewer channels the norm is composed of products, where a GPU runs it. */
const fewChannels = 64;

/** Widest matrix that ONNX Runtime multiplies without tiles. */
const untiled = 7;

/** A match as a graph of the runtime. Matches that are alike have one; sizes of images are symbolic but for attention. */
export function imageGraph(match: ImageMatch, layout: Layout): onnx.Graph {
  if (match.kind === 'attention') return attentionGraph(imageSize(match.x));
  const { norm, residual, upsample, shuffle, layer } = match;
  const activation = match.activation?.op ?? null;
  const { inputs, filters, kernel, stride, taps, bias, depthwise } = layer;
  const side = residual ? imageSize(residual.side).channels : 0;
  if (upsample) {
    const picks = residual ? repeatPicks(match) : null;
    return upsampleGraph({ layout, inputs, filters, bias, side, picks, activation });
  }
  const spec = {
    layout,
    inputs,
    filters,
    kernel,
    stride,
    taps,
    bias,
    depthwise,
    activation,
    shuffle,
  };
  return convolutionGraph({ ...spec, norm: norm !== null, residual: residual?.kind ?? null, side });
}

/**
 * RMS norm over the channels. ONNX Runtime's kernel uses a workgroup per pixel, which is slow for a few
 * channels; there the mean square is computed by products with small matrices.
 */
export function channelNorm(x: Float, gamma: Float, channels: number, layout: Layout): Float {
  const factors = layout === 'nhwc' && channels < fewChannels ? factorsOf(channels) : null;
  if (!factors) return onnx.rmsNormalization(x, gamma, epsilon);
  const { graph } = x;
  const leading = x.dims.slice(0, -1);
  let sum = onnx.mul(x, x);
  let groups = channels;
  for (const factor of factors) {
    groups /= factor;
    const weights = new Float32Array(factor).fill(1 / factor);
    const grouped = onnx.reshape(sum, [...leading, groups, factor]);
    const sums = onnx.matMul(grouped, graph.constant('float32', [factor, 1], weights));
    sum = onnx.reshape(sums, [...leading, groups]);
  }
  const root = onnx.sqrt(onnx.add(sum, graph.scalar(epsilon)));
  return onnx.mul(onnx.div(x, root), gamma);
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
export function joinsTaps({ taps, filters }: Pick<ConvolutionLayer, 'taps' | 'filters'>): boolean {
  return taps === 3 && filters < 32;
}

interface ConvolutionSpec
  extends Omit<ConvolutionLayer, 'name' | 'around' | 'part' | 'precise' | 'average'> {
  readonly layout: Layout;
  /** RMS norm and SiLU before the convolution. */
  readonly norm: boolean;
  readonly activation: Activation['op'] | null;
  readonly shuffle: boolean;
  readonly residual: 'same' | 'linear' | 'repeated' | null;
  /** Channels of the image that is added. */
  readonly side: number;
}

/**
 * A causal convolution over time, one frame x_t at a time: `y_t = W2·x_t + P_t`,
 * `P_{t+1} = W1·x_t + Q_t`, `Q_{t+1} = W0·x_t`. So the state is two images of partial sums with the
 * filters' channels, and no past frame is kept or convolved again. Of two taps there is no Q; those of a
 * depthwise layer are not summed, P stands behind `W2·x_t`.
 *
 * Inputs: x, bias, tap2; tap1, p for two taps, tap0, q for three, or all of them in `taps` [3·filters, …]
 * with a bias as long; gamma for the norm; slope for PReLU; residual, residualWeight, residualBias. Outputs: y; pNext,
 * qNext.
 */
const convolutionGraph = memoised((spec: ConvolutionSpec) => {
  const { layout, inputs, filters, kernel, stride, taps, depthwise, residual, side } = spec;
  const g = new onnx.GraphBuilder(`convolution ${inputs}→${filters}`);
  const edge = kernel === 2 ? 0 : (kernel - 1) / 2;
  const [each, channels] = filterDims(spec);
  const before = stride === 1 ? edge : 0;
  const pads = [before, before, edge, edge] as const;

  const x = g.input('x', 'float32', [1, 'H', 'W', inputs]);
  const input = spec.norm
    ? onnx.silu(channelNorm(x, g.input('gamma', 'float32', [inputs]), inputs, layout))
    : x;
  const convolved = (name: string, count: number, bias: Float | null) => {
    const weight = g.input(name, 'float32', [count, channels, kernel, kernel]);
    const group = depthwise ? inputs : 1;
    return onnx.convolution(input, weight, bias, layout, { pads, stride, group });
  };
  const bias = (count: number) => (spec.bias ? g.input('bias', 'float32', [count]) : null);
  const joined = joinsTaps(spec)
    ? onnx.split(convolved('taps', 3 * filters, bias(3 * filters)), 3, [filters, filters, filters])
    : null;
  const tap = (index: 0 | 1 | 2) =>
    joined?.[2 - index] ?? convolved(`tap${index}`, each, index === 2 ? bias(each) : null);

  let y = tap(2);
  const [, rows = 'H', columns = 'W'] = y.dims;
  const image = (name: string, count: number) =>
    g.input(name, 'float32', [1, rows, columns, count]);
  const past = (name: string) => image(name, each);
  if (taps > 1) y = depthwise ? onnx.concat([y, past('p')], 3) : onnx.add(y, past('p'));
  if (residual === 'same') y = onnx.add(y, image('residual', filters));
  if (residual === 'linear') {
    const matrix = g.input('residualWeight', 'float32', [side, filters]);
    const shortcut = onnx.matMul(image('residual', side), matrix);
    y = onnx.add(y, onnx.add(shortcut, g.input('residualBias', 'float32', [filters])));
  }
  y = activated(y, spec);
  g.output('y', spec.shuffle ? onnx.pixelShuffle(y, layout) : y);
  if (taps > 1) g.output('pNext', taps === 3 ? onnx.add(tap(1), past('q')) : tap(1));
  if (taps === 3) g.output('qNext', tap(0));
  return g.build();
});

interface UpsampleSpec
  extends Pick<ConvolutionSpec, 'layout' | 'inputs' | 'filters' | 'bias' | 'activation'> {
  /** Channels of the image that is repeated. */
  readonly side: number;
  /** Output channel o of phase i is channel `o·side/filters + picks[i]` of it; null where nothing is added. */
  readonly picks: readonly number[] | null;
}

/**
 * Nearest ×2 and the 3×3 convolution behind it, plus a shortcut. Seen from the small
 * image, each of the four pixels that a pixel becomes is a 2×2 convolution with summed taps: the
 * same numbers for 4/9 of the multiplications.
 *
 * Inputs: x, phase00…phase11 [filters, C, 2, 2], bias, residual. Output: y [1, 2H, 2W, filters].
 */
const upsampleGraph = memoised((spec: UpsampleSpec) => {
  const { layout, inputs, filters, side, picks } = spec;
  const g = new onnx.GraphBuilder(`upsample ${inputs}→${filters}`);
  const x = g.input('x', 'float32', [1, 'H', 'W', inputs]);
  const bias = spec.bias ? g.input('bias', 'float32', [filters]) : null;
  const residual = picks && g.input('residual', 'float32', [1, 'H', 'W', side]);
  const group = side / filters;
  const grouped =
    residual && group > 1 ? onnx.reshape(residual, [1, 'H', 'W', filters, group]) : null;
  const repeated = (pick: number): Float | null =>
    grouped
      ? onnx.reshape(onnx.slice(grouped, 4, pick, pick + 1), [1, 'H', 'W', filters])
      : residual;
  const phases = [0, 1, 2, 3].map((phase) => {
    const [row, column] = [phase >> 1, phase & 1];
    const weight = g.input(`phase${row}${column}`, 'float32', [filters, inputs, 2, 2]);
    const pads = [1 - row, 1 - column, row, column] as const;
    const y = onnx.convolution(x, weight, bias, layout, { pads });
    const added = repeated(picks?.[phase] ?? 0);
    return added ? onnx.add(y, added) : y;
  });
  g.output('y', activated(onnx.interleave(phases, layout), spec));
  return g.build();
});

/** PReLU is composed, as the runtime has no kernel for it on a GPU. */
function activated(y: Float, spec: Pick<ConvolutionSpec, 'activation' | 'filters'>): Float {
  if (!spec.activation) return y;
  const above = onnx.relu(y);
  if (spec.activation === 'relu') return above;
  if (spec.activation === 'relu6') return onnx.clip(y, 0, 6);
  const slope = y.graph.input('slope', 'float32', [spec.filters]);
  return onnx.add(above, onnx.mul(slope, onnx.sub(y, above)));
}

/**
 * Attention over the pixels of an image, whose size is part of the graph.
 *
 * Inputs: x, gamma; weight0…weight3 [C, C] and bias0…bias3 [C] of q, k, v and the projection. Output: y.
 */
const attentionGraph = memoised(({ height, width, channels }: ReturnType<typeof imageSize>) => {
  const g = new onnx.GraphBuilder(`attention of pixels ${channels}`);
  const image = [1, height, width, channels];
  const x = g.input('x', 'float32', image);
  const rows = onnx.reshape(x, [height * width, channels]);
  const normed = onnx.rmsNormalization(rows, g.input('gamma', 'float32', [channels]), epsilon);
  const project = (from: Float, index: number) => {
    const weight = g.input(`weight${index}`, 'float32', [channels, channels]);
    return onnx.gemm(from, weight, g.input(`bias${index}`, 'float32', [channels]));
  };
  const q = onnx.mul(project(normed, 0), g.scalar(1 / Math.sqrt(channels)));
  const [k, v] = [project(normed, 1), project(normed, 2)];
  // By the runtime's attention one wide head would take hundreds of megabytes of partial results.
  const attended = project(onnx.matMul(onnx.softmax(onnx.gemm(q, k, null)), v), 3);
  g.output('y', onnx.add(x, onnx.reshape(attended, image)));
  return g.build();
});
