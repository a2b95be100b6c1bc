import { vi } from 'vitest';
import type { Backend } from '../../backend';
import { InFlight } from '../../in-flight';
import type { Compute, Dispatch } from '../compute';
import { KernelRunner } from '../run';

export interface SimulatedDeviceOptions {
  /** FLOP/s by the names of kernels. */
  readonly rates: Readonly<Record<string, number>>;
  /** Milliseconds until the end of work is reported. */
  readonly delay: number;
  /** Whether the browser looks at fixed times, as Firefox does. */
  readonly polled?: boolean;
  /** Largest part by which work and delays are longer or shorter. */
  readonly noise: number;
  readonly seed: number;
}

/** What {@link KernelRunner} uses of a device, in the time of Vitest's timers: it knows only how long work takes. */
export class SimulatedDevice {
  submissions = 0;
  /** The most submissions at a time whose end was not reported. */
  mostPending = 0;
  readonly runner: KernelRunner;
  readonly compute: Pick<Compute, 'dispatch' | 'compile' | 'rates'>;
  readonly #flopsOfGroup = new Map<string, number>();
  readonly #options: SimulatedDeviceOptions;
  /** Milliseconds. */
  #busyUntil = 0;
  #pending = 0;
  #state: number;

  constructor(options: SimulatedDeviceOptions) {
    this.#options = options;
    this.#state = options.seed;
    class GPUComputePipeline {
      constructor(readonly label: string) {}
    }
    vi.stubGlobal('GPUComputePipeline', GPUComputePipeline);
    vi.stubGlobal('GPUShaderStage', { COMPUTE: 4 });
    vi.stubGlobal('GPUBufferUsage', { UNIFORM: 64, COPY_DST: 8 });
    vi.stubGlobal('navigator', {
      gpu: { wgslLanguageFeatures: ['packed_4x8_integer_dot_product'] },
    });
    const device = {
      features: new Set<string>(),
      limits: {
        maxComputeWorkgroupStorageSize: 32_768,
        maxComputeInvocationsPerWorkgroup: 1024,
        maxComputeWorkgroupSizeX: 1024,
        maxComputeWorkgroupsPerDimension: 65_535,
        maxStorageBufferBindingSize: 2 ** 31,
        maxStorageBuffersPerShaderStage: 16,
      },
      createBindGroupLayout: () => ({}),
      createPipelineLayout: () => ({}),
      createShaderModule: () => ({}),
      createBindGroup: () => ({}),
      createBuffer: () => ({ size: 0, destroy: () => undefined }),
      pushErrorScope: () => undefined,
      popErrorScope: async () => null,
      createComputePipelineAsync: async ({ label }: { label: string }) =>
        new GPUComputePipeline(label),
      createCommandEncoder: () => {
        let name = '';
        let milliseconds = 0;
        const pass = {
          setPipeline: ({ label }: { label: string }) => {
            name = label;
          },
          setBindGroup: () => undefined,
          dispatchWorkgroups: (groups: number) => {
            const flops = groups * (this.#flopsOfGroup.get(name) ?? 0);
            milliseconds += (1000 * flops) / (options.rates[name] ?? Number.NaN);
          },
          end: () => undefined,
        };
        return { beginComputePass: () => pass, finish: () => milliseconds };
      },
      queue: {
        writeBuffer: () => undefined,
        submit: ([milliseconds = 0]: readonly number[]) => {
          this.submissions++;
          this.mostPending = Math.max(this.mostPending, ++this.#pending);
          this.#busyUntil =
            Math.max(performance.now(), this.#busyUntil) + this.#disturbed(milliseconds);
          void this.settle().then(() => this.#pending--);
        },
        onSubmittedWorkDone: () => this.settle(),
      },
    };
    this.runner = new KernelRunner({
      device: device as unknown as GPUDevice,
      software: false,
      inFlight: new InFlight(),
      bufferOf: () => ({ size: 16 }) as GPUBuffer,
      queued: (task) => task(),
      race: (work) => work,
      reasonOf: async (error) => error,
    });
    this.compute = {
      rates: this.runner.rates,
      compile: (kernels) => this.runner.compile(kernels),
      dispatch: (jobs) => this.#dispatch(jobs),
    };
  }

  /** Resolves when it is reported that all work is done. */
  async settle(): Promise<void> {
    const { delay, polled } = this.#options;
    const end = Math.max(performance.now(), this.#busyUntil);
    const reported = polled ? (Math.floor(end / delay) + 1) * delay : end + this.#disturbed(delay);
    await new Promise((resolve) => setTimeout(resolve, reported - performance.now()));
  }

  readonly tensor = (() => ({
    bytes: 16,
    dispose: () => undefined,
  })) as unknown as Backend['tensor'];

  async #dispatch(jobs: readonly Dispatch[]): Promise<void> {
    for (const { kernel, flops, groups } of jobs) {
      this.#flopsOfGroup.set(kernel.name, flops / groups);
    }
    await this.runner.dispatch(jobs);
  }

  #disturbed(milliseconds: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    const part = this.#state / 2 ** 31 - 1;
    return milliseconds * (1 + this.#options.noise * part);
  }
}

/** Lets time pass, timer by timer, until a promise is settled. */
export async function inSimulatedTime<T>(work: Promise<T>): Promise<T> {
  let settled = false;
  const end = () => {
    settled = true;
  };
  work.then(end, end);
  while (!settled) {
    await new Promise((resolve) => setImmediate(resolve));
    if (!settled) await vi.advanceTimersToNextTimerAsync();
  }
  return work;
}
