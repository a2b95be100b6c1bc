import { KinoraError } from '../../contract';
import type { InFlight } from '../in-flight';
import { handleMessages } from '../messages';
import type { DeviceTensor } from '../tensor';
import type { Compute, Dispatch, KernelFailure, Operand } from './compute';
import { familyOf, isFloatUniform, type Kernel, uniformName } from './kernel';
import type { Peak } from './peak-rate';

/**
 * FLOP/s that is assumed of a kernel that was neither measured nor has run: less than an old integrated GPU reaches. A
 * workgroup of self-attention has 9e8, and Windows resets a device after 2 s.
 */
const unknownRate = 2e10;

/** Seconds that one dispatch, and one submission, may be predicted to take. */
const longestDispatch = 0.3;
const longestSubmission = 0.5;

/** Milliseconds after which a compiler that has not finished is given up; a busy CPU that emulates a GPU has more. */
const longestCompile = { gpu: 60_000, software: 600_000 };

/** Bytes between the uniforms of two dispatches: the largest `minUniformBufferOffsetAlignment`. */
const uniformStride = 256;
/** Dispatches of a submission. */
const mostDispatches = 128;

/** What the runner needs of its backend. */
export interface Host {
  readonly device: GPUDevice;
  /** Whether the CPU emulates the device. */
  readonly software: boolean;
  /** As of {@link Compute}; null where there are none. */
  readonly matrices?: Compute['matrices'] | null;
  /** As of {@link Compute}; null where the browser does not tell. */
  readonly subgroupSizes?: Compute['subgroupSizes'] | null;
  /** With the runtime's submissions. */
  readonly inFlight: InFlight;
  /** The buffer of a tensor of this backend. */
  bufferOf(tensor: DeviceTensor): GPUBuffer;
  /** Runs a task when everything before it, the runtime's runs included, is submitted. */
  queued<T>(task: () => Promise<T>): Promise<T>;
  /** As `work`; rejects when the device is lost. */
  race<T>(work: Promise<T>): Promise<T>;
  /** Why a call on the device failed: its fault, or the error itself. */
  reasonOf(error: unknown): Promise<unknown>;
}

interface Prepared {
  readonly pipeline: GPUComputePipeline;
  readonly layout: GPUBindGroupLayout;
}

interface Step {
  readonly job: Dispatch;
  readonly firstGroup: number;
  readonly groups: number;
}

/** Compiles and submits kernels on a device that it shares with the runtime. */
export class KernelRunner implements Compute {
  readonly features: ReadonlySet<string>;
  readonly limits: Compute['limits'];
  readonly matrices?: NonNullable<Compute['matrices']>;
  readonly subgroupSizes?: NonNullable<Compute['subgroupSizes']>;
  readonly rates = new Map<string, number>();
  peak: Peak | null = null;
  readonly used = new Set<string>();
  readonly clamped = { count: 0 };
  /** FLOP/s that kernels have reached in runs, by their keys: at least so fast they are, whatever was measured. */
  readonly #reached = new Map<string, number>();
  readonly #prepared = new Map<string, Promise<Prepared>>();
  #uniforms: GPUBuffer | undefined;
  /** The kernels of submissions that may have lost the device. */
  readonly #suspects = new Set<readonly Kernel[]>();

