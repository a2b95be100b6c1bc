import type { Findings } from '../contract';
import type { Frame } from './latents';

/*
 * What a product adds between decoder and encoder, without the model or the loop knowing: steps that see
 * every frame.
 */

/** What a step of a run may rely on. */
export interface StepContext {
  readonly seed: number;
  /** The still image at the model's size. */
  readonly image: Frame;
  /** Frames that the video is to have; fewer come when the run is finished early. */
  readonly frames: number;
  readonly signal: AbortSignal;
}

/**
 * Sees every frame of one video, in order, and hands on the frame or another one. Decoding waits for it.
 * A frame is valid until the step returns.
 */
export interface FrameStep {
  /** Names the step's findings in the result. */
  readonly name: string;
  /** @param index from 0, over all clips */
  apply(frame: Frame, index: number): Frame | Promise<Frame>;
  /** Called once after the last frame; what it found goes into the result. */
  finish?(): Promise<Findings | undefined>;
  /** Called once in any case, also when the run failed. */
  dispose?(): void;
}

/** Makes the step of one run. */
export type FrameStepMaker = (context: StepContext) => FrameStep;

/** What steps found, by their names. */
export type FindingsByStep = Readonly<Record<string, Findings>>;

/** A chain of frame steps. */
export class FrameChain {
  #index = 0;

  constructor(readonly steps: readonly FrameStep[]) {}

  /** Takes the next frame through all steps. */
  async next(frame: Frame): Promise<Frame> {
    let current = frame;
    for (const step of this.steps) current = await step.apply(current, this.#index);
    this.#index += 1;
    return current;
  }

  /** What the steps found; to be called after the last frame. */
  async finish(): Promise<FindingsByStep> {
    const findings: Record<string, Findings> = {};
    for (const step of this.steps) {
      const finding = await step.finish?.();
      if (finding) findings[step.name] = finding;
    }
    return findings;
  }

  dispose(): void {
    for (const step of this.steps) step.dispose?.();
  }
}
