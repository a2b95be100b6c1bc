import type { MemoryReport, ProgressEvent } from '../contract';
import type { LoraBranches } from '../models/wan22/lora';
import type { RunControl } from './control';

/** An image or a frame: planar RGB [3, height, width] in −1…1. */
export interface Frame {
  readonly data: Float32Array;
  readonly width: number;
  readonly height: number;
}

/** One video, at the model's native size. */
export interface ImageToVideoRequest {
  readonly image: Frame;
  readonly prompt: string;
  readonly negativePrompt: string;
  /** 4n+1; longer than the model's longest clip means several clips. */
  readonly frames: number;
  readonly steps: number;
  readonly guidanceScale: number;
  readonly flowShift: number;
  readonly seed: number;
  readonly lora?: LoraBranches;
  /**
   * Device bytes to keep to; `probe` asks the device, as far as the video needs; all that the video
   * needs when absent.
   */
  readonly memoryBudget?: number | 'probe';
}

export interface ImageToVideoHooks {
  readonly control: RunControl;
  readonly onProgress: (event: ProgressEvent) => void;
  /** Takes each frame as it is decoded; decoding waits for it. */
  readonly onFrame: (frame: Frame) => Promise<void>;
}

/** What came out. */
export interface ImageToVideoResult {
  /** Frames that were handed out; fewer than asked for when the run was finished early. */
  readonly frames: number;
  readonly finishedEarly: boolean;
  /** How it fitted the device in the end. */
  readonly memory: MemoryReport;
}
