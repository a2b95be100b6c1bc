import { add, convolution, depthwise, Graph, relu6, type Value } from '../graph';

/*
 * MobileNetV2 (Sandler et al., arXiv:1801.04381, table 2) with the head of nsfwjs, in f32. Batch norms are folded into the convolutions when weights are loaded.
 */

/** Sides of the square that the network sees, in pixels. */
export const imageSize = 224;
export const classes = ['Drawing', 'Hentai', 'Neutral', 'Porn', 'Sexy'] as const;

const config = {
  /** Channels after the first convolution, and after the last one. */
  first: 32,
  last: 1280,
  /** Rows of table 2: expansion, channels, blocks, stride of the first block. */
  stages: [
    [1, 16, 1, 1],
    [6, 24, 2, 2],
    [6, 32, 3, 2],
    [6, 64, 4, 2],
    [6, 96, 3, 1],
    [6, 160, 3, 2],
    [6, 320, 1, 1],
  ],
  dense: [256, 128, classes.length],
  /** Of the batch norms: Keras' MobileNetV2 has another one than Keras' layer. */
  epsilon: 0.001,
} as const;

/** A convolution without bias and its batch norm, by their names in the file. */
interface Convolution {
  readonly name: string;
  readonly norm: string;
  readonly inputs: number;
  readonly outputs: number;
  readonly kernel: 1 | 3;
  readonly stride: 1 | 2;
  readonly depthwise: boolean;
}

/** An inverted residual: expand, filter each channel, project. */
interface Block {
  readonly name: string;
  readonly expand: Convolution | null;
  readonly filter: Convolution;
  readonly project: Convolution;
  /** Where size and channels stay, the input is added. */
  readonly shortcut: boolean;
}

const plain = { kernel: 1, stride: 1, depthwise: false } as const;
const first: Convolution = {
  name: 'Conv1',
  norm: 'bn_Conv1',
  inputs: 3,
  outputs: config.first,
  kernel: 3,
  stride: 2,
  depthwise: false,
};
const blocks = listBlocks();
const last: Convolution = {
  name: 'Conv_1',
  norm: 'Conv_1_bn',
  inputs: 320,
  outputs: config.last,
  ...plain,
};
const convolutions: readonly Convolution[] = [
  first,
  ...blocks.flatMap(({ expand, filter, project }) => [
    ...(expand ? [expand] : []),
    filter,
    project,
  ]),
  last,
];
const denseLayers = config.dense.map((outputs, i) => ({ name: `dense_${i + 1}`, outputs }));

function listBlocks(): Block[] {
  const blocks: Block[] = [];
  let inputs: number = config.first;
  for (const [expansion, outputs, count, firstStride] of config.stages) {
    for (let i = 0; i < count; i++) {
      const name = blocks.length === 0 ? 'expanded_conv' : `block_${blocks.length}`;
      const stride = i === 0 ? firstStride : 1;
      const wide = expansion * inputs;
      const layer = (part: string) => ({ name: `${name}_${part}`, norm: `${name}_${part}_BN` });
      blocks.push({
        name,
        expand: expansion === 1 ? null : { ...layer('expand'), inputs, outputs: wide, ...plain },
        filter: {
          ...layer('depthwise'),
          inputs: wide,
          outputs: wide,
          kernel: 3,
          stride,
          depthwise: true,
        },
        project: { ...layer('project'), inputs: wide, outputs, ...plain },
        shortcut: stride === 1 && inputs === outputs,
      });
      inputs = outputs;
    }
  }
  return blocks;
}

/**
 * The weights of the graph by `weightsKey`, one layer after another: batch norms are folded in, in double precision.
 *
 * @param read a tensor of the file, by its name
 */