  constructor(readonly host: Host) {
    const { limits, features } = host.device;
    if (host.matrices) this.matrices = host.matrices;
    if (host.subgroupSizes) this.subgroupSizes = host.subgroupSizes;
    this.features = new Set([...features, ...navigator.gpu.wgslLanguageFeatures]);
    this.limits = {
      workgroupBytes: limits.maxComputeWorkgroupStorageSize,
      threads: Math.min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX),
      bindingBytes: limits.maxStorageBufferBindingSize,
      storageBuffers: limits.maxStorageBuffersPerShaderStage,
    };
  }

  get unfinished(): readonly Kernel[] {
    return [...this.#suspects].flat();
  }

  async compile(
    kernels: readonly Kernel[],
    onProgress?: (done: number) => void,
  ): Promise<readonly KernelFailure[]> {
    let done = 0;
    const results = await Promise.all(
      kernels.map(async (kernel): Promise<KernelFailure | null> => {
        const reason = this.#unusable(kernel) ?? (await this.#failureOf(kernel));
        onProgress?.(++done);
        return reason === null ? null : { kernel, reason };
      }),
    );
    return results.filter((result) => result !== null);
  }

  dispatch(jobs: readonly Dispatch[]): Promise<void> {
    return this.host.queued(async () => {
      for (const job of jobs) checkJob(job, this.limits.bindingBytes);
      const prepared = await this.host.race(
        Promise.all(jobs.map(({ kernel }) => this.#prepare(kernel))),
      );
      let batch: [Step, Prepared][] = [];
      let seconds = 0;
      const submit = async () => {
        await this.#submit(batch, seconds);
        batch = [];
        seconds = 0;
      };
      for (const [index, job] of jobs.entries()) {
        for (const step of this.#split(job)) {
          const time = this.#secondsOf(job, step.groups);
          if (batch.length === mostDispatches || seconds + time > longestSubmission) await submit();
          batch.push([step, prepared[index] as Prepared]);
          seconds += time;
        }
      }
      if (batch.length > 0) await submit();
    });
  }

  /** Frees what is made again when it is needed; compiled kernels stay. */
  release(): void {
    this.#uniforms?.destroy();
    this.#uniforms = undefined;
  }

  dispose(): void {
    this.release();
    this.#prepared.clear();
  }

  #unusable({ needs, threads, workgroupBytes, bindings }: Kernel): string | null {
    const missing = needs.filter((feature) => !this.features.has(feature));
    if (missing.length > 0) return `the device has no ${missing.join(', ')}`;
    if (threads > this.limits.threads) {
      return `${threads} threads are needed, the device has ${this.limits.threads}`;
    }
    if (workgroupBytes > this.limits.workgroupBytes) {
      return `${workgroupBytes} bytes of workgroup memory are needed, the device has ${this.limits.workgroupBytes}`;
    }
    if (bindings.length > this.limits.storageBuffers) {
      return `${bindings.length} storage buffers are needed, the device has ${this.limits.storageBuffers}`;
    }
    return null;
  }

  async #failureOf(kernel: Kernel): Promise<string | null> {
    try {
      await this.host.race(this.#prepare(kernel));
      return null;
    } catch (thrown) {
      const error = await this.host.reasonOf(thrown);
      // No kernel is to blame for a device that is gone.
      if (error instanceof KinoraError && error.code === 'DEVICE_LOST') throw error;
      return error instanceof Error ? error.message : String(error);
    }
  }

  #prepare(kernel: Kernel): Promise<Prepared> {
    const known = this.#prepared.get(kernel.code);
    if (known !== undefined) return known;
    const compiling = this.#create(kernel);
    this.#prepared.set(kernel.code, compiling);
    // The caller is told; asked again, it is compiled again.
    compiling.catch(() => this.#prepared.delete(kernel.code));
    return compiling;
  }

  async #create(kernel: Kernel): Promise<Prepared> {
    const { device } = this.host;
    const layout = device.createBindGroupLayout({
      entries: [
        ...kernel.bindings.map(({ access }, binding) => ({
          binding,
          visibility: GPUShaderStage.COMPUTE,
          buffer: { type: access === 'read' ? 'read-only-storage' : 'storage' } as const,
        })),
        {
          binding: kernel.bindings.length,
          visibility: GPUShaderStage.COMPUTE,
          buffer: { type: 'uniform', hasDynamicOffset: true },
        },
      ],
    });
    device.pushErrorScope('validation');
    const module = device.createShaderModule({ label: kernel.name, code: kernel.code });
    const refused = device.popErrorScope();
    const compiling = device.createComputePipelineAsync({
      label: kernel.name,
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: 'main' },
    });
    const limit = longestCompile[this.host.software ? 'software' : 'gpu'];
    const [error, pipeline] = await Promise.all([
      refused,
      withinTime(compiling, limit, `${kernel.name} takes too long to compile`).catch(
        (reason: unknown) => reason,
      ),
    ]);
    if (error) throw new Error(`${kernel.name}: ${error.message}`);
    if (!(pipeline instanceof GPUComputePipeline)) throw pipeline;
    return { pipeline, layout };
  }

  #secondsOf({ kernel, flops, groups }: Dispatch, part: number): number {
    return (flops * part) / groups / this.#rateOf(kernel);
  }

  #rateOf(kernel: Kernel): number {
    const measured = this.rates.get(kernel.key) ?? this.rates.get(familyOf(kernel));
    return Math.max(measured ?? unknownRate, this.#reached.get(kernel.key) ?? 0);
  }

  /** The parts of a job. Each is as large as the rate allows that is known when its turn comes. */
  *#split(job: Dispatch): Generator<Step> {
    const { maxComputeWorkgroupsPerDimension } = this.host.device.limits;
    for (let firstGroup = 0; firstGroup < job.groups; ) {
      const fitting = (job.groups * longestDispatch) / this.#secondsOf(job, job.groups);
      const most = Math.min(maxComputeWorkgroupsPerDimension, Math.max(1, Math.floor(fitting)));
      const groups = Math.min(most, job.groups - firstGroup);
      yield { job, firstGroup, groups };
      firstGroup += groups;
    }
  }

  /** Notes how fast kernels were at least: each took no longer than its submission, and what was waited for before. */
  #learn(batch: readonly (readonly [Step, Prepared])[], seconds: number): void {
    const flops = new Map<string, number>();
    for (const [{ job, groups }] of batch) {
      const { key } = job.kernel;
      flops.set(key, (flops.get(key) ?? 0) + (job.flops * groups) / job.groups);
    }
    for (const [key, sum] of flops) {
      this.#reached.set(key, Math.max(this.#reached.get(key) ?? 0, sum / Math.max(seconds, 1e-3)));
    }
  }

  /** @param predicted seconds that it takes */
  async #submit(batch: readonly (readonly [Step, Prepared])[], predicted: number): Promise<void> {
    const { device } = this.host;
    this.#uniforms ??= device.createBuffer({
      label: 'uniforms',
      size: uniformStride * mostDispatches,
      usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
    });
    const uniforms = this.#uniforms;
    const words = new Uint32Array((batch.length * uniformStride) / 4);
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const [index, [step, { pipeline, layout }]] of batch.entries()) {
      words.set(uniformWords(step), (index * uniformStride) / 4);
      const { kernel, operands } = step.job;
      pass.setPipeline(pipeline);
      const group = device.createBindGroup({
        layout,
        entries: [
          ...kernel.bindings.map(({ name }, binding) => {
            const { tensor, byteOffset = 0, byteSize } = operandOf(operands[name]);
            const buffer = this.host.bufferOf(tensor);
            const size = byteSize ?? buffer.size - byteOffset;
            return { binding, resource: { buffer, offset: byteOffset, size } };
          }),
          {
            binding: kernel.bindings.length,
            resource: { buffer: uniforms, size: uniformStride },
          },
        ],
      });
      pass.setBindGroup(0, group, [index * uniformStride]);
      pass.dispatchWorkgroups(step.groups);
    }
    pass.end();
    // The queue keeps its order: what was submitted before has read its uniforms when these are written.
    device.queue.writeBuffer(uniforms, 0, words);
    const submitted = performance.now();
    device.queue.submit([encoder.finish()]);
    const kernels = [...new Set(batch.map(([{ job }]) => job.kernel))];
    for (const { key } of kernels) this.used.add(key);
    const done = device.queue.onSubmittedWorkDone();
    this.#suspects.add(kernels);
    done.then(
      () => this.#learn(batch, (performance.now() - submitted) / 1000),
      () => undefined,
    );
    // A device that is lost calls what it has given up done, and says only then that it is lost.
    const right = this.host.race(done.then(handleMessages));
    right.then(
      () => this.#suspects.delete(kernels),
      () => undefined,
    );
    await this.host.race(this.host.inFlight.add(done, predicted));
  }
}

