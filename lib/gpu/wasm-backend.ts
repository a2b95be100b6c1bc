import type * as Ort from 'onnxruntime-web/webgpu';
import type { ElementArrays, ElementType, Graph } from '../onnx';
import { type Backend, type Bindings, checkBindings, elementBytes, elementCount } from './backend';
import { mainMemoryBudget } from './budget';
import { cannotHold } from './faults';
import { fromHalf } from './kernels/half';
import { Counted, type Ledger } from './ledger';
import { handleMessages } from './messages';
import { type Runtime, SerialQueue, SessionCache } from './runtime/session';
import type { Category, DeviceTensor, ReadableTensor } from './tensor';

class CpuTensor<T extends ElementType> implements DeviceTensor<T> {
  readonly bytes: number;
  disposed = false;
  /** Of the content. */
  version = 0;
  readonly #release: () => void;

  constructor(
    readonly dtype: T,
    readonly dims: readonly number[],
    readonly category: Category,
    public data: ElementArrays[T],
    /** Null for a view, whose memory is another tensor's. */
    ledger: Ledger | null,
  ) {
    this.bytes = elementCount(dims) * elementBytes[dtype];
    this.#release = ledger ? ledger.take(category, this.bytes) : () => undefined;
  }

  dispose(): void {
    this.disposed = true;
    this.#release();
  }
}

function emptyArray(dtype: ElementType, count: number): ElementArrays[ElementType] {
  switch (dtype) {
    case 'float32':
      return new Float32Array(count);
    case 'float16':
      return new Uint16Array(count);
    case 'int32':
      return new Int32Array(count);
    case 'int64':
      return new BigInt64Array(count);
    case 'uint8':
    case 'bool':
      return new Uint8Array(count);
  }
}

/** @throws KinoraError `OUT_OF_MEMORY` */
function allocate(dtype: ElementType, count: number): ElementArrays[ElementType] {
  try {
    return emptyArray(dtype, count);
  } catch (cause) {
    // The longest array, or the browser's memory, is exceeded.
    throw cause instanceof RangeError ? cannotHold(`a tensor of ${count} elements`, cause) : cause;
  }
}

/** Messages of the runtime when a size, or the memory for it, exceeds WebAssembly's 4 GiB. */
const tooLarge = /integer overflow|bad_alloc|shape is too large|out of memory|aborted\(oom\)/i;

/** The CPU: vectors of WebAssembly compute graphs, or ONNX Runtime what they do not. */
export class WasmBackend extends Counted implements Backend {
  readonly kind = 'wasm';
  readonly compute = null;
  readonly lost = false;
  readonly convLayout = 'nchw';
  override readonly simd = {
    take: (category: Category, bytes: number) => {
      this.requireRoom(bytes);
      return this.ledger.take(category, bytes);
    },
    room: () => this.ceiling - this.ledger.liveBytes,
    values: (tensor: DeviceTensor) => this.#own(tensor).data as Float32Array,
    version: (tensor: DeviceTensor) => this.#own(tensor).version,
  };
  readonly #queue = new SerialQueue();
  #sessions: SessionCache | undefined;

  /** @param load gives the runtime when something is first computed by it: kernels of our own may compute all */
  constructor(readonly load: () => Runtime | Promise<Runtime>) {
    super();
    this.mainMemory = mainMemoryBudget();
  }

  tensor<T extends ElementType>(
    dtype: T,
    dims: readonly number[],
    category: Category,
    data?: ElementArrays[T],
  ): DeviceTensor<T> {
    this.requireRoom(elementCount(dims) * elementBytes[dtype]);
    const content = allocate(dtype, elementCount(dims)) as ElementArrays[T];
    const tensor = new CpuTensor(dtype, dims, category, content, this.ledger);
    if (data) this.write(tensor, data);
    return tensor;
  }

