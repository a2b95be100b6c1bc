import type * as Ort from 'onnxruntime-web/webgpu';
import { KinoraError } from '../contract';
import type { ElementArrays, ElementType, Graph } from '../onnx';
import {
  type Backend,
  type Bindings,
  checkBindings,
  type DeviceTensor,
  elementBytes,
  elementCount,
  trimThreshold,
} from './backend';
import { requestDevice } from './device';
import { type Category, Counted } from './ledger';
import { SerialQueue } from './queue';
import type { Runtime } from './runtime';
import { SessionCache } from './sessions';

/** ONNX Runtime rounds its copies up to 16 bytes, so every buffer is a multiple of that. */
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

/** A device is probed in pieces of this size: about its largest tensors in the real model. */
const probePiece = 2 ** 29;

/** The GPU: ONNX Runtime's WebGPU provider on a device of our own. */
export class WebGpuBackend extends Counted implements Backend {
  readonly kind = 'webgpu';
  readonly convLayout = 'nhwc';
  readonly #queue = new SerialQueue();
  readonly #runtime: Runtime;
  readonly #sessions: SessionCache;
  /** Category of the buffer being made; what is made without one is the runtime's. */
  #making: Category = 'runtime';
  #staging: GPUBuffer | undefined;
  #fault: KinoraError | undefined;
  /** Rejects when the device is lost; every wait races against it, since runs may never return. */
  readonly #lost: Promise<never>;
  #disposed = false;

  /**
   * Takes a device and stands ready.
   *
   * @throws KinoraError `WEBGPU_MISSING` or `ADAPTER_MISSING`
   */
  static async create(runtime: Runtime): Promise<WebGpuBackend> {
    return new WebGpuBackend(runtime, await requestDevice());
  }