function operandOf(operand: DeviceTensor | Operand | undefined): Operand {
  if (!operand) throw new TypeError('an operand is missing');
  return 'tensor' in operand ? operand : { tensor: operand };
}

function uniformWords({ job, firstGroup }: Step): Uint32Array<ArrayBuffer> {
  const words = new Uint32Array(1 + job.kernel.uniforms.length);
  const floats = new Float32Array(words.buffer);
  words[0] = firstGroup;
  job.kernel.uniforms.forEach((uniform, index) => {
    const value = job.uniforms[uniformName(uniform)] ?? 0;
    if (isFloatUniform(uniform)) floats[index + 1] = value;
    else words[index + 1] = value;
  });
  return words;
}

/** Throws a TypeError unless operands and uniforms are exactly what the kernel declares. */
export function checkJob({ kernel, operands, uniforms, groups }: Dispatch, bindingBytes: number) {
  const place = kernel.name;
  if (!Number.isInteger(groups) || groups < 1) throw new TypeError(`${place}: ${groups} groups`);
  for (const { name } of kernel.bindings) {
    const bound = operands[name];
    if (!bound) throw new TypeError(`${place}: ${name} is not bound`);
    const { tensor, byteOffset = 0, byteSize = tensor.bytes - byteOffset } = operandOf(bound);
    if (tensor.disposed) throw new TypeError(`${place}: ${name} was disposed`);
    if (byteSize > bindingBytes) {
      throw new TypeError(
        `${place}: ${name} has ${byteSize} bytes, a binding at most ${bindingBytes}`,
      );
    }
  }
  const names = kernel.uniforms.map(uniformName);
  const missing = names.find((name) => !(name in uniforms));
  if (missing) throw new TypeError(`${place}: the uniform ${missing} is missing`);
  const known = new Set([...names, ...kernel.bindings.map(({ name }) => name)]);
  const extra = [...Object.keys(operands), ...Object.keys(uniforms)].find((n) => !known.has(n));
  if (extra) throw new TypeError(`${place}: there is no ${extra}`);
}

function withinTime<T>(work: Promise<T>, milliseconds: number, sentence: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(sentence)), milliseconds);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
