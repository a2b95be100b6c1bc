import type { Backend, KernelSetting } from './kernel-setting';
import type { Noise } from './lora-files';
import type { Finishing } from './parameters';
import type { DecoderKind } from './profile-names';
import type { CheckpointInfo, GenerationResult, MemoryCount, ProgressEvent } from './progress';
import type { DeviceOptions, RunRequest } from './run';
import type { Safety } from './safety';

/** One adapter with its file. */
export interface LoraFile {
  /** Shown in messages, and in the file of the video when it leaves the browser. */
  readonly name: string;
  readonly file: Blob;
  readonly scale: number;
  /** The transformer that it is for; its file tells where this is absent. */
  readonly noise?: Noise | undefined;
  /** Its address, for others. Absent for a file of this device. */
  readonly source?: string | undefined;
}

/** How a run starts from what an earlier one of its id saved. */
export type Continuation = 'resume' | 'finish' | 'refine';

/** What the engine needs for one video; the parameters are validated, with an explicit seed (never −1). */
export interface EngineRequest extends RunRequest {
  /** Id of the prediction or job. */
  readonly id: string;
  readonly image: Blob;
  /** The image in which the video ends; then it is no loop. */
  readonly lastImage?: Blob | undefined;
  /** Whether the image is the last frame of an earlier video. */
  readonly continues?: boolean | undefined;
  /** The file of that video's last latent frames, where its motion is kept. */
  readonly before?: Blob | undefined;
  /** In the order of `parameters.loras`. */
  readonly loras: readonly LoraFile[];
  readonly device: DeviceOptions;
  /**
   * The use of a saved run of this id: `resume` goes on from its checkpoint, and starts anew,
   * saying so, where that cannot be used; `finish` decodes what the checkpoint holds; `refine` decodes the
   * latents that a finished run kept, with the decoder of the options. Absent: a new run, which discards what was saved.
   */
  readonly continuation?: Continuation | undefined;
  /** The saved state of the run that continues; the run reports when it is missing. */
  readonly checkpoint?: CheckpointInfo;
  /** Name of the output file; by default `<id>.mp4`. */
  readonly videoFile?: string;
}

/** A finished video that is to be checked again. */
export interface CheckRequest {
  /** Name in the folder of videos. */
  readonly videoFile: string;
  /** The model whose checker is preferred. */
  readonly model: string;
  /** Its prompt, and the optimised one. */
  readonly prompts: readonly string[];
  readonly backend: Backend;
}

/** A request to finish a video once more. */
export interface EnhanceRequest {
  readonly file: Blob;
  readonly finishing: Finishing;
  /** Whether its first frame follows its last one again. */
  readonly loop: boolean;
  readonly backend: Backend;
}

/** What the browser reports about the GPU. */
export interface DeviceReport {
  readonly outcome: 'ready' | 'no-webgpu' | 'no-adapter';
  /** As reported by the browser; an empty string means unknown. */
  readonly adapter: { vendor: string; architecture: string; device: string; description: string };
  /** True for a CPU emulation such as SwiftShader, which is very slow. */
  readonly software: boolean;
  readonly features: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
}

/** One result of the numerical self-test. */
export interface KernelCheck {
  readonly kernel: string;
  /** ‖device − reference‖ / ‖reference‖. */
  readonly relativeError: number;
  readonly tolerance: number;
  readonly usable: boolean;
}

/** Quality and time of a decoder on the latents of a video. */
export interface DecoderComparison {
  readonly decoder: DecoderKind;
  /** Peak signal-to-noise ratio against the full decoder, in dB; null for that itself. */
  readonly psnr: number | null;
  readonly seconds: number;
}

