import type { ProfileName } from './profile';
import type { Size } from './request';

/** The stages of one generation, in order. `decode` and `encode` run hand in hand, frame by frame. */
export const phases = ['load', 'text', 'image', 'denoise', 'decode', 'finish'] as const;
export type Phase = (typeof phases)[number];

/** Live and peak bytes of one category of device memory. */
export interface MemoryCount {
  readonly live: number;
  readonly peak: number;
}

/** How a run fits the memory of the device. */
export interface MemoryReport {
  /** Device bytes that the run may use. */
  readonly budget: number;
  /** Whether the user set the budget; it is what the run wanted or the device gave otherwise. */
  readonly budgetSet?: boolean;
  /** Highest device bytes by the plan. */
  readonly peak: number;
  readonly blocks: number;
  /** Transformer blocks that stay on the device; the others are streamed from storage in each step. */
  readonly residentBlocks: number;
  readonly chunkTokens: number;
  /** Tiles of the VAE decode, 1 when the full frame fits. */
  readonly decodeTiles: number;
  /** How often memory ran out all the same, and the run went on with a smaller plan. */
  readonly replans: number;
}

/**
 * What the engine reports while it works. One union: a view needs nothing else.
 * `clip` counts from 0; a video over 5 s has more than one.
 */
export type ProgressEvent =
  | {
      readonly type: 'phase';
      readonly phase: Phase;
      readonly clip: number;
      readonly clips: number;
      /** The component that is being loaded, where the phase is `load`. */
      readonly component?: string;
    }
  | {
      readonly type: 'bytes';
      /** Bytes of model files read so far in this load. */
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
      /** Estimated seconds to the finished video; null until two steps are done. */
      readonly secondsRemaining: number | null;
    }
  | {
      readonly type: 'frame';
      /** Frames decoded and handed to the encoder so far, 1 … frames, over all clips. */
      readonly frame: number;
      readonly frames: number;
      /** Estimated seconds to the finished video; null or absent where that cannot be told. */
      readonly secondsRemaining?: number | null;
    }
  | {
      /** A decode in tiles goes on; frames come out with the last tile only. */
      readonly type: 'tile';
      /** 1 … tiles, of this clip. */
      readonly tile: number;
      readonly tiles: number;
      /** Frames of this tile so far, 1 … frames of the clip. */
      readonly frame: number;
      readonly frames: number;
      readonly secondsRemaining: number | null;
    }
  | {
      readonly type: 'preview';
      /** Animation strip: `count` RGBA frames of `width`×`height` pixels, one after another. */
      readonly pixels: Uint8ClampedArray<ArrayBuffer>;
      readonly width: number;
      readonly height: number;
      readonly count: number;
    }
  | { readonly type: 'paused'; readonly paused: boolean }
  | {
      /** How the run fits the device; comes again when memory ran out and it was planned smaller. */
      readonly type: 'plan';
      readonly memory: MemoryReport;
    }
  | { readonly type: 'memory'; readonly categories: Readonly<Record<string, MemoryCount>> };

/** What a step of a run found, as it can be stored and sent. */
export type Findings = Readonly<
  Record<string, string | number | boolean | null | readonly number[] | readonly string[]>
>;

/** Seconds that each stage took. */
export type Timings = Readonly<Record<Phase | 'total', number>>;

/** What a finished generation leaves behind. */
export interface GenerationResult {
  /** File name inside the OPFS folder of videos. */
  readonly videoFile: string;
  readonly videoBytes: number;
  readonly size: Size;
  readonly width: number;
  readonly height: number;
  readonly frames: number;
  /** The seed that was used (never −1). */
  readonly seed: number;
  readonly model: string;
  /** The variant that ran; absent in records from before there was a choice: `standard`. */
  readonly profile?: ProfileName;
  readonly backend: 'webgpu' | 'wasm';
  /** Which encoder wrote the file. */
  readonly encoder: 'webcodecs' | 'ffmpeg';
  /** True when the user asked to finish before the last step. */
  readonly finishedEarly: boolean;
  /**
   * How it fitted the device; a decode in more than one tile may differ slightly from a full one.
   * Absent in records from before it was kept.
   */
  readonly memory?: MemoryReport;
  /** What the steps around the model found, by their names; absent where none found anything. */
  readonly findings?: Readonly<Record<string, Findings>>;
  readonly timings: Timings;
}
