import type { EngineCounters } from '../contract';
import type { ElementArrays, ElementType, Graph } from '../onnx';
import type { Compute, KernelChoice } from './kernels';
import type { Category, DeviceTensor, ReadableTensor } from './tensor';

/** Bytes of one element of each type. */
export const elementBytes: Record<ElementType, number> = {
  float32: 4,
  float16: 2,
  int32: 4,
  int64: 8,
  uint8: 1,
  bool: 1,
};

/** Bytes of a tensor on a GPU, whose buffers are multiples of 16. */
export function tensorBytes(dtype: ElementType, dims: readonly number[]): number {
  return Math.max(16, Math.ceil((elementBytes[dtype] * elementCount(dims)) / 16) * 16);
}

/** Sizes of float32 tensors by name. */
export type TensorSizes = Readonly<Record<string, readonly number[]>>;

/** Named tensors, as a graph's inputs or outputs. */
export type Bindings = Readonly<Record<string, DeviceTensor>>;

/**
 * Where graphs run: the GPU through WebGPU, or the CPU through WebAssembly. Both take the same
 * graphs and give the same numbers up to rounding.
 */
export interface Backend {
  readonly kind: 'webgpu' | 'wasm';
  /** Layout in which `conv2d` is to be emitted; tensors between operators are NHWC in both. */
  readonly convLayout: 'nhwc' | 'nchw';
  /** Whether the device cannot be used any more: every further call rejects. */
  readonly lost: boolean;

  /**
   * The kernels of our own that compute the networks of `lib/graph`. The runtime computes networks without a family
   * here, and all networks where it is null.
   */
  kernels: KernelChoice | null;
  /** Runs compute shaders of our own; null where there are none, as on the CPU. */
  readonly compute: Compute | null;
  /** What kernels for the CPU compute with; null on a GPU. */
  readonly simd: SimdMemory | null;
  /** Whether the runtime computes what these kernels could. */
  runtimeOnly: boolean;

  /**
   * Features of the GPU that the device was opened without, as its numbers were wrong with them; empty where they
   * were right, and undefined where no such feature was tested.
   */
  refused?: readonly string[];
  /** Most bytes that may be live when a tensor is created; infinite by default. */
  ceiling: number;
  /** Bytes of main memory that its tensors may take; infinite where the device has memory of its own. */
  mainMemory: number;
  /** Largest buffer of the device in bytes; infinite where only the sum is limited. */
  readonly maxBufferBytes: number;

  /**
   * Allocates memory. The content is zero unless `data` is given.
   *
   * @throws KinoraError `OUT_OF_MEMORY` beyond the {@link ceiling} or the device's largest buffer. A
   * device without free memory may report it later: then the next tensor, or the next call that waits for
   * the device, throws it.
   */
  tensor<T extends ElementType>(
    dtype: T,
    dims: readonly number[],
    category: Category,
    data?: ElementArrays[T],
  ): DeviceTensor<T>;
  /** Overwrites a tensor's content; allocates nothing. */
  write<T extends ElementType>(tensor: DeviceTensor<T>, data: ElementArrays[T]): void;
  /** Copies `count` elements between tensors of one element type; offsets in elements. */
  copy(
    source: DeviceTensor,
    sourceOffset: number,
    target: DeviceTensor,
    targetOffset: number,
    count: number,
  ): void;
  /**
   * Rows [first, first + count) of a tensor as a tensor that shares its memory. It is not disposed; null where the
   * runtime knows no offsets, as on a GPU.
   */
  rows(tensor: DeviceTensor, first: number, count: number): DeviceTensor | null;
  /** Brings a tensor's content to the CPU; f16 is widened. */
  read(tensor: ReadableTensor): Promise<Float32Array<ArrayBuffer>>;
  /**
   * Begins to bring a tensor's content to the CPU, as it is when all before is done: it may be overwritten afterwards.
   * The result is awaited by {@link collect}.
   */
  stage(tensor: ReadableTensor): Promise<Float32Array<ArrayBuffer>>;
  /** Waits once for what was staged. */
  collect<T extends readonly unknown[]>(
    staged: readonly [...T],
  ): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }>;
  /**
   * Runs a graph on bound inputs into pre-allocated outputs. Resolves when the work is submitted.
   *
   * @throws TypeError when a binding is missing, extra, or has another type or shape than the graph
   */
  run(graph: Graph, inputs: Bindings, outputs: Bindings): Promise<void>;
  /** Resolves when all submitted work is done; rejects with the first error of it. */
  settle(): Promise<void>;
  /** Releases all sessions and with them the runtime's own memory. Tensors stay. */
  releaseSessions(): Promise<void>;
  /**
   * Calls {@link releaseSessions} if the runtime keeps much memory ({@link trimThreshold}). For less it is
   * not worth it: compiled pipelines are lost with the sessions, and cost seconds on slow devices.
   */
  trim(): Promise<void>;
  /**
   * Makes the backend usable again after an `OUT_OF_MEMORY`: releases all sessions and clears the fault.
   * Tensors stay; what was computed since the fault is invalid.
   */
  recover(): Promise<void>;
  /**
   * Whether so many bytes can be allocated in addition to what is live. Only a device with memory of its
   * own is tested; for the others the {@link ceiling} decides.
   */
  canHold(bytes: number): Promise<boolean>;
  counters(): EngineCounters;
  resetPeaks(): void;
  /** Highest live bytes since the last {@link resetPeaks}. */
  readonly peakBytes: number;
  /** Frees everything; the backend cannot be used afterwards. */
  dispose(): Promise<void>;
}

