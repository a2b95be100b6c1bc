import type { EngineRequest } from '../contract/engine';
import { KinoraError, toKinoraError } from '../contract/errors';
import type { Backend, Prediction } from '../contract/prediction';
import type { DecoderKind, ProfileName } from '../contract/profile';
import type { GenerationResult, ProgressEvent } from '../contract/progress';
import type { PromptOptimization } from '../contract/prompt-optimization';
import { isRefusedPrompt } from '../contract/prompt-refusal';
import { type ParametersInput, parseParameters, resolveSeed } from '../contract/request';
import type { Safety } from '../contract/safety';
import { type SourceLora, withScales } from './database';
import { checkVideo, type EngineClient, runEngine } from './engine-client';
import { predictionLock, withGpu } from './locks';
import { advanceRun, idle, type RunEvent, type RunState } from './run-state';
import type { PredictionStore } from './store';
import { recoverInterrupted, sweep } from './sweep';
import { listVideos, ownerOf, removeVideo } from './videos';

/** The input of a run. */
export interface RunInput {
  readonly image: Blob;
  readonly imageName: string;
  readonly parameters: ParametersInput;
  readonly model: string;
  /** `standard` by default. */
  readonly profile?: ProfileName;
  readonly backend: Backend;
  /** The files of `parameters.loras`, in the same order. */
  readonly loras: readonly SourceLora[];
  readonly encoder?: NonNullable<EngineRequest['encoder']>;
  /** Whether image and frames are checked; false when absent. */
  readonly safetyChecker?: boolean;
  /** As in `EngineRequest`. */
  readonly promptOptimizer?: boolean | PromptOptimization;
  /** As in `EngineRequest`. */
  readonly decoder?: DecoderKind;
  readonly cache?: boolean;
  /** Upper limit of device memory in bytes; by default the engine measures it. */
  readonly memoryBudget?: number;
}

/** A run whose row exists. */
export interface StartedRun {
  readonly id: string;
  /** Resolves with the completed or failed row. */
  readonly ended: Promise<Prediction>;
}

/**
 * Runs predictions, one at a time: creates the row, holds the locks, calls the engine and stores the
 * outcome. {@link subscribe} and {@link getSnapshot} fit React's `useSyncExternalStore`.
 */
export class Runner {
  #state: RunState = idle;
  #abort = new AbortController();
  readonly #listeners = new Set<() => void>();

  constructor(
    readonly store: PredictionStore,
    readonly engine: EngineClient,
    /** Rejects with a KinoraError if the bytes are not a usable image; does not decode it. */
    readonly checkImage: (image: Blob) => Promise<unknown>,
  ) {}

