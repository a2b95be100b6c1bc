import {
  add,
  clip,
  conv2d,
  type Graph,
  GraphBuilder,
  gemm,
  globalAveragePool,
  relu,
  reshape,
  type Value,
} from '../onnx';

/*
 * MobileNetV2 (Sandler et al., arXiv:1801.04381, table 2) with the head of nsfwjs, in f32. Batch norms are folded into
 * the convolutions when weights are loaded.
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
  readonly stride: number;
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
const denseLayers = config.dense.map((outputs, i) => ({
  name: `dense_${i + 1}`,
  inputs: config.dense[i - 1] ?? config.last,
  outputs,
}));

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

/** A weight or bias as the graph takes it. */
export interface Weight {
  readonly dims: readonly number[];
  readonly data: Float32Array<ArrayBuffer>;
}

/**
 * The weights of the graph, one after another: batch norms are folded in, in double precision.
 *
 * @param read a tensor of the file, by its name
 */
export function* foldedWeights(
  read: (name: string) => Float32Array,
): Generator<readonly [name: string, weight: Weight]> {
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
    yield [`${name}.weight`, { dims: [outputs, group, kernel, kernel], data }];
    yield [`${name}.bias`, { dims: [outputs], data: bias }];
  }
  for (const { name, inputs, outputs } of denseLayers) {
    const values = read(`${name}/kernel`); // [I, O]
    const data = new Float32Array(values.length); // [O, I]
    for (let i = 0; i < inputs; i++) {
      for (let o = 0; o < outputs; o++) data[o * inputs + i] = values[i * outputs + o] as number;
    }
    yield [`${name}.weight`, { dims: [outputs, inputs], data }];
    yield [`${name}.bias`, { dims: [outputs], data: Float32Array.from(read(`${name}/bias`)) }];
  }
}

/**
 * The network: `pixels` [1, 3, 224, 224] of 0…1 → `logits` [1, 5].
 *
 * @param traced also gives hidden states, by the names of Keras' layers
 */
export function mobileNetGraph(traced: boolean): Graph {
  type Float = Value<'float32'>;
  const g = new GraphBuilder('quick safety checker');
  const trace = (name: string, x: Float) => {
    if (traced) g.output(name, x);
  };
  const conv = (x: Float, layer: Convolution) => {
    const { name, inputs, outputs, kernel, stride, depthwise } = layer;
    const dims = [outputs, depthwise ? 1 : inputs, kernel, kernel];
    const weight = g.input(`${name}.weight`, 'float32', dims);
    const bias = g.input(`${name}.bias`, 'float32', [outputs]);
    // Where the size is halved, zeros stand below and right only.
    const before = kernel === 3 && stride === 1 ? 1 : 0;
    const after = kernel === 3 ? 1 : 0;
    const pads = [before, before, after, after] as const;
    return conv2d(x, weight, bias, 'nchw', { stride, pads, group: depthwise ? outputs : 1 });
  };
  const relu6 = (x: Float) => clip(x, 0, 6);

  const pixels = g.input('pixels', 'float32', [1, 3, imageSize, imageSize]);
  let x = relu6(conv(pixels, first)); // [1, 32, 112, 112]
  trace('Conv1_relu', x);
  for (const { name, expand, filter, project, shortcut } of blocks) {
    const wide = expand ? relu6(conv(x, expand)) : x; // [1, t·C, H, W]
    const filtered = relu6(conv(wide, filter)); // [1, t·C, H/stride, W/stride]
    const narrow = conv(filtered, project); // [1, C′, H/stride, W/stride], without activation
    x = shortcut ? add(narrow, x) : narrow;
    trace(`${name}_project_BN`, narrow);
  }
  x = relu6(conv(x, last)); // [1, 1280, 7, 7]
  trace('out_relu', x);
  x = reshape(globalAveragePool(x), [1, config.last]);
  trace('average_pooling2d_1', x);
  for (const { name, inputs, outputs } of denseLayers) {
    const weight = g.input(`${name}.weight`, 'float32', [outputs, inputs]);
    x = gemm(x, weight, g.input(`${name}.bias`, 'float32', [outputs]));
    if (outputs === classes.length) break;
    x = relu(x); // [1, 256], [B, 128]
    trace(name, x);
  }
  g.output('logits', x); // [1, 5]
  return g.build();
}

/** Probabilities of the classes: exp(x) / Σ exp(x). */
export function softmax(logits: Float32Array): number[] {
  const most = Math.max(...logits);
  const powers = Array.from(logits, (logit) => Math.exp(logit - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