/** What kernels for the CPU need of its backend: their memory is their own. */
export interface SimdMemory {
  /** Accounts for memory. @returns what gives it back @throws KinoraError `OUT_OF_MEMORY` beyond the ceiling */
  take(category: Category, bytes: number): () => void;
  /** Bytes that may be taken yet. */
  room(): number;
  /** The content of a tensor, not copied. */
  values(tensor: DeviceTensor): Float32Array;
  /** Another number whenever the content may be another one. */
  version(tensor: DeviceTensor): number;
}

/** Tensors that are disposed together. */
export class Scope {
  readonly #tensors = new Set<DeviceTensor>();

  constructor(readonly backend: Backend) {}

  /** {@link Backend.tensor}, owned by this scope. */
  tensor<T extends ElementType>(
    dtype: T,
    dims: readonly number[],
    category: Category,
    data?: ElementArrays[T],
  ): DeviceTensor<T> {
    const tensor = this.backend.tensor(dtype, dims, category, data);
    this.#tensors.add(tensor);
    return tensor;
  }

  float32(dims: readonly number[], category: Category, data?: Float32Array) {
    return this.tensor('float32', dims, category, data);
  }

  /** Tensors by name. @param data the content of some of them */
  all<S extends TensorSizes>(
    sizes: S,
    category: Category,
    data: { readonly [Name in keyof S]?: Float32Array | undefined } = {},
  ): { readonly [Name in keyof S]: DeviceTensor<'float32'> } {
    const tensors = Object.entries(sizes).map(([name, dims]) => [
      name,
      this.float32(dims, category, data[name]),
    ]);
    return Object.fromEntries(tensors);
  }

  dispose(): void {
    for (const tensor of this.#tensors) tensor.dispose();
    this.#tensors.clear();
  }
}

/** Bytes that the runtime may keep between stages. */
export const trimThreshold = 256 * 2 ** 20;

/** Number of elements of a shape. */
export function elementCount(dims: readonly number[]): number {
  return dims.reduce((product, size) => product * size, 1);
}

/** Throws a TypeError unless the bindings are exactly what the graph declares. */
export function checkBindings(graph: Graph, inputs: Bindings, outputs: Bindings): void {
  const symbols = new Map<string, number>();
  const sides = [
    ['input', graph.inputs, inputs],
    ['output', graph.outputs, outputs],
  ] as const;
  for (const [side, ports, bindings] of sides) {
    for (const port of ports) {
      const bound = bindings[port.name];
      const place = `${graph.name}: ${side} ${port.name}`;
      if (!bound) throw new TypeError(`${place} is not bound`);
      if (bound.disposed) throw new TypeError(`${place} was disposed`);
      if (bound.dtype !== port.dtype) {
        throw new TypeError(`${place} is ${bound.dtype}, expected ${port.dtype}`);
      }
      const fits =
        bound.dims.length === port.dims.length &&
        port.dims.every((size, axis) => {
          const actual = bound.dims[axis];
          if (typeof size === 'number') return size === actual;
          const known = symbols.get(size);
          if (known === undefined && actual !== undefined) symbols.set(size, actual);
          return known === undefined || known === actual;
        });
      if (!fits) {
        throw new TypeError(
          `${place} is [${bound.dims.join(', ')}], expected [${port.dims.join(', ')}]`,
        );
      }
    }
    const extra = Object.keys(bindings).find((name) => !ports.some((port) => port.name === name));
    if (extra) throw new TypeError(`${graph.name}: there is no ${side} ${extra}`);
  }
}
