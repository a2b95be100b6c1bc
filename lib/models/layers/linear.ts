import { at, KinoraError, type Precision } from '../../contract';
import {
  type Bindings,
  type Category,
  type DeviceTensor,
  elementCount,
  fromBF16,
  type Scope,
} from '../../gpu';
import type { LinearLayer } from '../../graph';
import type { ElementArrays, ElementType } from '../../onnx';
import type { Checkpoint } from '../../weights';
import {
  bitsOf,
  floatsOf,
  type LayerData,
  precisionFor,
  type ReadOptions,
  readLayer,
  type WeightForm,
} from './layer-data';

export type { Precision };

/** What a graph depends on in a linear layer. Layers of equal spec share compiled graphs. */
export interface LinearSpec {
  readonly inFeatures: number;
  readonly outFeatures: number;
  readonly precision: Precision;
  readonly bias: boolean;
  /** Elements of the factors of a LoRA beside it; false without one. Beside an f32 weight they are f32. */
  readonly lora: LinearLayer['lora'];
}

/** The tensors of a checkpoint or of an architecture. */
export type TensorNames = Pick<Checkpoint, 'has' | 'shape'>;

/** The spec of the layer `name.weight`, with `name.bias` where there is one. */
export function specOf(
  tensors: TensorNames,
  name: string,
  { precision: preferred, lora, plainFactors }: WeightForm,
): LinearSpec {
  const shape = tensors.shape(`${name}.weight`);
  const [outFeatures, inFeatures] = [at(shape, 0), elementCount(shape.slice(1))];
  const precision = precisionFor(preferred, inFeatures);
  const branch = lora?.branches.get(name);
  const isNarrow = branch?.up instanceof Uint16Array && precision !== 'f32' && !plainFactors;
  return {
    inFeatures,
    outFeatures,
    precision,
    bias: tensors.has(`${name}.bias`),
    lora: branch ? (isNarrow ? 'bf16' : 'f32') : false,
  };
}

/** Type and sizes of the factors of a LoRA beside a layer; bf16 lies in tensors of 16-bit elements. */
export function factorsOf({ lora, inFeatures, outFeatures }: LinearSpec, rank: number) {
  const dtype = lora === 'bf16' ? 'float16' : 'float32';
  return [
    { role: 'down', dtype, dims: [rank, inFeatures] },
    { role: 'up', dtype, dims: [outFeatures, rank] },
  ] as const;
}

/** A layer of this spec in a graph. @param name under which its tensors are bound, see {@link bindLinear} */
export function layerOf(name: string, spec: LinearSpec): LinearLayer {
  const { inFeatures, outFeatures, precision, bias, lora } = spec;
  return { name, inFeatures, outFeatures, bits: bitsOf(precision), bias, lora };
}

/** A linear layer on the device. */
export interface Linear {
  readonly spec: LinearSpec;
  /** By role: `weight` or `values` and `scales`; `bias`; `down` and `up`. */
  readonly tensors: Readonly<Record<string, DeviceTensor>>;
}

/** The tensors of a {@link layerOf} this name, as a graph binds them. */
export function bindLinear(name: string, layer: Linear): Bindings {
  return Object.fromEntries(
    Object.entries(layer.tensors).map(([role, tensor]) => [`${name}.${role}`, tensor]),
  );
}

/** The place of tensors: new memory, or that of another layer. */
export interface Placement {
  /** @param name the tensor's name in the checkpoint, with its role for parts of a weight */
  place<T extends 'float32' | 'float16' | 'uint8'>(
    name: string,
    dtype: T,
    dims: readonly number[],
    category: Category,
    data: ElementArrays[T],
  ): DeviceTensor<T>;
}

/** Allocates each tensor in a scope. */
export function freshMemory(scope: Scope): Placement {
  return {
    place: (_, dtype, dims, category, data) => scope.tensor(dtype, dims, category, data),
  };
}

/**
 * The buffers of layers that follow each other. The first layer creates them, later ones are written into them: the
 * device does what was submitted before, so that nothing has to wait. Weights that are not alike in all layers, such as
 * the factors of a LoRA, have a buffer for each of their sizes.
 */
export class BufferSet {
  readonly #tensors = new Map<string, DeviceTensor>();

  /** @param stopped after which nothing is created or written any more */
  constructor(
    readonly scope: Scope,
    readonly stopped?: AbortSignal,
  ) {}

  /** @param prefix of the layer's tensors, which is left out of their names */
  for(prefix: string): Placement {
    return {
      place: (name, dtype, dims, category, data) => {
        this.stopped?.throwIfAborted();
        const tensor = this.tensor(name.slice(prefix.length), dtype, dims, category);
        this.scope.backend.write(tensor, data);
        return tensor;
      },
    };
  }

