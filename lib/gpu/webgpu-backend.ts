import type * as Ort from 'onnxruntime-web/webgpu';
import { KinoraError } from '../contract';
import type { ElementArrays, ElementType, Graph } from '../onnx';
import {
  type Backend,
  type Bindings,
  checkBindings,
  elementBytes,
  elementCount,
  trimThreshold,
} from './backend';
import { gpuCanHold, mainMemoryBudget } from './budget';
import { type Gpu, type GpuOptions, requestDevice } from './device';
import { DeviceFaults } from './faults';
import { InFlight } from './in-flight';
import { fromHalf } from './kernels/half';
import { KernelRunner } from './kernels/run';
import { Counted } from './ledger';
import { StagingPool } from './pool';
import { type Runtime, SerialQueue, SessionCache } from './runtime/session';
import type { Category, DeviceTensor, ReadableTensor } from './tensor';

/** ONNX Runtime rounds its copies up to 16 bytes, so that buffers have multiples of this size. */
const alignment = 16;

class GpuTensor<T extends ElementType> implements DeviceTensor<T> {
  disposed = false;

  constructor(
    readonly dtype: T,
    readonly dims: readonly number[],
    readonly category: Category,
    readonly bytes: number,
    readonly buffer: GPUBuffer,
    readonly ort: Ort.Tensor,
  ) {}

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.buffer.destroy();
  }
}

