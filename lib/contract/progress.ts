import type { Applied } from './applied';
import type { KernelRecord, KernelReplacement } from './kernel-setting';
import type { Licence } from './manifest';
import type { ProfileName } from './profile-names';
import type { PromptOptimization } from './prompt-optimization';
import type { Size } from './request';
import type { Safety } from './safety';

/**
 * The phases of one generation, in order. `optimise` rewrites the prompt and `check` looks for unsafe
 * frames, each only where it was asked for. During `decode`, each frame is also encoded as H.264.
 */
export const phases = [
  'optimise',
  'load',
  'text',
  'image',
  'denoise',
  'decode',
  'check',
  'finish',
] as const;
export type Phase = (typeof phases)[number];

/** Live and peak bytes of one category of device memory. */
export interface MemoryCount {
  readonly live: number;
  readonly peak: number;
}

/** How a run uses the memory of the device. */
export interface MemoryReport {
  /** Device memory that the run may use, in bytes. */
  readonly budget: number;
  /** True if the user set the budget; otherwise it was measured. */
  readonly budgetSet?: boolean;
  /** Peak device memory of the plan, in bytes. */
  readonly peak: number;
  /** Transformer blocks of the model. */
  readonly blocks: number;
  /** Blocks that stay on the device; the others are read from storage in every step. */
  readonly residentBlocks: number;
  /** Tokens that are processed at once. */
  readonly chunkTokens: number;
  /** Tiles of the VAE decode; 1 if a full frame fits. */
  readonly decodeTiles: number;
  /** How often memory ran out and the run continued with a smaller plan. */
  readonly replans: number;
}

/** How far a saved run is. */
export interface CheckpointInfo {
  /** The clip that was under way, from 0. */
  readonly clip: number;
  readonly clips: number;
  /** Finished steps of this clip, 1 … steps; with all of them done, decoding is what is left of it. */
  readonly step: number;
  readonly steps: number;
}

/** RGBA frames, one after another. */
export interface PreviewStrip {
  readonly pixels: Uint8ClampedArray<ArrayBuffer>;
  readonly width: number;
  readonly height: number;
  readonly count: number;
}

/**
 * What the engine reports while it computes. `clip` counts from 0; a video over 5 s has more than one.
 */
export type ProgressEvent =
  | {
      readonly type: 'phase';
      readonly phase: Phase;
      readonly clip: number;
      readonly clips: number;
    }
  | {
      /** How the video is made where that is not what the request says; before it is computed. */
      readonly type: 'sampling';
      /** One line for the user. */
      readonly sentence: string;
    }
  | ({
      /** Comes before anything is computed. */
      readonly type: 'kernels';
    } & KernelReplacement)
  | {
      /** The kernels are checked and measured on this GPU: at first use, before the model is loaded. */
      readonly type: 'tuning';
      /** Variants of kernels that are done; all of them when it is over. */
      readonly done: number;
      readonly total: number;
    }
  | {
      readonly type: 'bytes';
      /** Bytes of model files that were read so far in this phase. */
      readonly bytesDone: number;
      readonly bytesTotal: number;
    }
  | {
      readonly type: 'step';
      /** Finished steps of this clip, 1 … steps. */
      readonly step: number;
      readonly steps: number;
      readonly clip: number;
      readonly clips: number;
      /** Median over this run. */
      readonly secondsPerStep: number;
    }
  | {
      readonly type: 'frame';
      /** Frames that were decoded so far, 1 … frames, of all clips. */
      readonly frame: number;
      readonly frames: number;
    }
  | {
      /** Progress of a decode in tiles, whose frames are complete only with the last tile. */
      readonly type: 'tile';
      /** 1 … tiles, of this clip. */
      readonly tile: number;
      readonly tiles: number;
      /** Frames of this tile so far, 1 … frames, of this clip. */
      readonly frame: number;
      readonly frames: number;
    }
  | ({ readonly type: 'preview' } & PreviewStrip)
  | {
      /** What the safety checker says of the input image, before the video is computed. */
      readonly type: 'input-check';
      /** Probability that the image is unsafe; null where the checker failed. */
      readonly score: number | null;
      readonly flagged: boolean;
    }
  | {
      /** Progress of the phase `check`: squares of frames that were scored. */
      readonly type: 'check';
      readonly done: number;
      readonly total: number;
    }
  | {
      /** The finished video could not be stored; the run ends with the reason. */
      readonly type: 'unsaved-video';
      readonly video: Blob;
      readonly made: MadeVideo;
    }
  | {
      /** The run can be resumed from here from now on. */
      readonly type: 'checkpoint';
      readonly checkpoint: CheckpointInfo;
    }
  | {
      /** Something about this run's saved state that the user should know. */
      readonly type: 'checkpoint-problem';
      /** `unsaved`: the run goes on and cannot be resumed; `restarted`: it had to start anew. */
      readonly problem: 'unsaved' | 'restarted';
      readonly sentence: string;
    }
  | {
      /** How far the whole run is; just before an event that changes it, and once a second. */
      readonly type: 'estimate';
      /** Share of the expected time that has passed, 0 … 1; never falls. */
      readonly share: number;
      /** Until the video is finished. */
      readonly secondsRemaining: number;
    }
  | {
      /** The memory plan; sent again when memory ran out and the run continues with a smaller plan. */
      readonly type: 'plan';
      readonly memory: MemoryReport;
      /** Work of the decode as a multiple of that of whole frames: what tiles add. */
      readonly decodeWork: number;
    }
  | { readonly type: 'memory'; readonly categories: Readonly<Record<string, MemoryCount>> };