/** Interface of the engine worker, called through Comlink. It runs one generation at a time. */
export interface EngineApi {
  /** Describes the GPU without creating a device. */
  probe(): Promise<DeviceReport>;
  /** Compares the device's kernels with a CPU reference. */
  selfTest(backend: Backend): Promise<readonly KernelCheck[]>;
  /** Opens a model: reads its configuration and checks the name and shape of every tensor. */
  load(model: string, backend: Backend, onProgress?: (event: ProgressEvent) => void): Promise<void>;
  /**
   * Computes a video and writes it to OPFS.
   *
   * While it denoises, its state is saved, so that a later run of the same id can go on from there.
   *
   * @throws KinoraError after deleting the unfinished file and freeing the memory of the run;
   *   `CHECKPOINT_INVALID` where `finish` or `refine` finds nothing that it can use; `CHECKPOINT_MISMATCH` where that
   *   is of another model, other adapters or settings, and then it is kept
   */
  generate(
    request: EngineRequest,
    onProgress: (event: ProgressEvent) => void,
  ): Promise<GenerationResult>;
  /**
   * Checks a finished video with the safety checker of this browser: decodes the frames that a run looks
   * at, and scores them. `unverified` where the checker failed.
   *
   * @throws KinoraError `BUSY`, `VIDEO_UNREADABLE`, `CANCELLED`; `MODEL_NOT_INSTALLED` without a checker;
   *   `PROMPT_REFUSED`, after deleting the video, where it is flagged and its prompt names a child
   */
  check(request: CheckRequest): Promise<Safety>;
  /**
   * Encodes the end of a video, one clip of the model at most, and decodes it with each of the model's decoders.
   *
   * @throws KinoraError `BUSY`, `VIDEO_UNREADABLE`, `CANCELLED`, `MODEL_NOT_INSTALLED`, `OUT_OF_MEMORY`
   */
  compareDecoders(video: Blob, model: string, backend: Backend): Promise<DecoderComparison[]>;
  /**
   * Enlarges a finished video, or puts frames between its frames: a new MP4, which is stored nowhere.
   *
   * @throws KinoraError `BUSY`, `VIDEO_UNREADABLE`, `ENCODER_FAILED`, `CANCELLED`, `MODEL_NOT_INSTALLED` without the
   *   network that was asked for, `OUT_OF_MEMORY`
   */
  enhance(request: EnhanceRequest, onProgress: (event: ProgressEvent) => void): Promise<Blob>;
  /**
   * Measures the kernels of our own on this GPU anew, and keeps the result: what is known before is dropped. On an
   * emulated GPU nothing is measured: the first kernels that compute right numbers are kept.
   *
   * @throws KinoraError `BUSY`, `DEVICE_LOST`
   */
  tune(setting: KernelSetting, onProgress: (event: ProgressEvent) => void): Promise<void>;
  /** A tuning in progress leaves out variants that are not measured yet. */
  skipTuning(): Promise<void>;
  /** Ends the running generation or check with `CANCELLED` and keeps nothing of it. */
  cancel(): Promise<void>;
  /**
   * Ends the run after the current step with `PAUSED`, its checkpoint written, and frees the device. Without effect
   * once the last step is done.
   */
  pause(): Promise<void>;
  /** Ends the denoising loop after the current step and decodes its result. */
  finishEarly(): Promise<void>;
  /** Device memory and transfers so far. */
  counters(): Promise<RunCounters>;
  /** Frees the model and the device. */
  unload(): Promise<void>;
}

/** Memory and transfer counters of the engine's device. */
export interface EngineCounters {
  readonly categories: Readonly<Record<string, MemoryCount>>;
  /** Sum of the live bytes of all categories. */
  readonly liveBytes: number;
  /** Its highest value since kernels were tuned. */
  readonly peakBytes: number;
  /** Number of buffers created on the device so far, including those of ONNX Runtime. */
  readonly allocations: number;
  /** Number of copies from the device to the CPU so far. */
  readonly readbacks: number;
  /** How often the device's work was waited for: 100 ms each in Firefox. */
  readonly waits: number;
}

/** The same, with what the engine has read of models. */
export interface RunCounters extends EngineCounters {
  /** Seconds in which weights were read and decoded so far, by the component: `text_encoder`, `vae`, … */
  readonly loadSeconds: Readonly<Record<string, number>>;
}
