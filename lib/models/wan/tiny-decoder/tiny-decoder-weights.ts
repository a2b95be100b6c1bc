import { at, KinoraError } from '../../../contract';
import { elementCount } from '../../../gpu';
import { shapeOfTensor, type TensorShapes } from '../../layers/tensor-shapes';
import type { VaeConfig } from '../config-schemas';
import type { ClipGraphs, LatentFrameSize } from '../vae/decoder';
import { derived, type VaeCheckpoint } from '../vae/vae-weights';
import { tinyDecoderTensors } from '../wan-tensors';
import { tinyDecoderKeys, type Variant } from './keys';
import { type TinyConfig, tinyDecoderGraphs } from './tiny-decoder-network';

/** A tensor that is made from one of the file. */
interface View {
  readonly from: string;
  readonly shape: readonly number[];
  readonly data: (stored: Float32Array) => Float32Array;
}

/**
 * Sizes of a tiny decoder.
 *
 * @throws KinoraError `TENSOR_MISSING` when the file is neither variant
 */
export function tinyConfig({ has, shape }: Pick<VaeCheckpoint, 'has' | 'shape'>): TinyConfig {
  const variant = variantOf(has);
  const { first, stages, last } = tinyDecoderKeys[variant];
  const [width, inputs] = shape(`decoder.${first}.weight`);
  const share = variant === 'base' ? 1 : 4;
  const behind = stages.map((stage) => at(shape(`decoder.${stage.convolution}.weight`), 0) / share);
  const outputs = at(shape(`decoder.${last}.weight`), 0);
  return { variant, inputs: inputs ?? 0, widths: [width ?? 0, ...behind], outputs };
}

/** The graphs of a tiny decoder whose tensors have these shapes. */
export function tinyGraphs(shapes: TensorShapes, size: LatentFrameSize): ClipGraphs {
  const shape = (name: string) => shapeOfTensor(shapes, name);
  return tinyDecoderGraphs(tinyConfig({ has: (name) => shapes.has(name), shape }), size);
}

function variantOf(has: (name: string) => boolean): Variant {
  if (has('decoder.0.weight')) return 'super';
  if (has('decoder.1.weight')) return 'base';
  throw new KinoraError(
    'TENSOR_MISSING',
    'The file is no tiny decoder: it has neither decoder.0.weight nor decoder.1.weight.',
  );
}

/**
 * The tensors of a tiny decoder as the layers of its graphs name them.
 *
 * @param checkpoint by the original names, `decoder.N…`
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export function tinyWeights(checkpoint: VaeCheckpoint, { variant }: TinyConfig): VaeCheckpoint {
  const views = new Map<string, View>();
  for (const stage of tinyDecoderKeys[variant].stages) {
    for (const block of stage.blocks) {
      const name = `decoder.${block}.conv.0`;
      views.set(derived.taps(name), tapsView(checkpoint, `${name}.weight`));
    }
    const grow = `decoder.${stage.grow}.conv.weight`;
    views.set(grow, growthView(checkpoint, grow, stage.frames));
    if (variant === 'base') continue;
    for (const name of ['weight', 'bias'].map((role) => `decoder.${stage.convolution}.${role}`)) {
      const shape = checkpoint.shape(name);
      const data = (stored: Float32Array) => pixelsFirst(stored, at(shape, 0) / 4);
      views.set(name, { from: name, shape, data });
    }
  }
  const read = async (name: string) => {
    const view = views.get(name);
    return view ? view.data(await checkpoint.read(view.from)) : checkpoint.read(name);
  };
  const shape = (name: string) => views.get(name)?.shape ?? checkpoint.shape(name);
  return {
    has: (name) => views.has(name) || checkpoint.has(name),
    shape,
    bytes: (name) => checkpoint.bytes(views.get(name)?.from ?? name),
    read,
    readRows: async (name, rows) => {
      const data = await read(name);
      const width = elementCount(shape(name).slice(1));
      const out = new Float32Array(rows.length * width);
      for (const [i, row] of rows.entries()) {
        out.set(data.subarray(row * width, (row + 1) * width), i * width);
      }
      return out;
    },
  };
}

/** Filters over x_t ‖ x_{t−1}, [Co, 2C, k, k], as two taps [2, Co, C, k, k]; depthwise [2C, 1, k, k] as [2, C, 1, k, k]. */
function tapsView(checkpoint: VaeCheckpoint, from: string): View {
  const [filters = 0, inputs = 0, ...kernel] = checkpoint.shape(from);
  if (inputs === 1) return { from, shape: [2, filters / 2, 1, ...kernel], data: (data) => data };
  const size = (inputs / 2) * elementCount(kernel);
  const data = (stored: Float32Array) => {
    const out = new Float32Array(stored.length);
    for (let half = 0; half < 2 * filters; half++) {
      const target = ((half % 2) * filters + (half >> 1)) * size;
      out.set(stored.subarray(half * size, (half + 1) * size), target);
    }
    return out;
  };
  return { from, shape: [2, filters, inputs / 2, ...kernel], data };
}

/** TGrow [frames·C, C, 1, 1], the earliest frame first. A file may have more rows than there are frames: the last ones count. */
function growthView(checkpoint: VaeCheckpoint, from: string, frames: number): View {
  const [rows = 0, channels = 0, ...kernel] = checkpoint.shape(from);
  const count = frames * channels;
  if (rows < count) {
    throw new KinoraError(
      'TENSOR_SHAPE',
      `${from} has ${rows} rows; ${frames} frames of ${channels} channels need more.`,
    );
  }
  const data = (stored: Float32Array) => stored.subarray((rows - count) * channels);
  return { from, shape: [count, channels, ...kernel], data };
}

/** Filters in PyTorch's order of a pixel shuffle (channel, row, column) → (row, column, channel). */
function pixelsFirst(data: Float32Array, channels: number): Float32Array {
  const size = data.length / (4 * channels);
  const out = new Float32Array(data.length);
  for (let c = 0; c < channels; c++) {
    for (let pixel = 0; pixel < 4; pixel++) {
      const source = (c * 4 + pixel) * size;
      out.set(data.subarray(source, source + size), (pixel * channels + c) * size);
    }
  }
  return out;
}

/** The tensors of `taew2_2`, or of `taew2_1` for the VAE without a patch: their widths are alike (README). */
export function publishedTinyDecoder({ vae }: { readonly vae: VaeConfig }): TensorShapes {
  const widths: Readonly<Record<string, readonly number[]>> = {
    'decoder.1.weight': [256],
    'decoder.8.weight': [128],
    'decoder.14.weight': [64],
    'decoder.20.weight': [64],
  };
  return tinyDecoderTensors(vae, (name) => widths[name]);
}
