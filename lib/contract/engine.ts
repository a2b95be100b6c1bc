import type { Backend } from './prediction';
import type { ProfileName } from './profile';
import type { GenerationResult, MemoryCount, ProgressEvent } from './progress';
import type { Parameters } from './request';

/** One adapter file, already at hand. */
export interface LoraFile {
  /** Name shown in messages and written to the metadata. */
  readonly name: string;
  readonly file: Blob;
  readonly scale: number;
}

/** What the engine needs for one video. */
export interface EngineRequest {
  /** The prediction's id; names the output file where `videoFile` does not. */
  readonly id: string;
  readonly image: Blob;
  /** Validated, with an explicit seed. */
  readonly parameters: Parameters;
  readonly model: string;
  /** The variant of the model. */
  readonly profile: ProfileName;
  readonly backend: Backend;
  /** In the order of `parameters.loras`. */
  readonly loras: readonly LoraFile[];
  /** Encoder to use; `auto` takes WebCodecs where it can encode H.264, else ffmpeg. */
  readonly encoder?: 'auto' | 'webcodecs' | 'ffmpeg';
  /** Most device bytes to use; absent means what a probe of the device finds. */
  readonly memoryBudget?: number;
  /** Name of the file to write; `<id>.mp4` when absent. */
  readonly videoFile?: string;
}

/** What is known about the GPU. */
export interface DeviceReport {
  readonly outcome: 'ready' | 'no-webgpu' | 'no-adapter';
  /** Vendor and architecture as the browser tells them; empty where unknown. */
  readonly adapter: { vendor: string; architecture: string; device: string; description: string };
  /** True for a CPU emulation such as SwiftShader: works, very slowly. */
  readonly software: boolean;
  readonly features: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
}

/** One line of the numerical self-test. */
export interface KernelCheck {
  readonly kernel: string;
  /** ‖device − reference‖ / ‖reference‖. */
  readonly relativeError: number;
  readonly tolerance: number;
  readonly usable: boolean;
}

/** The engine worker's face, spoken over Comlink. One generation at a time. */
export interface EngineApi {
  /** Looks at the GPU without starting anything on it. */
  probe(): Promise<DeviceReport>;
  /** Compares the device's kernels against a CPU reference. */
  selfTest(backend: Backend): Promise<readonly KernelCheck[]>;
  /** Opens a model: reads its configs and checks every tensor's name and shape. */
  load(model: string, backend: Backend, onProgress?: (event: ProgressEvent) => void): Promise<void>;
  /**
   * Makes a video and writes it to OPFS.
   *
   * Rejects with a KinoraError; then nothing of the video is left and its memory is free.
   */
  generate(
    request: EngineRequest,
    onProgress: (event: ProgressEvent) => void,
  ): Promise<GenerationResult>;
  /** Ends the running generation with `CANCELLED`; nothing is kept. */
  cancel(): Promise<void>;
  /** Holds the denoising loop after the current step. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends the loop after the current step and decodes what is there. */
  finishEarly(): Promise<void>;
  /** Live and peak device bytes by category, and counts of allocations and readbacks. */
  counters(): Promise<EngineCounters>;
  /** Frees model and device. */
  unload(): Promise<void>;
}

/** Byte counters of the device that the engine holds. */
export interface EngineCounters {
  readonly categories: Readonly<Record<string, MemoryCount>>;
  /** Live bytes over all categories. */
  readonly liveBytes: number;
  /** Every buffer made on the device so far, the runtime's own included. */
  readonly allocations: number;
  /** Every copy from the device back to the CPU so far. */
  readonly readbacks: number;
}
