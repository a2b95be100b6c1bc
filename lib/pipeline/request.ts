import type {
  ColourChange,
  ColourCorrection,
  KernelSetting,
  MemoryReport,
  ProgressEvent,
} from '../contract';
import type { RunSaving } from './checkpoints';
import type { RunControl } from './control';
import type { Frame } from './latents';
import type { Sampling } from './profiles';

/** The end of a video, from which another one goes on and keeps its motion. */
export interface VideoEnd {
  /** The last latent frames, each [C, h, w]; five at most. */
  readonly latents: readonly Float32Array[];
  /** How the colours that they are decoded to were changed when they were shown; null where they were not. */
  readonly colours: ColourChange | null;
}

/** One video, at the model's native size. */
export interface ImageToVideoRequest extends Sampling {
  readonly image: Frame;
  /** The last picture of the video, of the same size; the model decides when absent. */
  readonly lastImage?: Frame | undefined;
  /** Frame of the video that shows `lastImage`, from 1 on; the last one when absent. */
  readonly lastImageFrame?: number | undefined;
  /** Whether the video ends where it begins, so that it can be played again and again: `lastImage` is not its end then. */
  readonly loop?: boolean | undefined;
  /** The end of an earlier video, of which this one keeps the motion; it begins with its last frame. */
  readonly before?: VideoEnd | undefined;
  /** Whether the image is the last frame of an earlier video, whose colours and detail are led over into this one. */
  readonly continues?: boolean | undefined;
  /** Whether clips that go on from a picture are given the colours of the one before; true when absent. */
  readonly keepsColours?: boolean | undefined;
  readonly prompt: string;
  readonly negativePrompt: string;
  /** One more than a multiple of the model's stride; more than its longest clip means several clips. */
  readonly frames: number;
  readonly seed: number;
  /**
   * The kernels that a person has chosen: the run is refused if they cannot compute it. Without a choice ONNX Runtime
   * computes it.
   */
  readonly kernels?: KernelSetting;
  /** Decoded previews may take this share of the run's time; a tenth when absent. */
  readonly previewShare?: number;
}

/**
 * The limits and the control of a run, and the receivers of its progress and frames. Its frames do not depend on
 * them.
 */
export interface ImageToVideoHooks {
  /**
   * Device bytes to keep to; `probe` asks the device, as far as the video needs; all that the video
   * needs when absent.
   */
  readonly memoryBudget?: number | 'probe';
  readonly control: RunControl;
  readonly onProgress: (event: ProgressEvent) => void;
  /** Takes each frame as it is decoded; decoding waits for it. */
  readonly onFrame: (frame: Frame) => Promise<void>;
  /** Where the run is saved, and how it starts from there. Without it, it is not saved. */
  readonly saving?: RunSaving;
}

/** The result of a run. */
export interface ImageToVideoResult {
  /** Frames that were handed out; fewer than asked for when the run was finished early. */
  readonly frames: number;
  readonly finishedEarly: boolean;
  /** How often it was interrupted and resumed. */
  readonly resumes: number;
  /** Of each clip that went on from a picture and was given the colours of the one before. */
  readonly colours: readonly ColourCorrection[];
  /** Null where it ends in a given picture, or the model cannot keep a motion. */
  readonly end: VideoEnd | null;
  /** How it fitted the device in the end. */
  readonly memory: MemoryReport;
}
