import { at } from '../../contract';
import type { Bindings, Scope } from '../../gpu';
import { type Checkpoint, checkTensors, withAliases } from '../../weights';
import {
  blockInputs,
  blockOutputs,
  paddedChannels,
  type RifeConfig,
  residualLayers,
} from './interpolator-network';

const blockCount = 5;

/**
 * A checkpoint by the names `encode.cnnN…` and `blockN…`, from any form in which these files are found: behind
 * `module.` and `flownet.`, with `blocks.N.`.
 */
export function canonicalNames(checkpoint: Checkpoint): Checkpoint {
  const aliases = new Map<string, string>();
  for (const name of checkpoint.names()) {
    const plain = name
      .replace(/^(?:module\.|flownet\.)+/, '')
      .replace(/^blocks\.(\d)\./, 'block$1.');
    if (plain !== name) aliases.set(plain, name);
  }
  return withAliases(checkpoint, aliases);
}

/**
 * Sizes of a file's network. Tensors for training alone (`teacher.…`, `caltime.…`) are no fault.
 *
 * @param checkpoint by {@link canonicalNames}
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE` for a file that is not RIFE 4.25 or 4.26
 */
export function rifeConfig(checkpoint: Checkpoint): RifeConfig {
  const [head = 0, features = 0] = checkpoint.shape('encode.cnn3.weight');
  const blocks = Array.from({ length: blockCount }, (_, i) => i);
  const widths = blocks.map((i) => at(checkpoint.shape(`block${i}.conv0.1.0.weight`), 0));
  const config = { widths, features, head };
  const expected = new Map<string, readonly number[]>();
  const layer = (name: string, weight: readonly number[], outputs: number) => {
    expected.set(`${name}.weight`, weight);
    expected.set(`${name}.bias`, [outputs]);
  };
  layer('encode.cnn0', [head, 3, 3, 3], head);
  layer('encode.cnn1', [head, head, 3, 3], head);
  layer('encode.cnn2', [head, head, 3, 3], head);
  layer('encode.cnn3', [head, features, 4, 4], features);
  for (const [i, width] of widths.entries()) {
    layer(`block${i}.conv0.0.0`, [width / 2, blockInputs(config, i), 3, 3], width / 2);
    layer(`block${i}.conv0.1.0`, [width, width / 2, 3, 3], width);
    for (let n = 0; n < residualLayers; n++) {
      layer(`block${i}.convblock.${n}.conv`, [width, width, 3, 3], width);
      expected.set(`block${i}.convblock.${n}.beta`, [1, width, 1, 1]);
    }
    layer(`block${i}.lastconv.0`, [width, 4 * blockOutputs, 4, 4], 4 * blockOutputs);
  }
  checkTensors(checkpoint, expected, 'interpolator');
  return config;
}

/** Weights on a device as the graphs name them. */
export interface RifeWeights {
  readonly head: Bindings;
  readonly blocks: readonly Bindings[];
}

/** Reads a file's tensors to the device. */
export async function loadRife(
  scope: Scope,
  checkpoint: Checkpoint,
  { widths }: RifeConfig,
): Promise<RifeWeights> {
  const tensors = (name: string, weight: Float32Array, bias: Float32Array): Bindings => {
    const size = weight.length / bias.length;
    const padded = paddedChannels(size / 9);
    const filters = new Float32Array(bias.length * padded * 9);
    for (let i = 0; i < bias.length; i++) {
      filters.set(weight.subarray(i * size, (i + 1) * size), i * padded * 9);
    }
    return {
      [`${name}.weight`]: scope.float32([bias.length, padded, 3, 3], 'weights', filters),
      [`${name}.bias`]: scope.float32([bias.length], 'weights', bias),
    };
  };
  const pair = async (from: string) =>
    [await checkpoint.read(`${from}.weight`), await checkpoint.read(`${from}.bias`)] as const;
  const plain = async (name: string, from: string) => tensors(name, ...(await pair(from)));
  /** `conv(x)·β` is a convolution with W·β and b·β. */
  const scaled = async (name: string, from: string) => {
    const [weight, bias] = await pair(`${from}.conv`);
    const beta = await checkpoint.read(`${from}.beta`);
    const each = weight.length / beta.length;
    return tensors(
      name,
      weight.map((value, i) => value * at(beta, Math.floor(i / each))),
      bias.map((value, i) => value * at(beta, i)),
    );
  };
  const enlarging = async (name: string, from: string, shuffle: 1 | 2) =>
    tensors(name, ...asConvolution(...(await pair(from)), shuffle));

  const blocks: Bindings[] = [];
  for (const i of widths.keys()) {
    const block = `block${i}`;
    const parts = [
      await plain('conv0.0', `${block}.conv0.0.0`),
      await plain('conv0.1', `${block}.conv0.1.0`),
    ];
    for (let n = 0; n < residualLayers; n++) {
      parts.push(await scaled(`convblock.${n}`, `${block}.convblock.${n}`));
    }
    parts.push(await enlarging('lastconv', `${block}.lastconv.0`, 2));
    blocks.push(Object.assign({}, ...parts));
  }
  const head = [0, 1, 2].map((n) => plain(`cnn${n}`, `encode.cnn${n}`));
  const last = enlarging('cnn3', 'encode.cnn3', 1);
  return { head: Object.assign({}, ...(await Promise.all([...head, last]))), blocks };
}

/** Row k of a transposed kernel that reaches output row 2i + parity from input row i + tap − 1; −1 for none. */
const kernelRows = [
  [3, 1, -1],
  [-1, 2, 0],
] as const;

/**
 * A transposed convolution 4×4 with stride 2 and padding 1, and a pixel shuffle behind it where `shuffle` is 2: the
 * same as a 3×3 convolution and {@link depthToSpace} of 2·shuffle.
 *
 * @param weight [I, O, 4, 4] with channels O in the order (c, row, column) of the shuffle
 * @returns weight [4·O, I, 3, 3] and bias [4·O] in the order (row, column, c)
 */
export function asConvolution(
  weight: Float32Array,
  bias: Float32Array,
  shuffle: 1 | 2,
): readonly [Float32Array, Float32Array] {
  const outputs = bias.length;
  const inputs = weight.length / outputs / 16;
  const channels = outputs / shuffle ** 2;
  const filters = new Float32Array(4 * outputs * inputs * 9);
  const biases = new Float32Array(4 * outputs);
  for (let o = 0; o < outputs; o++) {
    const c = Math.floor(o / shuffle ** 2);
    const [p, q] = [Math.floor(o / shuffle) % shuffle, o % shuffle];
    for (const [a, rows] of kernelRows.entries()) {
      for (const [b, columns] of kernelRows.entries()) {
        const [row, column] = [shuffle * a + p, shuffle * b + q];
        const to = (row * 2 * shuffle + column) * channels + c;
        biases[to] = at(bias, o);
        for (let i = 0; i < inputs; i++) {
          for (const [dy, ky] of rows.entries()) {
            for (const [dx, kx] of columns.entries()) {
              if (ky < 0 || kx < 0) continue;
              filters[((to * inputs + i) * 3 + dy) * 3 + dx] = at(
                weight,
                ((i * outputs + o) * 4 + ky) * 4 + kx,
              );
            }
          }
        }
      }
    }
  }
  return [filters, biases];
}