/** Seconds that each phase took; a phase that did not run may be absent. */
export type Timings = Readonly<Partial<Record<Phase, number>> & { total: number }>;

/** A value v of 0 … 255 becomes gain·v + offset; red, green and blue. */
export interface ColourChange {
  readonly gain: readonly number[];
  readonly offset: readonly number[];
}

/** How the colours of a clip were led back to those of the clip before. */
export interface ColourCorrection {
  /** From 0. */
  readonly clip: number;
  /** Change by the second encoding of its first picture; taken back in full. */
  readonly encoding: ColourChange;
  /** Change by the model in its first second; half of it is taken back at most. */
  readonly drift: ColourChange;
}

/** Identity of a LoRA file, and its address. */
export interface LoraRecord {
  readonly sha256: string;
  /** An address; absent for a file of the device that made the video. */
  readonly source?: string | undefined;
}

/** The result of a run, as the video's file tells it when it leaves the browser. */
export interface MadeVideo {
  /** The settings that the profile made of the request. */
  readonly applied?: Applied;
  readonly backend: 'webgpu' | 'wasm';
  readonly frames: number;
  /** Frames per second. */
  readonly frameRate: number;
  /** Of the model. */
  readonly licence?: Licence;
  /** The files of the LoRAs, in the order of the request; absent without any. */
  readonly loraFiles?: readonly LoraRecord[];
  /** Absent where nothing was checked. */
  readonly safety?: Safety;
  /** Absent where no optimisation was asked for. */
  readonly promptOptimization?: PromptOptimization;
}

/** The result of a finished generation. */
export interface GenerationResult extends MadeVideo {
  /** File name in the folder of videos in OPFS. */
  readonly videoFile: string;
  readonly videoBytes: number;
  /** JPEGs of a video of the API: the frame in its middle, unless it is flagged, and its images as they were framed. */
  readonly pictures?: Readonly<Partial<Record<'poster' | 'image' | 'last_image', Blob>>>;
  readonly size: Size;
  readonly width: number;
  readonly height: number;
  /** The seed that was used (never −1). */
  readonly seed: number;
  readonly model: string;
  /** The variant that ran; absent, meaning `standard`, in records of versions without variants. */
  readonly profile?: ProfileName;
  /** The kernels that computed on the GPU; absent on the CPU and in records of versions that did not store it. */
  readonly kernels?: KernelRecord;
  /** The encoder that wrote the file. */
  readonly encoder: 'webcodecs' | 'ffmpeg';
  /** True when the user asked to finish before the last step. */
  readonly finishedEarly: boolean;
  /** The step at which denoising ended, if not after the last one; absent otherwise and in older records. */
  readonly lastStep?: { readonly step: number; readonly steps: number };
  /** How often the run was interrupted and resumed; absent where it was not. */
  readonly resumes?: number;
  /**
   * The memory plan of the run. A decode in more than one tile may differ slightly from a full decode.
   * Absent in records of versions that did not store it.
   */
  readonly memory?: MemoryReport;
  /** Reports of the clips whose colours were led back to those of the clip before; absent without such a clip. */
  readonly colours?: readonly ColourCorrection[];
  readonly timings: Timings;
}
