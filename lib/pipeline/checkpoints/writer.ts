import { type CheckpointInfo, type ProgressEvent, toKinoraError } from '../../contract';
import type { DenoiseState } from '../denoise';
import { encodeFile, type RunIdentity } from './format';
import {
  type ClipValues,
  type ConditionsValues,
  fileNames,
  type RunStorage,
  type RunValues,
  removeSaved,
  type SavedClip,
  type SavedConditions,
  type StateFile,
  type StateValues,
  tensorsOf,
} from './saved-run';

/** Shortest time between two states, in seconds. */
const usualInterval = 20;

/** Inputs of a {@link CheckpointWriter}, and the place of its files. */
export interface WriterOptions {
  readonly storage: RunStorage;
  readonly run: RunIdentity;
  /** Clips of the run. */
  readonly clips: number;
  /** Shortest time between two states, in seconds; 20 when absent. */
  readonly intervalSeconds?: number | undefined;
  /** The state file that the run goes on from: the other one is written first. */
  readonly resumedFrom?: StateFile | undefined;
  readonly report: (event: ProgressEvent) => void;
}

/**
 * Saves a run while it computes, one file after another in the background. Only {@link flush} waits for it. Where a
 * file cannot be written, the run goes on unsaved: what was saved is deleted, so that the storage is free for the
 * video, and this is reported once.
 */
export class CheckpointWriter {
  readonly #options: WriterOptions;
  #tail: Promise<void> = Promise.resolve();
  #writing = 0;
  #failed = false;
  #savedAt = Number.NEGATIVE_INFINITY;
  #stateFile: StateFile;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#stateFile = otherFile(options.resumedFrom ?? 'state-b');
  }

  /** Whether a state is to be saved: enough time has passed and nothing is being written. */
  get due(): boolean {
    const { intervalSeconds = usualInterval } = this.#options;
    const elapsed = performance.now() - this.#savedAt;
    return !this.#failed && this.#writing === 0 && elapsed >= intervalSeconds * 1000;
  }

  /** Whether files cannot be written any more. */
  get failed(): boolean {
    return this.#failed;
  }

  saveRun(values: RunValues): void {
    this.#save(fileNames.run, values, []);
  }

  saveConditions({ clip, image, texts }: SavedConditions): void {
    const values: ConditionsValues = { clip, names: Object.keys(image) };
    this.#save(fileNames.conditions, values, [...Object.values(image), ...texts]);
  }

  /** @param state of which nothing changes any more, as in the next ones */
  saveState(state: DenoiseState, done: CheckpointInfo): void {
    const file = this.#stateFile;
    this.#stateFile = otherFile(file);
    this.#savedAt = performance.now();
    const { clip, step } = done;
    const values: StateValues = { clip, step };
    this.#save(file, values, tensorsOf(state), done);
  }

  saveClip({ latents, cutShort }: SavedClip, done: CheckpointInfo): void {
    const values: ClipValues = { cutShort };
    this.#save(fileNames.clip(done.clip), values, [latents], done);
  }

  /** Resolves when everything is written; false where it could not be. */
  async flush(): Promise<boolean> {
    await this.#tail;
    return !this.#failed;
  }

  #save(
    name: string,
    values: object,
    tensors: readonly Float32Array[],
    checkpoint?: CheckpointInfo,
  ): void {
    const { storage, run, report } = this.#options;
    this.#writing += 1;
    this.#tail = this.#tail.then(async () => {
      try {
        if (this.#failed) return;
        await storage.write(name, await encodeFile({ run, values, tensors }));
        if (checkpoint) report({ type: 'checkpoint', checkpoint });
      } catch (thrown) {
        await this.#fail(thrown);
      } finally {
        this.#writing -= 1;
      }
    });
  }

  async #fail(thrown: unknown): Promise<void> {
    this.#failed = true;
    const { storage, clips, report } = this.#options;
    const { code, message } = toKinoraError(thrown);
    const why =
      code === 'STORAGE_FULL' ? 'the storage is full' : `it could not be saved: ${message}`;
    const sentence = `This run goes on, but it cannot be resumed if it is interrupted: ${why}.`;
    report({ type: 'checkpoint-problem', problem: 'unsaved', sentence });
    // The problem was reported; what stays is removed with the run.
    await removeSaved(storage, clips, true).catch(() => undefined);
  }
}

function otherFile(file: StateFile): StateFile {
  const [a, b] = fileNames.states;
  return file === a ? b : a;
}
