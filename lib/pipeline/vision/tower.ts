import {
  type Backend,
  type Bindings,
  type DeviceTensor,
  type Executor,
  handleMessages,
  openExecutor,
  Scope,
} from '../../gpu';
import {
  embeddingTensors,
  type Graph,
  layerTensors,
  patchValues,
  type VisionTransformer,
  visionEmbedding,
  visionLayer,
  visionRows,
} from '../../graph';

/** Configuration of a tower. */
export interface TowerOptions {
  /** Gives a tensor by its name in `visionTensors`. */
  readonly read: (name: string) => Promise<Float32Array>;
  /** Whether all layers stay on the device; else they follow each other in the same buffers, for one picture. */
  readonly resident?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Further results that are computed of the rows. */
  readonly graphs?: readonly Graph[];
}

/** A vision transformer on the device, in f32: one picture after another. */
export class VisionTower {
  /** [R, D] */
  readonly x: DeviceTensor<'float32'>;
  /** By layer where they stay, else in one place. */
  readonly #placed = new Map<string, DeviceTensor<'float32'>>();
  readonly #patches: DeviceTensor<'float32'>;
  #table: DeviceTensor<'float32'> | undefined;

  private constructor(
    readonly scope: Scope,
    readonly vit: VisionTransformer,
    readonly executor: Executor,
    readonly options: TowerOptions,
  ) {
    const rows = visionRows(vit);
    this.x = scope.float32([rows, vit.channels], 'activations');
    this.#patches = scope.float32([rows, patchValues(vit)], 'activations');
  }

  /**
   * @throws KinoraError `OUT_OF_MEMORY`; then nothing stays on the device
   * @throws Refusal where kernels of our own are to compute and do not
   */
  static async open(
    backend: Backend,
    vit: VisionTransformer,
    options: TowerOptions,
  ): Promise<VisionTower> {
    const rows = { R: visionRows(vit) };
    const sizes = { chunks: [], sizes: rows, classed: new Set<string>(), ranks: new Map() };
    const graphs = [visionEmbedding(vit), visionLayer(vit), ...(options.graphs ?? [])];
    const executor = await openExecutor(backend, graphs, sizes, 'f32');
    const scope = new Scope(backend);
    try {
      return new VisionTower(scope, vit, executor, options);
    } catch (error) {
      executor.dispose();
      scope.dispose();
      throw error;
    }
  }

  /**
   * Computes {@link x} of a picture.
   *
   * @param pixels [3, size, size]
   * @param onRows called with the rows before the first layer, and after each one
   * @throws KinoraError as the reads do, `OUT_OF_MEMORY`; the signal's reason
   */
  async compute(
    pixels: Float32Array,
    onRows?: (layer: number, rows: Float32Array) => void,
  ): Promise<void> {
    const { vit, executor, x } = this;
    const { backend } = this.scope;
    const trace = async (layer: number) => onRows?.(layer, await backend.read(x));
    backend.write(this.#patches, patchRows(pixels, vit));
    this.#table ??= this.scope.float32(x.dims, 'activations', await this.#readTable());
    const embedding = { table: this.#table, patches: this.#patches, x };
    const around = await this.tensors(embeddingTensors(vit));
    await executor.run(visionEmbedding(vit), { ...embedding, ...around });
    if (onRows) await trace(0);
    for (let layer = 0; layer < vit.layers; layer++) {
      const tensors = await this.tensors(layerTensors(vit), `layers.${layer}.`);
      await executor.run(visionLayer(vit), { x, ...tensors });
      if (onRows) await trace(layer + 1);
      await handleMessages();
    }
    await executor.finish();
  }

  /** Tensors on the device, by their names without the prefix. Those that stay are read once. */
  async tensors(
    shapes: readonly (readonly [name: string, dims: readonly number[]])[],
    prefix = '',
  ): Promise<Bindings> {
    const { read, resident, signal } = this.options;
    const bound: Record<string, DeviceTensor> = {};
    for (const [name, dims] of shapes) {
      const key = resident ? prefix + name : name;
      let tensor = this.#placed.get(key);
      if (!tensor || !resident) {
        signal?.throwIfAborted();
        const data = await read(prefix + name);
        if (tensor) this.scope.backend.write(tensor, data);
        else tensor = this.scope.float32(dims, 'weights', data);
        this.#placed.set(key, tensor);
      }
      bound[name] = tensor;
    }
    return bound;
  }

  /** What is added to the embedded patches: positions with the class token in the first row, the bias in the others. */
  async #readTable(): Promise<Float32Array> {
    const { read } = this.options;
    const table = (await read('positions')).slice();
    const token = await read('class');
    const bias = this.vit.patchBias ? await read('patch.bias') : null;
    const width = token.length;
    for (let i = 0; i < table.length; i++) {
      table[i] = (table[i] ?? 0) + ((i < width ? token[i] : bias?.[i % width]) ?? 0);
    }
    return table;
  }

  dispose(): void {
    this.executor.dispose();
    this.scope.dispose();
  }
}

/**
 * A square as rows of patches behind an empty one: values in the order (channel, row, column), as the weight of a
 * convolution with the stride of its kernel has them.
 *
 * @param pixels [3, size, size]
 * @returns [R, 3 · patch · patch]
 */
function patchRows(pixels: Float32Array, vit: VisionTransformer): Float32Array {
  const { imageSize, patchSize } = vit;
  const perSide = imageSize / patchSize;
  const rows = new Float32Array(visionRows(vit) * patchValues(vit));
  let to = patchValues(vit);
  for (let patch = 0; patch < perSide * perSide; patch++) {
    const corner =
      Math.floor(patch / perSide) * patchSize * imageSize + (patch % perSide) * patchSize;
    for (let line = 0; line < 3 * patchSize; line++) {
      const channel = Math.floor(line / patchSize);
      const from = channel * imageSize ** 2 + corner + (line % patchSize) * imageSize;
      rows.set(pixels.subarray(from, from + patchSize), to);
      to += patchSize;
    }
  }
  return rows;
}
