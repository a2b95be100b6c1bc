import { at } from '../../../contract';
import {
  type Backend,
  type Bindings,
  type Compute,
  type DeviceTensor,
  placeholder,
  type Scope,
} from '../../../gpu';
import {
  type FilterOrder,
  packedDims,
  packedRows,
  packJob,
  rowsOfTap,
  type Storage,
} from '../../../gpu/kernels';
import type { ConvolutionLayer, ImageMatch } from '../../../graph';
import {
  averagingWeights,
  derived,
  transposed,
  type VaeCheckpoint,
  type VaeReader,
} from './vae-weights';

/** Type of a tensor in a storage. */
const dtypes = { f32: 'float32', f16: 'float16' } as const;

/** Which weights a match has as kernels of our own: sizes without a device. */
export function kernelWeightSizes(match: ImageMatch, storage: Storage): Bindings {
  const float32 = (...dims: readonly number[]) => placeholder('float32', dims);
  if (match.kind === 'attention') {
    const { inputs } = at(match.layers, 0);
    const matrices = match.layers.flatMap((layer, index) => [
      [`weight${index}`, float32(layer.filters, layer.inputs)],
      [`bias${index}`, float32(layer.filters)],
    ]);
    return { gamma: float32(inputs), ...Object.fromEntries(matrices) };
  }
  const { layer, norm, shuffle, activation } = match;
  if (layer.depthwise) return { weights: float32(layer.kernel ** 2, layer.filters) };
  const dims = packedDims(rowsOf(match), shuffle ? layer.filters / 4 : layer.filters);
  const vector = float32(Math.ceil(layer.filters / 4) * 4);
  return {
    weights: placeholder(dtypes[layer.precise ? 'f32' : storage], dims),
    ...(layer.bias && { bias: vector }),
    ...(activation?.op === 'prelu' && { slope: vector }),
    ...(norm !== null && { gamma: float32(layer.inputs) }),
  };
}

/** Rows of the packed weights of a match: all taps or phases, and a shortcut behind them. */
function rowsOf(match: Exclude<ImageMatch, { kind: 'attention' }>): number {
  const { layer, upsample, shuffle, residual } = match;
  const taps = upsample ? 16 : (shuffle ? 4 : layer.taps) * layer.kernel ** 2;
  const shortcut = residual?.kind === 'linear' ? rowsOfTap(residual.layer.inputs) : 0;
  return taps * rowsOfTap(layer.inputs) + shortcut;
}

/** Most bytes of a match's weights in a file's order, from which they are packed. */
export function largestSource(match: ImageMatch): number {
  if (match.kind === 'attention') return 0;
  const { inputs, filters, taps, kernel, part } = match.layer;
  const count = match.upsample ? 16 : Math.max(3, taps) * kernel ** 2 * part.of;
  return 4 * count * inputs * filters;
}

/** Weights of a match on the device as kernels of our own read them; they are packed there. */
export async function kernelWeights(
  {
    reader,
    scope,
    backend,
    compute,
  }: {
    readonly reader: VaeReader;
    readonly scope: Scope;
    readonly backend: Backend;
    readonly compute: Compute;
  },
  match: ImageMatch,
  storage: Storage,
): Promise<Bindings> {
  const bindings: Record<string, DeviceTensor> = {};
  const make = (name: string, data?: Float32Array) => {
    const { dtype, dims } = kernelWeightSizes(match, storage)[name] ?? unknown(name);
    const tensor = scope.tensor(dtype, dims, 'weights');
    bindings[name] = tensor;
    if (data) {
      const padded = new Float32Array(dims.reduce((product, size) => product * size, 1));
      padded.set(data);
      backend.write(tensor as DeviceTensor<'float32'>, padded);
    }
    return tensor;
  };
  if (match.norm !== null) make('gamma', await reader.read(`${match.norm}.gamma`));
  if (match.kind === 'attention') {
    for (const [index, layer] of match.layers.entries()) {
      const { filters, inputs, part } = layer;
      const size = filters * inputs;
      const all = await reader.read(`${layer.name}.weight`);
      make(`weight${index}`, all.subarray(part.index * size, (part.index + 1) * size));
      make(`bias${index}`, await reader.bias(layer));
    }
    return bindings;
  }

  const { layer, residual, upsample, shuffle, activation } = match;
  if (layer.depthwise) {
    make('weights', transposed(await reader.taps(layer), layer.filters, layer.kernel ** 2));
    return bindings;
  }
  const sources = [
    upsample
      ? await phases(reader, layer)
      : shuffle
        ? await shuffled(reader, layer)
        : await taps(reader, layer),
  ];
  if (layer.bias) {
    const bias = (await reader.bias(layer)).slice();
    if (residual?.kind === 'linear') {
      const added = await reader.bias(residual.layer);
      for (const [i, value] of added.entries()) bias[i] = at(bias, i) + value;
    }
    make('bias', bias);
  }
  if (activation?.op === 'prelu') make('slope', await reader.read(`${activation.name}.weight`));
  if (residual?.kind === 'linear') sources.push(await shortcut(reader, residual.layer));
  const packed = make('weights');
  let row = 0;
  for (const { data, elements, order } of sources) {
    const raw = backend.tensor('float32', [elements], 'weights', data);
    try {
      await compute.dispatch([packJob(raw, order, packed, row)]);
    } finally {
      raw.dispose();
    }
    row += packedRows(order);
  }
  return bindings;
}

