import { at } from '../contract';
import type { Dim, ElementType, Graph } from '../onnx';
import {
  type Backend,
  type Bindings,
  checkBindings,
  elementBytes,
  elementCount,
  tensorBytes,
} from './backend';
import type { Compute, KernelChoice } from './kernels';
import { checkJob } from './kernels/run';
import { Counted } from './ledger';
import { StagingPool } from './pool';
import type { Category, DeviceTensor, ReadableTensor } from './tensor';

/** Operators whose result shares its input's memory. */
const aliases = new Set(['Reshape', 'Unsqueeze', 'Identity']);

/** In graphs of nothing but these the runtime reuses a buffer as soon as it is not read any more. */
const elementWise = new Set(['Add', 'Sub', 'Mul', 'Div']);

const unlimited: Compute['limits'] = {
  workgroupBytes: Number.POSITIVE_INFINITY,
  threads: Number.POSITIVE_INFINITY,
  bindingBytes: Number.POSITIVE_INFINITY,
  storageBuffers: Number.POSITIVE_INFINITY,
};

/**
 * What the runtime allocates for the uniforms of its kernels. Measured for the denoising loop: 52 buffers
 * of 6 kB together, independent of the size of the model.
 */
export const uniformBytes = 2 ** 16;

/** The most bytes of a device that were taken at a time, by what they were for. */
export interface DeviceBytes {
  readonly weights: number;
  /** Tensors of ours between runs, the latents and a LoRA's factors among them. */
  readonly activations: number;
  /** The decoder's memory of past frames. */
  readonly caches: number;
  /** Intermediates inside the runtime's runs. */
  readonly runtime: number;
  /** The highest sum at any moment. */
  readonly peak: number;
  /** The most in one buffer. */
  readonly largest: number;
}

/**
 * A backend that computes nothing and allocates nothing: it counts what the others would allocate. The
 * memory plan runs the engine's own code on it, so that plan and engine cannot differ.
 *
 * The runtime's part is simulated from the graphs. Each intermediate takes a buffer of exactly its size,
 * which returns to a pool and never to the device (README, "Memory of a run"). Buffers return when the run
 * is over, those of the last operators only with the next run. Measurements never exceed the simulation.
 */
