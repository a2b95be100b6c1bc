import type { EngineRequest } from '../contract/engine';
import { KinoraError, toKinoraError } from '../contract/errors';
import type { Backend, Prediction } from '../contract/prediction';
import type { ProfileName } from '../contract/profile';
import type { GenerationResult, ProgressEvent } from '../contract/progress';
import { type ParametersInput, parseParameters, resolveSeed } from '../contract/request';
import type { SourceLora } from './database';
import { predictionLock, withGpu } from './locks';
import { type EngineHost, runEngine } from './run-engine';
import { advanceRun, idle, type RunEvent, type RunState } from './run-state';
import type { PredictionStore } from './store';
import { recoverInterrupted, sweep } from './sweep';
import { makeThumbnail } from './thumbnail';
import { listVideos, ownerOf, removeVideo } from './videos';

export type { EngineHost, EngineSession } from './run-engine';

/** What a person or a program asks for. */
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
  /** Most device bytes to use; absent means what a probe of the device finds. */
  readonly memoryBudget?: number;
}

/** A prediction that exists and is being worked on. */
export interface StartedRun {
  readonly id: string;
  /** The row as it is when the work has ended, completed or failed. */
  readonly ended: Promise<Prediction>;
}

/**
 * Runs predictions, one at a time: makes the row first, holds the locks, talks to the engine and
 * writes down how it ended. Its state is an external store in React's sense
 * ({@link subscribe}, {@link getSnapshot}), but nothing here knows of React.
 */
export class Runner {
  #state: RunState = idle;
  #abort = new AbortController();
  readonly #listeners = new Set<() => void>();

  constructor(
    readonly store: PredictionStore,
    readonly engine: EngineHost,
    /** Rejects with a KinoraError what is no usable image, from its bytes and without decoding it. */
    readonly checkImage: (image: Blob) => Promise<unknown>,
  ) {}

  readonly getSnapshot = (): RunState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Creates a prediction and starts the work on it.
   *
   * @param onProgress sees every event of the engine
   * @returns once the row exists, with the drawn seed in it
   * @throws KinoraError `BUSY`, `PROMPT_EMPTY`, `PARAMETER_INVALID`, `REQUEST_INVALID`, what the
   *   check of the image says, or `STORAGE_FULL` when image and adapters cannot be kept; then there
   *   is no row
   */
  async start(input: RunInput, onProgress?: (event: ProgressEvent) => void): Promise<StartedRun> {
    const prediction = draw(input);
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
   * Runs a prediction again as a new one, with the same image, adapters, parameters and seed.
   *
   * @param options what belongs to the device of this day and not to the prediction
   * @throws KinoraError like {@link start}, and `IMAGE_MISSING` when its image was not kept
   */
  async runAgain(id: string, options: Pick<RunInput, 'memoryBudget'> = {}): Promise<StartedRun> {
    const [prediction, source] = await Promise.all([this.store.get(id), this.store.source(id)]);
    if (!prediction || !source) throw new KinoraError('IMAGE_MISSING');
    const { parameters, model, profile = 'standard', backend } = prediction;
    const { image, imageName, loras } = source;
    return this.start({ image, imageName, loras, parameters, model, profile, backend, ...options });
  }

  /** Ends the run with `CANCELLED`, be it waiting or running. */
  cancel(): void {
    this.#apply({ type: 'ending', how: 'cancel' });
    this.#abort.abort();
  }

  /** Holds the run after the current step. */
  async pause(): Promise<void> {
    if (this.#state.status !== 'running') return;
    this.#apply({ type: 'pausing', pausing: true });
    await this.engine.open().api.pause();
  }

  /** Ends a pause, or takes back one that has not begun. */
  async resume(): Promise<void> {
    if (this.#state.status !== 'running') return;
    this.#apply({ type: 'pausing', pausing: false });
    await this.engine.open().api.resume();
  }

  /** Ends the loop after the current step and keeps what is there. */
  async finishEarly(): Promise<void> {
    if (this.#state.status !== 'running') return;
    this.#apply({ type: 'ending', how: 'finish' });
    await this.engine.open().api.finishEarly();
  }

  /**
   * To be called once when the page starts: fails what an earlier page left unfinished, then frees
   * what no row needs.
   *
   * @returns how many predictions had been interrupted
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
    const thumbnail = this.#keepThumbnail(id, input.image);
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
      // What cannot be removed now has no row: the next sweep takes it.
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
    const { id, parameters, model, backend } = prediction;
    const loras = input.loras.map(({ name, file }, index) => {
      return { name, file, scale: parameters.loras[index]?.scale ?? 1 };
    });
    const { image, encoder = 'auto', memoryBudget } = input;
    const budget = memoryBudget === undefined ? {} : { memoryBudget };
    const profile = prediction.profile ?? 'standard';
    const request = { id, image, parameters, model, profile, backend, loras, encoder, ...budget };
    return runEngine(this.engine, request, signal, onProgress);
  }

  async #keepThumbnail(id: string, image: Blob): Promise<void> {
    try {
      const thumbnail = await makeThumbnail(image);
      if (thumbnail) await this.store.setThumbnail(id, thumbnail);
    } catch {
      // Only the list looks plainer without it.
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

/** Checks the input and draws id and seed. */
function draw(input: RunInput): Prediction {
  const parameters = parseParameters(input.parameters);
  if (parameters.loras.length !== input.loras.length) {
    const counts = `${parameters.loras.length} LoRAs asked for, ${input.loras.length} files given`;
    throw new KinoraError('REQUEST_INVALID', `The LoRA files do not fit the request: ${counts}.`);
  }
  return {
    id: crypto.randomUUID().replaceAll('-', ''),
    model: input.model,
    profile: input.profile ?? 'standard',
    backend: input.backend,
    parameters: { ...parameters, seed: resolveSeed(parameters.seed) },
    createdAt: now(),
    status: 'created',
  };
}

async function removeFilesOf(id: string): Promise<void> {
  for (const file of await listVideos()) {
    if (ownerOf(file) === id) await removeVideo(file);
  }
}

function now(): string {
  return new Date().toISOString();
}
