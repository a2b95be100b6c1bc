import type { CheckpointInfo } from '../../contract';
import type { DenoiseState, Prediction } from '../denoise';
import type { NamedTensors } from '../model';
import type { SavedClip, SavedConditions, SavedRun } from './saved-run';
import type { CheckpointWriter } from './writer';

/** Parts of {@link RunCheckpoints}. */
export interface RunCheckpointsParts {
  /** The saved state from which the run goes on; null where it starts anew. */
  readonly saved: SavedRun | null;
  /** Whether it only decodes what is saved. */
  readonly decodes: boolean;
  /** How often it was interrupted and resumed. */
  readonly resumes: number;
  /** Null where it is not saved. */
  readonly writer: CheckpointWriter | null;
  /** Clips of the run, and steps of a clip. */
  readonly clips: number;
  readonly steps: number;
}

/** The saved side of one run: what it starts from, and what it saves. Clips count from 0. */
export class RunCheckpoints {
  constructor(readonly parts: RunCheckpointsParts) {}

  get resumes(): number {
    return this.parts.resumes;
  }

  /** Whether any clip is still to be denoised. */
  get denoises(): boolean {
    const { saved, decodes, clips } = this.parts;
    const finished = saved?.clips ?? [];
    return !decodes && finished.length < clips && !finished.at(-1)?.cutShort;
  }

  /** Text embeddings; null where they are not saved. */
  get texts(): readonly Float32Array[] | null {
    return this.parts.saved?.conditions?.texts ?? null;
  }

  /** What the model made of the image of a clip; null where it is not saved. */
  imageOf(clip: number): NamedTensors | null {
    const conditions = this.parts.saved?.conditions;
    return conditions?.clip === clip ? conditions.image : null;
  }

  /** The state from which the denoising of a clip goes on; null where it begins. */
  stateOf(clip: number): DenoiseState | null {
    const { saved } = this.parts;
    return (saved?.clips.length === clip && saved.state?.denoise) || null;
  }

  /** A clip that was finished before. A run that only decodes takes and saves the latents that exist. */
  clipOf(clip: number): SavedClip | null {
    const { saved, decodes } = this.parts;
    const finished = saved?.clips[clip];
    if (finished) return finished;
    const state = decodes ? this.stateOf(clip) : null;
    if (!state) return null;
    const cut = { latents: state.prediction, cutShort: true };
    this.saveClip(clip, state.step, cut);
    return cut;
  }

  saveConditions(conditions: SavedConditions): void {
    this.parts.writer?.saveConditions(conditions);
  }

  saveClip(clip: number, step: number, saved: SavedClip): void {
    this.parts.writer?.saveClip(saved, this.#done(clip, step));
  }

  /** Whether a state is to be saved now. */
  get due(): boolean {
    return this.parts.writer?.due ?? false;
  }

  /**
   * Reads the state after a step and has it written.
   *
   * @returns whether there is a state that can be saved
   */
  async saveState(clip: number, step: number, prediction: Prediction): Promise<boolean> {
    const { writer } = this.parts;
    const state = writer && !writer.failed ? await prediction.save() : null;
    if (state) writer?.saveState(state, this.#done(clip, step));
    return state !== null;
  }

  /** Resolves when everything is written; false where it is not saved. */
  async flush(): Promise<boolean> {
    return (await this.parts.writer?.flush()) ?? false;
  }

  #done(clip: number, step: number): CheckpointInfo {
    const { clips, steps } = this.parts;
    return { clip, clips, step, steps };
  }
}