function unknown(name: string): never {
  throw new TypeError(`there is no ${name}`);
}

/** Weights in a file's order, and where in it they lie. */
interface Source {
  readonly data: Float32Array;
  readonly elements: number;
  readonly order: FilterOrder;
}

async function sourceOf(reader: VaeReader, name: string, order: FilterOrder): Promise<Source> {
  return { data: await reader.read(name), elements: elementsOf(reader.checkpoint, name), order };
}

function elementsOf(checkpoint: VaeCheckpoint, name: string): number {
  return checkpoint.shape(name).reduce((product, size) => product * size, 1);
}

/** Time taps of a part of a kernel, the newest first. */
async function taps(reader: VaeReader, layer: ConvolutionLayer): Promise<Source> {
  const { name, filters, inputs: channels, kernel, taps: blocks, part } = layer;
  const taps = kernel * kernel;
  const size = channels * taps;
  const shape = { blocks, filters, channels, taps };
  if (layer.average) {
    const strides = { block: 0, filter: size, channel: taps, tap: 1 };
    const data = averagingWeights(layer);
    return { data, elements: data.length, order: { ...shape, strides } };
  }
  const stored = derived.taps(name);
  if (reader.checkpoint.has(stored)) {
    const block = part.of * filters * size;
    const strides = { block, filter: size, channel: taps, tap: 1 };
    const order = { ...shape, strides, first: part.index * filters * size };
    const data = await reader.taps(layer);
    return { data, elements: data.length, order };
  }
  const [, , ...rest] = reader.checkpoint.shape(`${name}.weight`);
  const depth = rest.length > 2 ? at(rest, 0) : 1;
  const filter = depth * size;
  const strides = { block: -taps, filter, channel: depth * taps, tap: 1 };
  const first = (depth - 1) * taps + part.index * filters * filter;
  return sourceOf(reader, `${name}.weight`, { ...shape, strides, first });
}

async function phases(reader: VaeReader, layer: ConvolutionLayer): Promise<Source> {
  const { filters, inputs: channels } = layer;
  const strides = { block: filters * channels * 4, filter: channels * 4, channel: 4, tap: 1 };
  const order = { blocks: 4, filters, channels, taps: 4, strides };
  return { data: await reader.phases(layer), elements: 16 * filters * channels, order };
}

/** Filters of the four pixels that a pixel becomes, one pixel's after another's. */
async function shuffled(reader: VaeReader, layer: ConvolutionLayer): Promise<Source> {
  const { name, inputs: channels, kernel } = layer;
  const [filters, taps] = [layer.filters / 4, kernel ** 2];
  const filter = channels * taps;
  const strides = { block: filters * filter, filter, channel: taps, tap: 1 };
  return sourceOf(reader, `${name}.weight`, { blocks: 4, filters, channels, taps, strides });
}

/** A 1×1 convolution. */
async function shortcut(reader: VaeReader, layer: ConvolutionLayer): Promise<Source> {
  const { name, filters, inputs: channels } = layer;
  const stored = derived.transposed(name);
  const isStored = reader.checkpoint.has(stored);
  const strides = isStored
    ? { block: 0, filter: 1, channel: filters, tap: 0 }
    : { block: 0, filter: channels, channel: 1, tap: 0 };
  const order = { blocks: 1, filters, channels, taps: 1, strides };
  return sourceOf(reader, isStored ? stored : `${name}.weight`, order);
}