  private constructor(
    runtime: Runtime,
    readonly device: GPUDevice,
  ) {
    super();
    this.#runtime = runtime;
    this.#watchBuffers();
    device.onuncapturederror = ({ error }) => {
      this.#fault ??=
        error instanceof GPUOutOfMemoryError
          ? new KinoraError('OUT_OF_MEMORY')
          : new KinoraError('INTERNAL', `The GPU refused a command: ${error.message}`);
    };
    this.#lost = device.lost.then((info) => {
      this.#fault = new KinoraError('DEVICE_LOST', undefined, { cause: info.message });
      throw this.#fault;
    });
    this.#lost.catch(() => undefined);
    this.#sessions = new SessionCache(runtime, {
      executionProviders: [
        { name: 'webgpu', device, storageBufferCacheMode: 'simple', validationMode: 'disabled' },
      ],
      preferredOutputLocation: 'gpu-buffer',
      graphOptimizationLevel: 'basic',
    });
  }

  get lost(): boolean {
    const fault = this.#fault?.code;
    return this.#disposed || (fault !== undefined && fault !== 'OUT_OF_MEMORY');
  }

  tensor<T extends ElementType>(
    dtype: T,
    dims: readonly number[],
    category: Category,
    data?: ElementArrays[T],
  ): DeviceTensor<T> {
    const bytes = elementCount(dims) * elementBytes[dtype];
    const size = Math.max(alignment, Math.ceil(bytes / alignment) * alignment);
    if (size > this.device.limits.maxBufferSize) {
      throw new KinoraError(
        'OUT_OF_MEMORY',
        `The GPU takes at most ${this.device.limits.maxBufferSize} bytes in one buffer; ${size} are needed.`,
      );
    }
    this.requireRoom(size);
    this.#making = category;
    const buffer = this.device.createBuffer({
      size,
      usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
    });
    this.#making = 'runtime';
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

  read(tensor: DeviceTensor<'float32'>): Promise<Float32Array<ArrayBuffer>> {
    const { buffer, bytes } = this.#own(tensor);
    return this.#queue.run(async () => {
      this.#check();
      this.ledger.countReadback();
      try {
        const staging = this.#stagingOf(buffer.size);
        const encoder = this.device.createCommandEncoder();
        encoder.copyBufferToBuffer(buffer, 0, staging, 0, buffer.size);
        this.device.queue.submit([encoder.finish()]);
        await Promise.race([staging.mapAsync(GPUMapMode.READ, 0, buffer.size), this.#lost]);
        const data = new Float32Array(staging.getMappedRange(0, buffer.size).slice(0, bytes));
        staging.unmap();
        this.#check();
        return data;
      } catch (error) {
        // A staging buffer that was not given cannot be mapped; the fault is the reason.
        throw this.#fault ?? error;
      }
    });
  }

  run(graph: Graph, inputs: Bindings, outputs: Bindings): Promise<void> {
    checkBindings(graph, inputs, outputs);
    return this.#queue.run(async () => {
      this.#check();
      try {
        await Promise.race([this.#submit(graph, inputs, outputs), this.#lost]);
      } catch (error) {
        // A device without memory makes the runtime fail in many ways; the fault is the reason.
        throw this.#fault ?? error;
      }
    });
  }

  async settle(): Promise<void> {
    await this.#queue.run(async () => {
      this.#check();
      await Promise.race([this.device.queue.onSubmittedWorkDone(), this.#lost]);
      this.#check();
    });
  }

  async releaseSessions(): Promise<void> {
    // A lost device cannot release its sessions: the runtime would wait for it for ever.
    if (this.#fault?.code === 'DEVICE_LOST') return;
    await this.#queue.run(async () => {
      await Promise.race([this.#sessions.release(), this.#lost]);
      this.#staging?.destroy();
      this.#staging = undefined;
    });
  }

  async recover(): Promise<void> {
    if (this.#fault && this.#fault.code !== 'OUT_OF_MEMORY') throw this.#fault;
    await this.releaseSessions();
    // What the fault made invalid is reported by now; none of it is news.
    await Promise.race([this.device.queue.onSubmittedWorkDone(), this.#lost]);
    if (this.#fault?.code === 'OUT_OF_MEMORY') this.#fault = undefined;
  }

  canHold(bytes: number): Promise<boolean> {
    if (this.ledger.liveBytes + bytes > this.ceiling) return Promise.resolve(false);
    return this.#queue.run(async () => {
      this.#check();
      const made: GPUBuffer[] = [];
      try {
        const largest = Math.min(probePiece, this.device.limits.maxBufferSize);
        for (let left = bytes; left > 0; left -= largest) {
          const size = Math.ceil(Math.min(left, largest) / alignment) * alignment;
          this.device.pushErrorScope('out-of-memory');
          made.push(this.device.createBuffer({ size, usage: GPUBufferUsage.STORAGE }));
          if (await Promise.race([this.device.popErrorScope(), this.#lost])) return false;
        }
        return true;
      } catch (cause) {
        // A scope that was pushed cannot be taken back only where the device is gone. A software device
        // goes that way when it is asked for too much; those that have memory of their own say no.
        throw this.#fault ?? new KinoraError('DEVICE_LOST', undefined, { cause });
      } finally {
        for (const buffer of made) buffer.destroy();
      }
    });
  }

  async trim(): Promise<void> {
    const held = this.ledger.counters().categories.runtime?.live ?? 0;
    if (held > trimThreshold) await this.releaseSessions();
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.releaseSessions();
    this.device.destroy();
  }

  async #submit(graph: Graph, inputs: Bindings, outputs: Bindings): Promise<void> {
    const session = await this.#sessions.get(graph);
    await session.run(this.#bind(inputs), this.#bind(outputs));
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

  #check(): void {
    if (this.#fault) throw this.#fault;
  }

  /** One buffer for all readbacks, grown to the largest so far. */
  #stagingOf(bytes: number): GPUBuffer {
    if (!this.#staging || this.#staging.size < bytes) {
      this.#staging?.destroy();
      this.#staging = this.device.createBuffer({
        size: bytes,
        usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
      });
    }
    return this.#staging;
  }

  /** Counts every buffer of the device, ONNX Runtime's included. */
  #watchBuffers(): void {
    const create = this.device.createBuffer.bind(this.device);
    this.device.createBuffer = (descriptor) => {
      const buffer = create(descriptor);
      const release = this.ledger.take(this.#making, descriptor.size);
      const destroy = buffer.destroy.bind(buffer);
      buffer.destroy = () => {
        release();
        return destroy();
      };
      return buffer;
    };
  }
}