export class CountingBackend extends Counted implements Backend {
  readonly kind = 'webgpu';
  readonly lost = false;
  readonly convLayout = 'nhwc';
  readonly #pool = new Map<number, { free: number; allocated: number }>();
  /** Kernels allocate nothing; their uniforms are counted with the runtime's. */
  readonly compute: Compute;
  #releases: (() => void)[] = [];
  /** What the last run gives back with the next one. */
  #pending: number[] = [];
  readonly #staging = new StagingPool((size) => ({
    size,
    destroy: this.ledger.take('runtime', size),
  }));
  /** Buffers of readbacks that nothing has waited for. */
  #staged: { readonly size: number; destroy(): void }[] = [];

  /**
   * @param choice the kernels of our own that compute; null where the runtime does
   * @param device what compiles them; without limits when absent
   */
  constructor(choice: KernelChoice | null = null, device?: Compute | null) {
    super();
    this.kernels = choice;
    const limits = { ...(device?.limits ?? unlimited) };
    this.compute = {
      used: new Set(),
      clamped: { count: 0 },
      peak: null,
      unfinished: [],
      features: new Set(),
      limits,
      rates: new Map(),
      compile: async (kernels) => (await device?.compile(kernels)) ?? [],
      dispatch: async (jobs) => {
        for (const job of jobs) checkJob(job, limits.bindingBytes);
        this.#takeUniforms();
      },
    };
  }

  tensor<T extends ElementType>(
    dtype: T,
    dims: readonly number[],
    category: Category,
  ): DeviceTensor<T> {
    const bytes = tensorBytes(dtype, dims);
    this.requireRoom(bytes);
    const release = this.ledger.take(category, bytes);
    let disposed = false;
    return {
      dtype,
      dims,
      bytes,
      category,
      get disposed() {
        return disposed;
      },
      dispose() {
        disposed = true;
        release();
      },
    };
  }

  write(): void {}

  copy(): void {}

  rows(): null {
    return null;
  }

  protected async bring(tensor: ReadableTensor): Promise<Float32Array<ArrayBuffer>> {
    this.ledger.countReadback();
    this.#staged.push(this.#staging.take(tensor.bytes));
    return new Float32Array(elementCount(tensor.dims));
  }

  override collect<T extends readonly unknown[]>(staged: readonly [...T]) {
    for (const buffer of this.#staged.splice(0)) this.#staging.give(buffer);
    return super.collect(staged);
  }

  async run(graph: Graph, inputs: Bindings, outputs: Bindings): Promise<void> {
    checkBindings(graph, inputs, outputs);
    this.#takeUniforms();
    this.#simulate(graph, symbolsOf(graph, { ...inputs, ...outputs }));
  }

  #takeUniforms(): void {
    if (this.#releases.length > 0) return;
    this.#releases.push(this.ledger.take('runtime', uniformBytes));
  }

  async settle(): Promise<void> {
    this.ledger.countWait();
  }

  async releaseSessions(): Promise<void> {
    for (const release of this.#releases) release();
    this.#releases = [];
    this.#pending = [];
    this.#pool.clear();
    this.#staging.clear();
  }

  recover(): Promise<void> {
    return this.releaseSessions();
  }

  async canHold(bytes: number): Promise<boolean> {
    return this.ledger.liveBytes + bytes <= this.ceiling;
  }

  trim(): Promise<void> {
    return this.releaseSessions();
  }

  dispose(): Promise<void> {
    return this.releaseSessions();
  }

  /** What has been taken since this backend was made. */
  measured(): DeviceBytes {
    const { categories } = this.counters();
    const peak = (category: Category) => categories[category]?.peak ?? 0;
    return {
      weights: peak('weights'),
      activations: peak('activations') + peak('latents') + peak('lora'),
      caches: peak('caches'),
      runtime: peak('runtime'),
      peak: this.peakBytes,
      largest: this.largestBuffer,
    };
  }

  #simulate(graph: Graph, symbols: ReadonlyMap<string, number>): void {
    const own = new Set([...graph.inputs, ...graph.outputs].map((port) => port.name));
    const roots = new Map<string, string>(); // alias → the tensor whose memory it shares
    const rootOf = (name: string): string => roots.get(name) ?? name;
    const lastUse = new Map<string, number>();
    for (const [index, { op, inputs, outputs }] of graph.nodes.entries()) {
      for (const name of inputs) lastUse.set(rootOf(name), index);
      const [source] = inputs;
      const [result] = outputs;
      // A result that the caller has allocated is copied into, not shared.
      if (aliases.has(op) && source && result && !own.has(result.name)) {
        roots.set(result.name, rootOf(source));
      }
    }
    const reused = graph.nodes.every(({ op }) => elementWise.has(op));
    const taken = new Map<string, number>();
    const late = graph.nodes.length - 2;
    for (const [index, { op, inputs, outputs }] of graph.nodes.entries()) {
      for (const { name, dims, dtype } of outputs) {
        if (own.has(name) || roots.has(name)) continue;
        const bytes =
          elementBytes[dtype] * elementCount(dims.map((dim) => runtimeSize(dim, symbols)));
        this.#take(bytes);
        taken.set(name, bytes);
        if (!lastUse.has(name)) lastUse.set(name, index);
      }
      for (const [i, bytes] of kernelBuffers(graph, op, inputs, symbols).entries()) {
        this.#take(bytes);
        taken.set(`${index} ${i}`, bytes);
      }
      for (const [name, bytes] of reused ? taken : []) {
        if ((lastUse.get(name) ?? index) > index) continue;
        this.#give(bytes);
        taken.delete(name);
      }
    }
    const pending = this.#pending;
    this.#pending = [];
    for (const [name, bytes] of taken) {
      if (!reused && (lastUse.get(name) ?? 0) >= late) this.#pending.push(bytes);
      else this.#give(bytes);
    }
    for (const bytes of pending) this.#give(bytes);
  }

  #take(bytes: number): void {
    const entry = this.#pool.get(bytes) ?? { free: 0, allocated: 0 };
    if (entry.free > 0) {
      entry.free -= 1;
    } else {
      entry.allocated += 1;
      this.#releases.push(this.ledger.take('runtime', bytes));
    }
    this.#pool.set(bytes, entry);
  }

  #give(bytes: number): void {
    const entry = this.#pool.get(bytes);
    if (entry) entry.free += 1;
  }
}

/**
 * Buffers that a kernel takes for a layout of its own: attention copies keys and values, a convolution its
 * filters where they are an input of the graph. Within a run none of them serves twice (counted with
 * several convolutions in one graph).
 */
function kernelBuffers(
  graph: Graph,
  op: string,
  inputs: readonly string[],
  symbols: ReadonlyMap<string, number>,
): number[] {
  const copied = { MultiHeadAttention: [1, 2], Conv: [1] }[op] ?? [];
  if (copied.length === 0) return [];
  const ports = [...graph.inputs, ...graph.nodes.flatMap((node) => node.outputs)];
  return copied.flatMap((input) => {
    const port = ports.find(({ name }) => name === inputs[input]);
    return port ? [4 * elementCount(port.dims.map((dim) => runtimeSize(dim, symbols)))] : [];
  });
}

/** What each name of a symbolic dimension stands for in this run. */
function symbolsOf(graph: Graph, bindings: Bindings): Map<string, number> {
  const symbols = new Map<string, number>();
  for (const port of [...graph.inputs, ...graph.outputs]) {
    const bound = bindings[port.name];
    port.dims.forEach((dim, axis) => {
      if (typeof dim === 'string' && bound) symbols.set(dim, at(bound.dims, axis));
    });
  }
  return symbols;
}

/**
 * A size, a name, or a sum of both as `addDims` writes it.
 *
 * @throws TypeError for a name that no input or output of the graph has
 */
function runtimeSize(dim: Dim, symbols: ReadonlyMap<string, number>): number {
  if (typeof dim === 'number') return dim;
  const size =
    symbols.get(dim) ??
    dim.split('+').reduce((sum, part) => sum + (symbols.get(part) ?? Number(part)), 0);
  if (Number.isNaN(size)) throw new TypeError(`the size ${dim} is not known`);
  return size;
}