export function* foldedWeights(
  read: (name: string) => Float32Array,
): Generator<readonly [key: string, weights: Readonly<Record<string, Float32Array>>]> {
  for (const { name, norm, inputs, outputs, kernel, depthwise } of convolutions) {
    const values = read(`${name}/${depthwise ? 'depthwise_kernel' : 'kernel'}`); // [k, k, I, O]
    const [gamma, beta] = [read(`${norm}/gamma`), read(`${norm}/beta`)];
    const [mean, variance] = [read(`${norm}/moving_mean`), read(`${norm}/moving_variance`)];
    const [group, taps] = [depthwise ? 1 : inputs, kernel * kernel];
    const data = new Float32Array(values.length); // [O, I, k, k]
    const bias = new Float32Array(outputs);
    for (let o = 0; o < outputs; o++) {
      const scale = (gamma[o] as number) / Math.sqrt((variance[o] as number) + config.epsilon);
      bias[o] = (beta[o] as number) - (mean[o] as number) * scale;
      for (let i = 0; i < group; i++) {
        for (let tap = 0; tap < taps; tap++) {
          const value = values[(tap * group + i) * outputs + o] as number;
          data[(o * group + i) * taps + tap] = value * scale;
        }
      }
    }
    yield [`${name} 0`, { tap2: data, bias }];
  }
}

/**
 * The convolutions for a square: `pixels` [224, 224, 3] of 0…1 → `out_relu` [7, 7, 1280].
 *
 * @param traced also gives hidden states, by the names of Keras' layers
 */
export function mobileNetGraph(traced = false): Graph {
  const g = new Graph('quick safety checker');
  const trace = (name: string, x: Value) => {
    if (traced) g.output(name, x);
  };
  const conv = (x: Value, { name, outputs, kernel, stride }: Convolution) =>
    convolution(x, name, outputs, { kernel, stride });

  let x = relu6(conv(g.input('pixels', [imageSize, imageSize, 3]), first)); // [112, 112, 32]
  trace('Conv1_relu', x);
  for (const { name, expand, filter, project, shortcut } of blocks) {
    const wide = expand ? relu6(conv(x, expand)) : x; // [H, W, t·C]
    const filtered = relu6(depthwise(wide, filter.name, filter.stride)); // [H/stride, W/stride, t·C]
    const narrow = conv(filtered, project); // [H/stride, W/stride, C′], without activation
    // What is added at once is computed apart for a trace.
    trace(`${name}_project_BN`, shortcut ? conv(filtered, project) : narrow);
    x = shortcut ? add(narrow, x) : narrow;
  }
  g.output('out_relu', relu6(conv(x, last))); // [7, 7, 1280]
  return g;
}

/**
 * The head behind the convolutions: the mean over all pixels, and dense layers.
 *
 * @param x `out_relu` [7, 7, 1280]
 * @param read a tensor of the file, by its name
 * @returns by the names of Keras' layers, and `logits` [5]
 */
export function mobileNetHead(
  x: Float32Array,
  read: (name: string) => Float32Array,
): Readonly<Record<string, Float32Array>> {
  const mean = new Float64Array(config.last);
  for (const [i, value] of x.entries())
    mean[i % config.last] = (mean[i % config.last] ?? 0) + value;
  const pixels = x.length / config.last;
  let values = Float32Array.from(mean, (sum) => sum / pixels);
  const made: Record<string, Float32Array> = { average_pooling2d_1: values };
  for (const { name, outputs } of denseLayers) {
    const [weights, sums] = [read(`${name}/kernel`), Float64Array.from(read(`${name}/bias`))];
    for (const [i, value] of values.entries()) {
      for (let o = 0; o < outputs; o++) {
        sums[o] = (sums[o] as number) + value * (weights[i * outputs + o] as number);
      }
    }
    const isLast = outputs === classes.length;
    values = Float32Array.from(sums, (sum) => (isLast ? sum : Math.max(sum, 0)));
    made[isLast ? 'logits' : name] = values;
  }
  return made;
}

/** Probabilities of the classes: exp(x) / Σ exp(x). */
export function softmax(logits: Float32Array): number[] {
  const most = Math.max(...logits);
  const powers = Array.from(logits, (logit) => Math.exp(logit - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