  tensor<T extends ElementType>(
    name: string,
    dtype: T,
    dims: readonly number[],
    category: Category,
  ): DeviceTensor<T> {
    const key = `${name} ${dtype} ${dims}`;
    const tensor = this.#tensors.get(key) ?? this.scope.tensor(dtype, dims, category);
    this.#tensors.set(key, tensor);
    return tensor as DeviceTensor<T>;
  }
}

/** Puts tensors of a checkpoint on the device. */
export class LayerLoader {
  /**
   * @param data tensors that were read before, together; others are read when they are loaded
   */
  constructor(
    readonly placement: Placement,
    readonly checkpoint: Checkpoint,
    readonly options: ReadOptions,
    readonly data: LayerData = new Map(),
  ) {}

  /** A tensor as f32, in a shape of the caller's choice. */
  async tensor(
    name: string,
    dims: readonly number[],
    category: Category = 'weights',
  ): Promise<DeviceTensor<'float32'>> {
    const data = floatsOf(await this.#take(name, 'f32'));
    return this.placement.place(name, 'float32', dims, category, data);
  }

  /**
   * The linear layer `name.weight` with `name.bias` where there is one.
   *
   * @param options `f32` keeps it plain; `rows` reorders the outputs of a plain layer (row i is row
   * `rows[i]` of the file); `columns` takes a part of the inputs of a plain layer, to whose first one the bias belongs
   * @throws as {@link readLayer} does
   */
  async linear(
    name: string,
    options: {
      precision?: Precision;
      rows?: readonly number[];
      columns?: { readonly first: number; readonly count: number };
    } = {},
  ): Promise<Linear> {
    const { placement } = this;
    const { columns } = options;
    const isPlain = options.rows || columns;
    const preferred = isPlain ? 'f32' : (options.precision ?? this.options.precision);
    const whole = specOf(this.checkpoint, name, { ...this.options, precision: preferred });
    const { outFeatures } = whole;
    const inFeatures = columns?.count ?? whole.inFeatures;
    const bias = whole.bias && !columns?.first;
    const spec = { ...whole, inFeatures, bias };
    const part = (data: Float32Array) =>
      columns ? takeColumns(data, whole.inFeatures, columns.first, columns.count) : data;
    const reorder = (data: Float32Array, width: number) =>
      options.rows ? permuteRows(data, width, options.rows) : data;
    const weight = await this.#take(`${name}.weight`, spec.precision);
    const tensors: Record<string, DeviceTensor> = {};
    const place = (role: string, dims: readonly number[], data: Float32Array) => {
      tensors[role] = placement.place(`${name}.${role}`, 'float32', dims, 'weights', data);
    };
    if (weight instanceof Float32Array) {
      place('weight', [outFeatures, inFeatures], reorder(part(weight), inFeatures));
    } else {
      const { bits, values, scales } = weight;
      const dims = [outFeatures, inFeatures / 32, 4 * bits];
      tensors.values = placement.place(`${name}.values`, 'uint8', dims, 'weights', values);
      place('scales', dims.slice(0, 2), scales);
    }
    if (spec.bias) {
      const data = floatsOf(await this.#take(`${name}.bias`, 'f32'));
      place('bias', [outFeatures], reorder(data, 1));
    }
    const branch = this.options.lora?.branches.get(name);
    for (const { role, dtype, dims } of branch ? factorsOf(spec, branch.rank) : []) {
      const factor = branch?.[role] ?? new Float32Array();
      const floats = () => (factor instanceof Float32Array ? factor : fromBF16(factor));
      const sorted = () => (role === 'down' ? part(floats()) : reorder(floats(), dims[1]));
      const data = dtype === 'float16' ? factor : sorted();
      tensors[role] = placement.place(`${name}.${role}`, dtype, dims, 'lora', data);
    }
    return { spec, tensors };
  }

  async #take(name: string, precision: Precision) {
    const known = this.data.get(name);
    if (known) return known;
    const options = { ...this.options, precision };
    const read = (await readLayer(this.checkpoint, [name], new Set([name]), options)).get(name);
    if (!read) throw new KinoraError('TENSOR_MISSING', `The tensor ${name} was not read.`);
    return read;
  }
}

/** Columns of a matrix with `width` of them. */
function takeColumns(
  data: Float32Array,
  width: number,
  first: number,
  count: number,
): Float32Array {
  const rows = data.length / width;
  const out = new Float32Array(rows * count);
  for (let row = 0; row < rows; row++) {
    const start = row * width + first;
    out.set(data.subarray(start, start + count), row * count);
  }
  return out;
}

function permuteRows(data: Float32Array, width: number, rows: readonly number[]): Float32Array {
  const out = new Float32Array(data.length);
  rows.forEach((source, target) => {
    out.set(data.subarray(source * width, (source + 1) * width), target * width);
  });
  return out;
}