  write<T extends ElementType>(tensor: DeviceTensor<T>, data: ElementArrays[T]): void {
    const target = this.#own(tensor);
    if (data.length !== target.data.length) {
      throw new TypeError(`${data.length} elements do not fill [${tensor.dims.join(', ')}]`);
    }
    // Both arrays are of the tensor's element type; TypeScript cannot relate the two unions.
    (target.data as Float32Array).set(data as Float32Array);
    target.version += 1;
  }

  copy(
    source: DeviceTensor,
    sourceOffset: number,
    target: DeviceTensor,
    targetOffset: number,
    count: number,
  ): void {
    const from = this.#own(source).data as Float32Array;
    const to = this.#own(target).data as Float32Array;
    to.set(from.subarray(sourceOffset, sourceOffset + count), targetOffset);
  }

  rows(tensor: DeviceTensor, first: number, count: number): DeviceTensor {
    const { dtype, dims, category, data } = this.#own(tensor);
    const width = elementCount(dims.slice(1));
    const part = data.subarray(first * width, (first + count) * width);
    return new CpuTensor(dtype, [count, ...dims.slice(1)], category, part, null);
  }

  protected async bring(tensor: ReadableTensor): Promise<Float32Array<ArrayBuffer>> {
    this.ledger.countReadback();
    const { data } = this.#own<'float32' | 'float16'>(tensor);
    return data instanceof Float32Array ? data.slice() : fromHalf(data);
  }

  run(graph: Graph, inputs: Bindings, outputs: Bindings): Promise<void> {
    checkBindings(graph, inputs, outputs);
    return this.#queue.run(async () => {
      const results = await this.#compute(graph, inputs).catch((cause: unknown) => {
        if (!(cause instanceof Error) || !tooLarge.test(cause.message)) throw cause;
        throw cannotHold(`what the step "${graph.name}" needs: it has 4 GiB at most`, cause);
      });
      for (const [name, tensor] of Object.entries(outputs)) {
        const result = results[name];
        const target = this.#own(tensor);
        if (!result || elementCount(result.dims) !== target.data.length) {
          throw new TypeError(
            `${graph.name}: output ${name} came as [${result?.dims.join(', ')}], ` +
              `expected [${tensor.dims.join(', ')}]`,
          );
        }
        (target.data as Float32Array).set(result.data as Float32Array);
      }
    });
  }

  async #compute(graph: Graph, inputs: Bindings): Promise<Ort.InferenceSession.ReturnType> {
    this.#sessions ??= new SessionCache(await this.load(), {
      executionProviders: ['wasm'],
      graphOptimizationLevel: 'basic',
    });
    const { runtime } = this.#sessions;
    const session = await this.#sessions.get(graph);
    const feeds: Record<string, Ort.Tensor> = {};
    for (const [name, tensor] of Object.entries(inputs)) {
      const { dtype, dims, data } = this.#own(tensor);
      feeds[name] = new runtime.Tensor(dtype, data as Float32Array, dims);
    }
    return session.run(feeds);
  }

  async settle(): Promise<void> {
    // A run has finished when its promise resolves; a cancellation may come in.
    await handleMessages();
  }

  releaseSessions(): Promise<void> {
    return this.#queue.run(async () => {
      await this.#sessions?.release();
    });
  }

  recover(): Promise<void> {
    return this.releaseSessions();
  }

  async canHold(bytes: number): Promise<boolean> {
    return this.ledger.liveBytes + bytes <= Math.min(this.ceiling, this.mainMemory);
  }

  async trim(): Promise<void> {
    // The heap of WebAssembly never shrinks: releasing sessions would free nothing.
  }

  async dispose(): Promise<void> {
    await this.releaseSessions();
  }

  #own<T extends ElementType>(tensor: DeviceTensor<T>): CpuTensor<T> {
    if (!(tensor instanceof CpuTensor)) throw new TypeError('the tensor is of another backend');
    if (tensor.disposed) throw new TypeError('the tensor was disposed');
    return tensor as CpuTensor<T>;
  }
}
