import { memoised } from '../../../graph';
import {
  add,
  concat,
  convolution,
  GraphBuilder,
  interleave,
  matMul,
  mul,
  pixelShuffle,
  relu,
  tanh,
  type Value,
} from '../../../onnx';

type Float = Value<'float32'>;

/** How a backend wants convolutions; see `Backend.convLayout`. */
type Layout = 'nhwc' | 'nchw';

export type Variant = 'base' | 'super';

const samePads = (kernel: number) => {
  const edge = (kernel - 1) / 2;
  return [edge, edge, edge, edge] as const;
};

export interface ConvolutionSpec {
  readonly layout: Layout;
  readonly inputs: number;
  readonly filters: number;
  readonly kernel: 1 | 3;
  readonly bias: boolean;
  /** Around the convolution: the base's `3·tanh(x/3)` at its start, ReLU before or behind. */
  readonly before: 'nothing' | 'soft clamp' | 'relu';
  readonly after: 'nothing' | 'relu';
}

export const convolutionGraph = memoised((spec: ConvolutionSpec) => {
  const { inputs, filters, kernel } = spec;
  const g = new GraphBuilder(`tiny convolution ${inputs}→${filters}`);
  let x: Float = g.input('x', 'float32', [1, 'H', 'W', inputs]);
  if (spec.before === 'relu') x = relu(x);
  if (spec.before === 'soft clamp') x = mul(tanh(mul(x, g.scalar(1 / 3))), g.scalar(3));
  const weight = g.input('weight', 'float32', [filters, inputs, kernel, kernel]);
  const bias = spec.bias ? g.input('bias', 'float32', [filters]) : null;
  const y = convolution(x, weight, bias, spec.layout, { pads: samePads(kernel) });
  g.output('y', spec.after === 'relu' ? relu(y) : y);
  return g.build();
});

export interface BlockSpec {
  readonly layout: Layout;
  readonly channels: number;
  readonly variant: Variant;
}

/**
 * Base: three 3×3 convolutions with ReLU over [x_t ‖ x_{t−1}]; super: depthwise 7×7, then 1×1 to
 * twice the width and back. Both add x_t.
 */
export const blockGraph = memoised(({ layout: convLayout, channels: c, variant }: BlockSpec) => {
  const g = new GraphBuilder(`tiny ${variant} block ${c}`);
  const image = (name: string) => g.input(name, 'float32', [1, 'H', 'W', c]);
  const x = image('x');
  const pair = concat([x, image('previous')], 3);
  if (variant === 'base') {
    const layer = (value: Float, index: number, inputs: number) =>
      convolution(
        value,
        g.input(`weight${index}`, 'float32', [c, inputs, 3, 3]),
        g.input(`bias${index}`, 'float32', [c]),
        convLayout,
        { pads: samePads(3) },
      );
    const first = relu(layer(pair, 0, 2 * c));
    const second = relu(layer(first, 1, c));
    g.output('y', relu(add(layer(second, 2, c), x)));
  } else {
    const depthwise = g.input('depthwise', 'float32', [2 * c, 1, 7, 7]);
    const mixed = convolution(pair, depthwise, null, convLayout, {
      pads: samePads(7),
      group: 2 * c,
    });
    const wide = matMul(mixed, g.input('widen', 'float32', [2 * c, 4 * c]));
    const hidden = relu(add(wide, g.input('widenBias', 'float32', [4 * c])));
    g.output('y', add(matMul(hidden, g.input('narrow', 'float32', [4 * c, c])), x));
  }
  return g.build();
});

export interface GrowSpec {
  readonly layout: Layout;
  readonly inputs: number;
  readonly outputs: number;
}

/**
 * End of a base stage for one of its frames: nearest ×2, TGrow's 1×1 and the 3×3 convolution. The 1×1
 * works per pixel, so it goes first; the rest is four 2×2 convolutions as in the VAE's upsampler.
 */
export const baseGrowGraph = memoised(({ layout: convLayout, inputs, outputs }: GrowSpec) => {
  const g = new GraphBuilder(`tiny base growth ${inputs}→${outputs}`);
  const x = g.input('x', 'float32', [1, 'H', 'W', inputs]);
  const frame = matMul(x, g.input('grow', 'float32', [inputs, inputs]));
  const phases = [0, 1, 2, 3].map((phase) => {
    const [row, column] = [phase >> 1, phase & 1];
    const weight = g.input(`phase${row}${column}`, 'float32', [outputs, inputs, 2, 2]);
    const pads = [1 - row, 1 - column, row, column] as const;
    return convolution(frame, weight, null, convLayout, { pads });
  });
  g.output('y', interleave(phases, convLayout));
  return g.build();
});

/** End of a super stage: 3×3 convolution to four times the channels, ReLU, pixel shuffle. */
export const superShuffleGraph = memoised(({ layout: convLayout, inputs, outputs }: GrowSpec) => {
  const g = new GraphBuilder(`tiny super shuffle ${inputs}→${outputs}`);
  const x = g.input('x', 'float32', [1, 'H', 'W', inputs]);
  const weight = g.input('weight', 'float32', [4 * outputs, inputs, 3, 3]);
  const bias = g.input('bias', 'float32', [4 * outputs]);
  const wide = convolution(x, weight, bias, convLayout, { pads: samePads(3) });
  g.output('y', pixelShuffle(relu(wide), convLayout));
  return g.build();
});

/** TGrow of a super stage for one of its frames. */
export const superGrowGraph = memoised(({ channels }: { channels: number }) => {
  const g = new GraphBuilder(`tiny super growth ${channels}`);
  const x = g.input('x', 'float32', [1, 'H', 'W', channels]);
  g.output('y', matMul(x, g.input('grow', 'float32', [channels, channels])));
  return g.build();
});
