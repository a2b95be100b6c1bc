import { KinoraError } from '../contract';
import { type Bindings, type Category, type DeviceTensor, elementCount, type Scope } from '../gpu';
import { add, type GraphBuilder, gemm, matMulInt8Blocks, type Value } from '../onnx';
import type { Checkpoint } from '../weights/checkpoint';
import { quantiseInt8Blocks } from '../weights/quantise';
import type { LoraBranches } from './lora';

/** How the weight of a linear layer is held on the device. */
export type Precision = 'f32' | 'int8';

/** What a graph must know of a linear layer. Layers of equal spec share compiled graphs. */
export interface LinearSpec {
  readonly inFeatures: number;
  readonly outFeatures: number;
  readonly precision: Precision;
  readonly bias: boolean;
  /** Whether a LoRA runs beside it. */
  readonly lora: boolean;
}

/** A linear layer on the device. */
export interface Linear {
  readonly spec: LinearSpec;
  /** By role: `weight` or `values` and `scales`; `bias`; `down` and `up`. */
  readonly tensors: Readonly<Record<string, DeviceTensor>>;
}

/**
 * `y = W·x + b`, and beside it `up·(down·x)` where a LoRA is: base weights are never rewritten.
 * Declares the layer's tensors as inputs `name.role`.
 *
 * @param x [L, inFeatures]
 * @returns [L, outFeatures]
 */
export function linear(
  g: GraphBuilder,
  name: string,
  spec: LinearSpec,
  x: Value<'float32'>,
): Value<'float32'> {
  const { inFeatures: k, outFeatures: n } = spec;
  const bias = spec.bias ? g.input(`${name}.bias`, 'float32', [n]) : null;
  const y =
    spec.precision === 'int8'
      ? matMulInt8Blocks(
          x,
          g.input(`${name}.values`, 'uint8', [n, k / 32, 32]),
          g.input(`${name}.scales`, 'float32', [n, k / 32]),
          bias,
        )
      : gemm(x, g.input(`${name}.weight`, 'float32', [n, k]), bias);
  if (!spec.lora) return y;
  const rank = `${name}.rank`;
  const down = g.input(`${name}.down`, 'float32', [rank, k]);
  const up = g.input(`${name}.up`, 'float32', [n, rank]);
  return add(y, gemm(gemm(x, down, null), up, null));
}

/** The bindings that {@link linear} declared under `name`. */
export function bindLinear(name: string, layer: Linear): Bindings {
  return Object.fromEntries(
    Object.entries(layer.tensors).map(([role, tensor]) => [`${name}.${role}`, tensor]),
  );
}

/** The precision a layer can have: blocks of 32 must fill the rows. */
export function precisionFor(wanted: Precision, inFeatures: number): Precision {
  return inFeatures % 32 === 0 ? wanted : 'f32';
}

export interface LoaderOptions {
  readonly precision: Precision;
  /** Adapters to put beside the layers. */
  readonly lora?: LoraBranches;
  /** Called with the stored size of each tensor that was read. */
  readonly onBytes?: (bytes: number) => void;
  readonly signal?: AbortSignal;
}

/** Reads tensors of a checkpoint into device memory that belongs to a scope. */
export class LayerLoader {
  constructor(
    readonly scope: Scope,
    readonly checkpoint: Checkpoint,
    readonly options: LoaderOptions,
  ) {}

  /** A tensor as f32 with the LoRA's delta, if any, added. */
  async read(name: string): Promise<Float32Array> {
    this.options.signal?.throwIfAborted();
    const data = await this.checkpoint.read(name);
    this.options.onBytes?.(this.checkpoint.bytes(name));
    const delta = this.options.lora?.deltas.get(name);
    return delta ? data.map((value, i) => value + (delta[i] ?? 0)) : data;
  }

  /** A tensor as it is, in a shape of the caller's choice. */
  async tensor(name: string, dims: readonly number[], category: Category = 'weights') {
    return this.scope.float32(dims, category, await this.read(name));
  }

  /**
   * The linear layer `name.weight` with `name.bias` where there is one.
   *
   * @param options `f32` keeps it plain; `rows` reorders the outputs (row i of the layer is row
   * `rows[i]` of the file)
   * @throws KinoraError `MODEL_FILE_INVALID` where the weight is to be int8 and is not finite; and as
   * the checkpoint's reads do
   */
  async linear(
    name: string,
    options: { precision?: Precision; rows?: readonly number[] } = {},
  ): Promise<Linear> {
    const [outFeatures = 0, ...inner] = this.checkpoint.shape(`${name}.weight`);
    const inFeatures = elementCount(inner);
    const reorder = (data: Float32Array, width: number) =>
      options.rows ? permuteRows(data, width, options.rows) : data;
    const weight = reorder(await this.read(`${name}.weight`), inFeatures);
    const precision = precisionFor(options.precision ?? this.options.precision, inFeatures);
    const tensors: Record<string, DeviceTensor> = {};
    if (precision === 'int8') {
      const { values, scales } = quantise(`${name}.weight`, weight, outFeatures, inFeatures);
      const blocks = inFeatures / 32;
      tensors.values = this.scope.tensor('uint8', [outFeatures, blocks, 32], 'weights', values);
      tensors.scales = this.scope.float32([outFeatures, blocks], 'weights', scales);
    } else {
      tensors.weight = this.scope.float32([outFeatures, inFeatures], 'weights', weight);
    }
    const bias = this.checkpoint.has(`${name}.bias`);
    if (bias) {
      const data = reorder(await this.read(`${name}.bias`), 1);
      tensors.bias = this.scope.float32([outFeatures], 'weights', data);
    }
    const branch = this.options.lora?.branches.get(name);
    if (branch) {
      const { rank, down, up } = branch;
      tensors.down = this.scope.float32([rank, inFeatures], 'lora', down);
      tensors.up = this.scope.float32([outFeatures, rank], 'lora', reorder(up, rank));
    }
    const spec = { inFeatures, outFeatures, precision, bias, lora: branch !== undefined };
    return { spec, tensors };
  }
}

function quantise(name: string, weight: Float32Array, rows: number, columns: number) {
  try {
    return quantiseInt8Blocks(weight, rows, columns);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    const sentence = `The tensor ${name} holds a number that is NaN or infinite.`;
    throw new KinoraError('MODEL_FILE_INVALID', sentence, { cause });
  }
}

function permuteRows(data: Float32Array, width: number, rows: readonly number[]): Float32Array {
  const out = new Float32Array(data.length);
  rows.forEach((source, target) => {
    out.set(data.subarray(source * width, (source + 1) * width), target * width);
  });
  return out;
}