/** The GPU: ONNX Runtime's WebGPU provider on a device of our own. */
export class WebGpuBackend extends Counted implements Backend {
  readonly kind = 'webgpu';
  readonly convLayout = 'nhwc';
  readonly #queue = new SerialQueue();
  readonly #runtime: Runtime;
  readonly #sessions: SessionCache;
  /** Category of the buffer that is being created; buffers of ONNX Runtime have the default. */
  #creating: Category = 'runtime';
  readonly #staging = new StagingPool((size) =>
    this.device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST }),
  );
  readonly device: GPUDevice;
  readonly compute: KernelRunner;
  /** Every wait also ends with the loss of the device: a run on a lost device never returns. */
  readonly #faults: DeviceFaults;
  readonly #inFlight = new InFlight();
  #disposed = false;

  /**
   * Requests a device and prepares the runtime on it.
   *
   * @throws KinoraError `WEBGPU_MISSING`, `ADAPTER_MISSING`, or `DEVICE_LOST` where the browser loses the GPU
   *   meanwhile
   */
  static async create(runtime: Runtime, options?: GpuOptions): Promise<WebGpuBackend> {
    const gpu = await requestDevice(options).catch((cause: unknown) => {
      // An adapter gives no device only when its GPU is gone, because every requested feature is one that it offers.
      throw cause instanceof DOMException
        ? new KinoraError('DEVICE_LOST', undefined, { cause })
        : cause;
    });
    return new WebGpuBackend(runtime, gpu);
  }

  private constructor(
    runtime: Runtime,
    readonly gpu: Gpu,
  ) {
    super();
    const { device } = gpu;
    this.device = device;
    this.#runtime = runtime;
    this.maxBufferBytes = device.limits.maxBufferSize;
    if (gpu.software) this.mainMemory = mainMemoryBudget();
    this.#watchBuffers();
    this.#faults = new DeviceFaults(device);
    this.compute = new KernelRunner({
      ...gpu,
      inFlight: this.#inFlight,
      bufferOf: (tensor) => this.#own(tensor).buffer,
      queued: (task) => this.#queued(task),
      race: (work) => this.#faults.race(work),
      reasonOf: (error) => this.#faults.reasonOf(error),
    });
    this.#sessions = new SessionCache(runtime, {
      executionProviders: [
        { name: 'webgpu', device, storageBufferCacheMode: 'simple', validationMode: 'disabled' },
      ],
      preferredOutputLocation: 'gpu-buffer',
      graphOptimizationLevel: 'basic',
    });
  }

  get lost(): boolean {
    const fault = this.#faults.current?.code;
    return this.#disposed || (fault !== undefined && fault !== 'OUT_OF_MEMORY');
  }

  tensor<T extends ElementType>(
    dtype: T,
    dims: readonly number[],
    category: Category,
    data?: ElementArrays[T],
  ): DeviceTensor<T> {
    // Loading stops at the first failure instead of going on for gigabytes.
    this.#faults.check();
    const bytes = elementCount(dims) * elementBytes[dtype];
    const size = Math.max(alignment, Math.ceil(bytes / alignment) * alignment);
    this.requireRoom(size);
    this.#creating = category;
    const buffer = this.device.createBuffer({
      size,
      usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
    });
    this.#creating = 'runtime';
    const ort = this.#runtime.Tensor.fromGpuBuffer(buffer, {
      dataType: dtype as 'float32',
      dims: [...dims],
    });
    const tensor = new GpuTensor(dtype, dims, category, bytes, buffer, ort);
    if (data) this.write(tensor, data);
    return tensor;
  }

  write<T extends ElementType>(tensor: DeviceTensor<T>, data: ElementArrays[T]): void {
    const { buffer, bytes } = this.#own(tensor);
    if (data.byteLength !== bytes) {
      throw new TypeError(`${data.length} elements do not fill [${tensor.dims.join(', ')}]`);
    }
    // writeBuffer wants multiples of 4 bytes; only uint8 tensors can be otherwise.
    const even = bytes % 4 === 0;
    const source = even ? data : new Uint8Array(Math.ceil(bytes / 4) * 4);
    if (!even) (source as Uint8Array).set(data as Uint8Array);
    this.device.queue.writeBuffer(buffer, 0, source.buffer, source.byteOffset, source.byteLength);
    this.#inFlight.wrote(source.byteLength);
  }

  copy(
    source: DeviceTensor,
    sourceOffset: number,
    target: DeviceTensor,
    targetOffset: number,
    count: number,
  ): void {
    const size = elementBytes[source.dtype];
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(
      this.#own(source).buffer,
      sourceOffset * size,
      this.#own(target).buffer,
      targetOffset * size,
      count * size,
    );
    this.device.queue.submit([encoder.finish()]);
  }

  rows(): null {
    return null;
  }

  protected async bring(tensor: ReadableTensor): Promise<Float32Array<ArrayBuffer>> {
    const { buffer, bytes } = this.#own(tensor);
    const { size } = buffer;
    const staging = await this.#queued(async () => {
      this.ledger.countReadback();
      const target = this.#staging.take(size);
      const encoder = this.device.createCommandEncoder();
      encoder.copyBufferToBuffer(buffer, 0, target, 0, size);
      this.device.queue.submit([encoder.finish()]);
      return target;
    });
    // Outside of the queue, so that reads which were begun together wait together.
    return this.#explained(async () => {
      let isRead = false;
      try {
        await this.#faults.race(staging.mapAsync(GPUMapMode.READ, 0, size));
        const content = staging.getMappedRange(0, size).slice(0, bytes);
        const data =
          tensor.dtype === 'float16'
            ? fromHalf(new Uint16Array(content))
            : new Float32Array(content);
        staging.unmap();
        await this.#faults.confirmRead();
        isRead = true;
        return data;
      } finally {
        if (isRead && !this.#disposed) this.#staging.give(staging);
        else staging.destroy();
      }
    });
  }

  run(graph: Graph, inputs: Bindings, outputs: Bindings): Promise<void> {
    checkBindings(graph, inputs, outputs);
    return this.#queued(() => this.#faults.race(this.#submit(graph, inputs, outputs)));
  }

  async settle(): Promise<void> {
    await this.#queued(async () => {
      this.ledger.countWait();
      await this.#faults.race(this.device.queue.onSubmittedWorkDone());
      await this.#faults.reported();
      this.#faults.check();
    });
  }

  async releaseSessions(): Promise<void> {
    // Releasing sessions waits for the device, which does not answer when it is lost.
    if (this.#faults.current?.code === 'DEVICE_LOST') return;
    await this.#queue.run(async () => {
      this.compute.release();
      await this.#faults.race(this.#sessions.release());
      this.#staging.clear();
    });
  }

  async recover(): Promise<void> {
    if (this.#faults.current?.code !== 'OUT_OF_MEMORY') this.#faults.check();
    await this.releaseSessions();
    await this.#queue.run(() =>
      this.#faults.clearOutOfMemory().catch(async (error: unknown) => {
        throw await this.#faults.reasonOf(error);
      }),
    );
  }

  canHold(bytes: number): Promise<boolean> {
    const most = Math.min(this.ceiling, this.mainMemory);
    if (this.ledger.liveBytes + bytes > most) return Promise.resolve(false);
    return this.#queued(() => {
      this.ledger.countWait();
      return gpuCanHold(this.gpu, bytes);
    });
  }

  async trim(): Promise<void> {
    const kept = this.ledger.counters().categories.runtime?.live ?? 0;
    if (kept > trimThreshold) await this.releaseSessions();
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.releaseSessions();
    this.compute.dispose();
    this.device.destroy();
  }

  /** Runs a task in the one queue. */
  #queued<T>(task: () => Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      this.#faults.check();
      return this.#explained(task);
    });
  }

  /** Without memory, or on a lost device, a task fails in many ways; the fault is the reason. */
  async #explained<T>(task: () => Promise<T>): Promise<T> {
    try {
      return await task();
    } catch (error) {
      throw await this.#faults.reasonOf(error);
    }
  }

  async #submit(graph: Graph, inputs: Bindings, outputs: Bindings): Promise<void> {
    const session = await this.#sessions.get(graph);
    await session.run(this.#bind(inputs), this.#bind(outputs));
    await this.#inFlight.add(this.device.queue.onSubmittedWorkDone());
  }

  #bind(bindings: Bindings): Record<string, Ort.Tensor> {
    return Object.fromEntries(
      Object.entries(bindings).map(([name, tensor]) => [name, this.#own(tensor).ort]),
    );
  }

  #own<T extends ElementType>(tensor: DeviceTensor<T>): GpuTensor<T> {
    if (!(tensor instanceof GpuTensor)) throw new TypeError('the tensor is of another backend');
    if (tensor.disposed) throw new TypeError('the tensor was disposed');
    return tensor as GpuTensor<T>;
  }

  /** Counts every buffer of the device, ONNX Runtime's included. */
  #watchBuffers(): void {
    const create = this.device.createBuffer.bind(this.device);
    this.device.createBuffer = (descriptor) => {
      const buffer = create(descriptor);
      const release = this.ledger.take(this.#creating, descriptor.size);
      const destroy = buffer.destroy.bind(buffer);
      buffer.destroy = () => {
        release();
        return destroy();
      };
      return buffer;
    };
  }
}