  readonly getSnapshot = (): RunState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Creates a prediction and starts it. Resolves when the row exists, with its explicit seed.
   *
   * @param onProgress receives every event of the engine
   * @throws KinoraError `BUSY`, `PROMPT_EMPTY`, `PROMPT_REFUSED`, `PARAMETER_INVALID`, `REQUEST_INVALID`, an error of the
   *   image check, or `STORAGE_FULL` if image and adapters cannot be stored; then there is no row
   */
  async start(input: RunInput, onProgress?: (event: ProgressEvent) => void): Promise<StartedRun> {
    const prediction = createPrediction(input);
    if (this.#state.status !== 'idle') throw new KinoraError('BUSY');
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    this.#apply({ type: 'created', prediction });
    return new Promise((resolve, reject) => {
      const ended = this.#locked(prediction.id, async () => {
        const { image, imageName, loras } = input;
        await this.checkImage(image);
        await this.store.create(prediction, { image, imageName, loras });
        resolve({ id: prediction.id, ended });
        return this.#perform(prediction, input, signal, onProgress);
      });
      ended.catch(reject);
    });
  }

  /**
   * Runs a prediction again as a new one, with the same image, adapters, parameters, seed and switches.
   *
   * @param options settings of the device, which are not part of a prediction; a `safetyChecker` replaces the
   *   prediction's, which records of earlier versions do not have
   * @throws KinoraError like {@link start}, and `IMAGE_MISSING` if its image is not stored
   */
  async runAgain(
    id: string,
    options: Pick<RunInput, 'memoryBudget' | 'safetyChecker'> = {},
  ): Promise<StartedRun> {
    const [prediction, source] = await Promise.all([this.store.get(id), this.store.source(id)]);
    if (!prediction || !source) throw new KinoraError('IMAGE_MISSING');
    const { parameters, model, profile, backend } = prediction;
    const { image, imageName, loras } = source;
    const run = { image, imageName, loras, parameters, model, profile, backend };
    return this.start({ ...run, ...switchesOf(prediction), ...options });
  }

  /**
   * Checks a finished video again, as one that was made before the checker was there, and stores what was
   * found.
   *
   * @throws KinoraError of the engine's `check`, `CANCELLED` after an abort; `PROMPT_REFUSED` after deleting
   *   the prediction and its video
   */
  async check(id: string, signal: AbortSignal): Promise<Safety> {
    const prediction = await this.store.get(id);
    if (prediction?.status !== 'completed') throw new KinoraError('VIDEO_UNREADABLE');
    const { model, backend, result } = prediction;
    try {
      const safety = await withGpu(
        () => checkVideo(this.engine, { videoFile: result.videoFile, model, backend }, signal),
        () => undefined,
        signal,
      );
      await this.store.dispatch(id, { type: 'checked', safety });
      return safety;
    } catch (thrown) {
      const error = signal.aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
      if (error.code === 'PROMPT_REFUSED') await this.store.deleteRow(id);
      throw error;
    }
  }

  /** Ends the waiting or running run with `CANCELLED`. */
  cancel(): void {
    this.#apply({ type: 'ending', how: 'cancel' });
    this.#abort.abort();
  }

  /** Pauses the run after the current step. */
  async pause(): Promise<void> {
    if (this.#state.status !== 'running') return;
    this.#apply({ type: 'pausing', pausing: true });
    await this.engine.open().api.pause();
  }

  /** Ends a pause, or withdraws one that has not begun. */
  async resume(): Promise<void> {
    if (this.#state.status !== 'running') return;
    this.#apply({ type: 'pausing', pausing: false });
    await this.engine.open().api.resume();
  }

  /** Ends the denoising loop after the current step and decodes its result. */
  async finishEarly(): Promise<void> {
    if (this.#state.status !== 'running') return;
    this.#apply({ type: 'ending', how: 'finish' });
    await this.engine.open().api.finishEarly();
  }

  /**
   * Call it once when the page starts: marks interrupted predictions as failed and deletes files that no
   * row refers to.
   *
   * @returns how many predictions were interrupted
   */
  async recover(): Promise<number> {
    const count = await recoverInterrupted(this.store);
    await this.store.purge();
    await sweep(this.store);
    return count;
  }

  async #perform(
    prediction: Prediction,
    input: RunInput,
    signal: AbortSignal,
    onProgress?: (event: ProgressEvent) => void,
  ): Promise<Prediction> {
    const { id } = prediction;
    const thumbnail = this.#saveThumbnail(id, input.image);
    const work = async (): Promise<Prediction> => {
      await this.store.dispatch(id, { type: 'started', at: now() });
      this.#apply({ type: 'started', at: Date.now() });
      const result = await this.#generate(prediction, input, signal, (event) => {
        this.#apply({ type: 'progress', event });
        onProgress?.(event);
      });
      return this.store.dispatch(id, { type: 'completed', at: now(), result });
    };
    try {
      return await withGpu(work, () => this.#apply({ type: 'queued' }), signal);
    } catch (thrown) {
      const error = signal.aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
      const failed = { type: 'failed', at: now(), error: error.toRecord() } as const;
      const row = await this.store.dispatch(id, failed);
      // A file that cannot be deleted now is deleted by the next sweep.
      await removeFilesOf(id).catch(() => {});
      return row;
    } finally {
      await thumbnail;
    }
  }

  async #generate(
    prediction: Prediction,
    input: RunInput,
    signal: AbortSignal,
    onProgress: (event: ProgressEvent) => void,
  ): Promise<GenerationResult> {
    const { id, parameters, model, profile, backend } = prediction;
    const loras = withScales(input.loras, parameters);
    const { image, encoder = 'auto', memoryBudget } = input;
    const budget = memoryBudget === undefined ? {} : { memoryBudget };
    const run = { id, image, parameters, model, profile, backend, loras, encoder, ...budget };
    const request = { ...run, ...switchesOf(prediction) };
    return runEngine(this.engine, request, signal, onProgress);
  }

  async #saveThumbnail(id: string, image: Blob): Promise<void> {
    try {
      const thumbnail = await makeThumbnail(image);
      if (thumbnail) await this.store.setThumbnail(id, thumbnail);
    } catch {
      // The list then shows no picture; the run is not affected.
    }
  }

  async #locked(id: string, work: () => Promise<Prediction>): Promise<Prediction> {
    try {
      return await navigator.locks.request(predictionLock(id), work);
    } finally {
      this.#apply({ type: 'ended' });
    }
  }

  #apply(event: RunEvent): void {
    const next = advanceRun(this.#state, event);
    if (next === this.#state) return;
    this.#state = next;
    for (const listener of this.#listeners) listener();
  }
}

/** Validates the input; sets the id, and the seed if it is −1. */
function createPrediction(input: RunInput): Prediction {
  const parameters = parseParameters(input.parameters);
  if (isRefusedPrompt(parameters.prompt)) throw new KinoraError('PROMPT_REFUSED');
  withScales(input.loras, parameters);
  return {
    id: crypto.randomUUID().replaceAll('-', ''),
    model: input.model,
    profile: input.profile ?? 'standard',
    backend: input.backend,
    parameters: { ...parameters, seed: resolveSeed(parameters.seed) },
    ...switchesOf(input),
    createdAt: now(),
    status: 'created',
  };
}

/** What a run is asked for besides parameters and model, as far as it is. */
function switchesOf({ safetyChecker, promptOptimizer, decoder, cache }: SwitchInput): Switches {
  return {
    ...(decoder && { decoder }),
    ...(cache !== undefined && { cache }),
    ...(safetyChecker && { safetyChecker }),
    ...(promptOptimizer && { promptOptimizer }),
  };
}

type SwitchNames = 'safetyChecker' | 'promptOptimizer' | 'decoder' | 'cache';
type SwitchInput = Pick<RunInput, SwitchNames>;
type Switches = Pick<Prediction, SwitchNames>;

async function removeFilesOf(id: string): Promise<void> {
  for (const file of await listVideos()) {
    if (ownerOf(file) === id) await removeVideo(file);
  }
}

/** Longer side of a thumbnail in pixels. */
const thumbnailSize = 320;

/** A small JPEG of an image, or null if the browser cannot decode it. */
async function makeThumbnail(image: Blob): Promise<Blob | null> {
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(image);
  } catch {
    return null;
  }
  const scale = Math.min(1, thumbnailSize / Math.max(bitmap.width, bitmap.height));
  const width = Math.max(1, Math.round(bitmap.width * scale));
  const height = Math.max(1, Math.round(bitmap.height * scale));
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  context?.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  return context ? canvas.convertToBlob({ type: 'image/jpeg', quality: 0.8 }) : null;
}

function now(): string {
  return new Date().toISOString();
}
