/** Whole videos of the tiny model, for tests of the run and of its memory. */
import type { ProgressEvent } from '../../../contract';
import { type Backend, relativeRms } from '../../../gpu';
import { RunControl } from '../../../pipeline/control';
import type { Frame } from '../../../pipeline/latents';
import { type ImageToVideoRequest, imageToVideo } from '../../../pipeline/run';
import type { LoraBranches } from '../../layers/lora';
import { WanModel } from '../model';
import type { WanParts } from '../parts';

/** A smooth picture. */
export function smoothImage({ width, height }: { width: number; height: number }): Frame {
  const length = 3 * width * height;
  return { width, height, data: Float32Array.from({ length }, (_, i) => Math.sin(i / 50) * 0.8) };
}

/** What a request leaves open. */
export const videoDefaults = {
  prompt: 'a boat on a lake',
  negativePrompt: 'blurry',
  frames: 9,
  scheduler: { kind: 'unipc' },
  guidanceScale: 1,
  flowShift: 5,
  decoder: 'full',
  seed: 7,
} as const;

/** What a run has given so far. */
export interface VideoRun {
  readonly frames: Frame[];
  readonly events: ProgressEvent[];
}

export interface VideoOptions {
  readonly lora?: LoraBranches;
  readonly memoryBudget?: number | 'probe' | undefined;
  readonly control?: RunControl;
  /** Filled while the video is made, so that it is there also when the run fails. */
  readonly run?: VideoRun;
  /** The plain model of these parts when absent. */
  readonly open?: (parts: WanParts) => WanModel;
  readonly onEvent?: (event: ProgressEvent, control: RunControl) => void;
}

export async function makeVideo(
  backend: Backend,
  parts: WanParts,
  request: Partial<ImageToVideoRequest> & Pick<ImageToVideoRequest, 'image' | 'steps'>,
  options: VideoOptions = {},
) {
  const { control = new RunControl(), run = { frames: [], events: [] } } = options;
  const model =
    options.open?.(parts) ??
    new WanModel(parts, options.lora && new Map([['transformer', options.lora]]));
  const result = await imageToVideo(
    backend,
    model,
    { ...videoDefaults, ...request },
    {
      ...(options.memoryBudget !== undefined && { memoryBudget: options.memoryBudget }),
      control,
      onProgress: (event) => {
        run.events.push(event);
        options.onEvent?.(event, control);
      },
      onFrame: async (frame) => {
        run.frames.push({ ...frame, data: frame.data.slice() });
      },
    },
  );
  return { ...run, result };
}

/** The largest relative RMS of a frame. */
export function difference(a: readonly Frame[], b: readonly Frame[]): number {
  return Math.max(...a.map(({ data }, i) => relativeRms(data, b[i]?.data ?? [])));
}
