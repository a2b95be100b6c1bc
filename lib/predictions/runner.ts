import {
  type DeviceOptions,
  type EngineApi,
  type EngineRequest,
  type EnhanceRequest,
  type GenerationResult,
  KinoraError,
  ofLastImage,
  type Prediction,
  type ProfileName,
  type ProgressEvent,
  phases,
  type RunOptions,
  type Safety,
  type Timings,
  toKinoraError,
} from '../contract';
import { CurrentRun, inUse, type StartedRun } from './current-run';
import { type EngineClient, runEngine, withEngine } from './engine-client';
import { withGpu } from './locks';
import type { SourceLora } from './loras';
import { makeThumbnail, savePoster } from './poster';
import { advancePrediction, endingWith, starting } from './prediction-state';
import { createPrediction, newRow, type RunInput, requestOf, type SourceFiles } from './run-input';
import type { RunEvent } from './run-state';
import { sweepRuns } from './saved-runs';
import type { PredictionStore, Waiting } from './store';
import { recoverInterrupted, removeUnusedVideos, sweep, watchRuns } from './sweep';

type OnProgress = (event: ProgressEvent) => void;
type UnsavedVideo = Extract<ProgressEvent, { type: 'unsaved-video' }>;
type Work = (signal: AbortSignal, onStarted: () => void) => Promise<Prediction>;

/** The files of a run, its adapters opened. */
type OpenFiles = SourceFiles & { readonly loras: readonly OpenLora[] };
type OpenLora = SourceLora & { readonly file: Blob };

/** How long the scripts of a page may go on when it is left, in milliseconds: until the next page answers. */
const leavingMs = 10_000;

/**
 * Runs predictions, one at a time: creates the row, holds the locks, calls the engine and stores the
 * outcome. {@link subscribe} and {@link getSnapshot} fit React's `useSyncExternalStore`.
 */
export class Runner {
  readonly #run = new CurrentRun(() => sweepRuns(this.store));
  /** Finished videos that could not be stored, by the id of their predictions. */
  readonly #unsavedVideos = new Map<string, UnsavedVideo>();
  readonly getSnapshot = this.#run.getSnapshot;
  readonly subscribe = this.#run.subscribe;
  /** Pending while this page is being left; resolves if it is still there after {@link leavingMs}. */
  #staying: Promise<void> = Promise.resolve();

  constructor(
    readonly store: PredictionStore,
    readonly engine: EngineClient,
    /** Rejects with a KinoraError if the bytes are not a usable image; does not decode it. */
    private readonly checkImage: (image: Blob) => Promise<unknown>,
    /** Opens an adapter of the library by its name. */
    private readonly openLora: (name: string) => Promise<OpenLora>,
  ) {
    window.addEventListener('beforeunload', () => {
      // The inner timer starts after the browser's question whether to leave, which may stay open for long.
      this.#staying = new Promise((stay) => setTimeout(() => setTimeout(stay, leavingMs)));
    });
  }

  /**
   * Checks a request and its images.
   *
   * @param thumbnails those that are made already: variations have the same image
   * @throws KinoraError of {@link createPrediction}, and of the image check
   */
  async prepare(
    input: RunInput,
    thumbnails = new Map<Blob, Promise<Blob | null>>(),
  ): Promise<Waiting> {
    const prediction = await createPrediction(input);
    const { image, imageName, lastImage, loras, before } = input;
    await this.checkImage(image);
    if (lastImage) await ofLastImage(this.checkImage(lastImage));
    const { options, parameters } = prediction;
    const thumbnail =
      thumbnails.get(image) ??
      // Without it the list shows no picture.
      makeThumbnail(image, options.framing, parameters.size).catch(() => null);
    thumbnails.set(image, thumbnail);
    const files = { image, imageName, lastImage, loras, before };
    return { prediction, source: { ...files, thumbnail: (await thumbnail) ?? undefined } };
  }

  /**
   * Starts a request at once. Resolves when the row exists, with its explicit seed.
   *
   * @param onProgress receives every event of the engine
   * @throws KinoraError `BUSY`, those of {@link prepare}, or `STORAGE_FULL` if image and adapters cannot be stored;
   *   then there is no row
   */
  async start(input: RunInput, onProgress?: OnProgress): Promise<StartedRun> {
    return this.#startNew(await this.prepare(input), onProgress);
  }

  /**
   * Starts a request that waits, if no other run is under way in this browser.
   *
   * @throws KinoraError `BUSY` where another tab was quicker or edits it, the error of an adapter that cannot be opened,
   *   `IMAGE_MISSING`, `STORAGE_FULL`; then it waits as before
   */
  async startWaiting(id: string): Promise<StartedRun> {
    const { prediction, source } = await this.#stored(id);
    if (prediction.status !== 'created') throw inUse();
    return this.#start({ prediction, source }, ({ loras }) => this.store.begin(id, loras));
  }

  #startNew({ prediction, source }: Waiting, onProgress?: OnProgress): Promise<StartedRun> {
    const create = async (files: OpenFiles) => {
      const row = advancePrediction(prediction, starting(prediction));
      await this.store.create(row, files);
      return row;
    };
    return this.#start({ prediction, source }, create, onProgress);
  }

  /** @param begin writes the row as that of a run; null where it is not to run */
  #start(
    { prediction, source }: Waiting,
    begin: (files: OpenFiles) => Promise<Prediction | null>,
    onProgress?: OnProgress,
  ): Promise<StartedRun> {
    const work: Work = async (signal, onStarted) => {
      const files = await this.#open(source);
      const row = await begin(files);
      if (!row) throw inUse();
      onStarted();
      return this.#perform(requestOf(row, files, prediction.device), null, signal, onProgress);
    };
    // Only one that waits may be held by another tab, which then has it.
    return this.#run.begin(prediction, null, work, false);
  }

  /** Opens the adapters that are in the library. */
  async #open(source: SourceFiles): Promise<OpenFiles> {
    const open = async ({ file, ...lora }: SourceLora) =>
      file ? { ...lora, file } : this.openLora(lora.name);
    return { ...source, loras: await Promise.all(source.loras.map(open)) };
  }

  /**
   * Runs a prediction again as a new one, with the same images, adapters, parameters, seed and options.
   *
   * @param changes replace the prediction's profile and options
   * @throws KinoraError `BUSY`, `STORAGE_FULL`, `IMAGE_MISSING` if its image is not stored
   */
  async runAgain(
    id: string,
    device: Partial<DeviceOptions> = {},
    { profile, ...options }: RunOptions & { readonly profile?: ProfileName } = {},
  ): Promise<StartedRun> {
    const { prediction, source } = await this.#stored(id);
    const { parameters, model, backend, continues } = prediction;
    const again = newRow({
      parameters,
      model,
      profile: profile ?? prediction.profile,
      options: { ...prediction.options, ...options },
      device: { backend, ...device },
      continues,
    });
    return this.#startNew({ prediction: again, source });
  }

  /**
   * Decodes the kept latents of a finished video with the full decoder, and replaces the video and its record.
   * `ended` rejects with the engine's error; the prediction is then as it was, but after `PROMPT_REFUSED` it
   * is deleted.
   *
   * @throws KinoraError like {@link continueRun}
   */
  async refine(
    id: string,
    device: Partial<DeviceOptions> = {},
    onProgress?: OnProgress,
  ): Promise<StartedRun> {
    const { prediction, source } = await this.#stored(id);
    return this.#run.begin(prediction, 'refine', async (signal, onStarted) => {
      const before = await this.store.get(id);
      if (before?.status !== 'completed') throw inUse();
      onStarted();
      const { result } = before;
      // The old video stays until the row refers to the new one.
      const request: EngineRequest = {
        ...requestOf(before, await this.#open(source), { backend: before.backend, ...device }),
        options: {
          ...before.options,
          decoder: 'full',
          // A video that was checked does not lose its verdict.
          safetyChecker: (result.safety?.status ?? 'off') !== 'off',
        },
        continuation: 'refine',
        videoFile: `${id}.refined.mp4`,
      };
      try {
        const refined = await withGpu(
          () => this.#compute(request, signal, onProgress),
          () => this.#run.apply({ type: 'queued' }),
          signal,
        );
        const timings = addTimings(result.timings, refined.timings);
        const { lastStep } = result;
        const row = await this.store.dispatch(id, {
          type: 'refined',
          result: { ...refined, timings, ...(lastStep && { lastStep }) },
        });
        return this.#withPoster(row);
      } catch (thrown) {
        const error = signal.aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
        if (error.code === 'PROMPT_REFUSED') await this.store.deleteRow(id);
        throw error;
      } finally {
        // The next start removes them too.
        await removeUnusedVideos(this.store, id).catch(() => {});
      }
    });
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
    const { model, backend, parameters, result } = prediction;
    const { videoFile, promptOptimization } = result;
    const prompts = [parameters.prompt, promptOptimization?.text ?? ''];
    try {
      const safety = await this.#withEngine(signal, (api) =>
        api.check({ videoFile, model, prompts, backend }),
      );
      await this.store.dispatch(id, { type: 'checked', safety });
      return safety;
    } catch (thrown) {
      const error = signal.aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
      if (error.code === 'PROMPT_REFUSED') {
        await this.store.deleteRow(id);
        await sweepRuns(this.store);
      }
      throw error;
    }
  }

  /**
   * Enlarges a finished video or adds frames between its frames, once the GPU is free.
   *
   * @returns the new MP4, which is not stored yet
   * @throws KinoraError of the engine's `enhance`, `CANCELLED` after an abort
   */
  enhance(request: EnhanceRequest, signal: AbortSignal, onProgress: OnProgress): Promise<Blob> {
    return this.#withEngine(signal, (api) => api.enhance(request, onProgress));
  }

  /** Asks the engine for something that is no run, once the GPU is free. */
  #withEngine<T>(signal: AbortSignal, work: (api: EngineApi) => Promise<T>): Promise<T> {
    const nothing = () => undefined;
    return withGpu(() => withEngine(this.engine, signal, work), nothing, signal);
  }

  /** The finished video of a prediction that could not be stored; it is in the memory of this page only. */
  unsavedVideo(id: string): UnsavedVideo | undefined {
    return this.#unsavedVideos.get(id);
  }

  /** Ends the waiting or running run with `CANCELLED`; one that waits to be resumed stays as it was. */
  cancel(): void {
    this.#run.cancel();
  }

  /**
   * Pauses the run: it ends after the current step with `PAUSED`, saved, and the GPU is free. Does nothing where the
   * run cannot be saved.
   */
  async pause(): Promise<void> {
    const run = this.getSnapshot();
    if (run.status !== 'running' || run.progress.checkpointProblem?.problem === 'unsaved') return;
    await this.#ask((api) => api.pause(), { type: 'ending', how: 'pause' });
  }

  /** Goes on with the kernels that are known, without measuring the others. */
  skipTuning(): Promise<void> {
    return this.#ask((api) => api.skipTuning());
  }

  /** Ends the denoising loop after the current step and decodes its result. */
  finishEarly(): Promise<void> {
    return this.#ask((api) => api.finishEarly(), { type: 'ending', how: 'finish' });
  }

  /** Asks the engine for something while it runs. */
  async #ask(call: (api: EngineApi) => Promise<void>, event?: RunEvent): Promise<void> {
    if (this.getSnapshot().status !== 'running') return;
    if (event) this.#run.apply(event);
    await call(this.engine.open().api);
  }

  /**
   * Call it once when the page starts: ends the runs of tabs that are gone, and deletes files that no row
   * needs.
   *
   * @returns how many predictions were interrupted
   */
  async recover(): Promise<number> {
    const count = await recoverInterrupted(this.store);
    await this.store.purge();
    await sweep(this.store);
    await sweepRuns(this.store);
    return count;
  }

  /**
   * Ends the runs of other tabs with `INTERRUPTED` when these tabs are gone.
   *
   * @returns a function that ends this
   */
  watch(): () => void {
    return watchRuns(this.store, (id) => {
      const run = this.getSnapshot();
      return run.status !== 'idle' && run.prediction.id === id;
    });
  }

  /**
   * Goes on with an interrupted run from its checkpoint, or decodes what that holds. Resolves when the row is
   * `processing`.
   *
   * @param device a backend computes the rest of a run that another one has begun
   * @throws KinoraError `BUSY` also while another tab works on it, `IMAGE_MISSING`; then nothing has changed
   */
  async continueRun(
    id: string,
    continuation: 'resume' | 'finish',
    device: Partial<DeviceOptions> = {},
    onProgress?: OnProgress,
  ): Promise<StartedRun> {
    const { prediction, source } = await this.#stored(id);
    return this.#run.begin(prediction, continuation, async (signal, onStarted) => {
      const before = await this.store.get(id);
      if (before?.status !== 'interrupted') throw inUse();
      const files = await this.#open(source);
      const { checkpoint } = before;
      const { backend } = device;
      const resumed = await this.store.dispatch(id, {
        type: 'resumed',
        ...(backend && { backend }),
      });
      onStarted();
      const request = requestOf(resumed, files, { backend: resumed.backend, ...device });
      return this.#perform({ ...request, continuation, checkpoint }, before, signal, onProgress);
    });
  }

  /** A prediction and its input files. @throws KinoraError `IMAGE_MISSING` */
  async #stored(id: string): Promise<{ prediction: Prediction; source: SourceFiles }> {
    const [prediction, stored] = await Promise.all([this.store.get(id), this.store.source(id)]);
    if (!prediction || !stored) throw new KinoraError('IMAGE_MISSING');
    const { predictionId: _, ...source } = stored;
    return { prediction, source };
  }

  /**
   * Computes a video and stores the outcome in the row.
   *
   * @param resumed the row before it was resumed; null for a new run
   */
  async #perform(
    request: EngineRequest,
    resumed: Extract<Prediction, { status: 'interrupted' }> | null,
    signal: AbortSignal,
    onProgress?: OnProgress,
  ): Promise<Prediction> {
    const { id } = request;
    let hasGpu = false;
    const work = async (): Promise<Prediction> => {
      hasGpu = true;
      let last = resumed?.checkpoint;
      const result = await this.#compute(request, signal, (event) => {
        if (event.type === 'step') last = event;
        onProgress?.(event);
      });
      const early = result.finishedEarly && last && last.step < last.steps ? last : null;
      const lastStep = early && { step: early.step, steps: early.steps };
      const ended = lastStep ? { ...result, lastStep } : result;
      this.#unsavedVideos.delete(id);
      const row = await this.store.note(id, { type: 'completed', at: now(), result: ended });
      return this.#withPoster(row);
    };
    try {
      return await withGpu(work, () => this.#run.apply({ type: 'queued' }), signal);
    } catch (thrown) {
      // Firefox and WebKit cancel what a page reads when it is left, while its scripts still run: that is not a
      // failure of the run, which the next page finds interrupted.
      if (!signal.aborted) await this.#staying;
      const error = signal.aborted ? new KinoraError('CANCELLED') : toKinoraError(thrown);
      // If a resumed run is cancelled while it waits for the GPU, its row returns to its earlier state.
      const reason = resumed && !hasGpu ? resumed.error : error.toRecord();
      const row = await this.store.note(id, endingWith(reason, now()));
      // A file that cannot be deleted now is deleted by the next sweep.
      await removeUnusedVideos(this.store, id).catch(() => {});
      return row;
    }
  }

  /** Calls the engine; what it saves on the way is noted in the row. */
  #compute(
    request: EngineRequest,
    signal: AbortSignal,
    onProgress?: OnProgress,
  ): Promise<GenerationResult> {
    this.#run.apply({ type: 'started', at: Date.now() });
    const report = (event: ProgressEvent) => {
      this.#run.apply({ type: 'progress', event });
      this.#noteCheckpoint(request.id, event);
      if (event.type === 'unsaved-video' && request.continuation !== 'refine') {
        this.#unsavedVideos.set(request.id, event);
      }
      onProgress?.(event);
    };
    return runEngine(this.engine, request, signal, report, (api) => this.#askAgain(api));
  }

  /** Asks an engine for what the user has asked another one for in this run. */
  #askAgain(api: EngineApi): void {
    const run = this.getSnapshot();
    if (run.status !== 'running') return;
    const { ending } = run;
    // It rejects if that run has ended as well, which is reported otherwise.
    const ask = (call: Promise<void>) => void call.catch(() => {});
    if (ending === 'finish') ask(api.finishEarly());
    else if (ending === 'pause') ask(api.pause());
  }

  #noteCheckpoint(id: string, event: ProgressEvent): void {
    if (event.type !== 'checkpoint' && event.type !== 'checkpoint-problem') return;
    const checkpoint = event.type === 'checkpoint' ? event.checkpoint : null;
    // Without the note the run can still finish; at worst it cannot be resumed.
    this.store.note(id, { type: 'checkpointed', checkpoint }).catch(() => {});
  }

  /** Makes the poster meanwhile; the list makes it where the page is closed too early. */
  #withPoster(row: Prediction): Prediction {
    if (row.status === 'completed') void savePoster(this.store, row);
    return row;
  }
}

/** Seconds of a video that was computed in two runs. */
function addTimings(first: Timings, second: Timings): Timings {
  const sum = { ...first };
  for (const phase of [...phases, 'total'] as const) {
    const seconds = second[phase];
    if (seconds !== undefined) sum[phase] = (sum[phase] ?? 0) + seconds;
  }
  return sum;
}

function now(): string {
  return new Date().toISOString();
}
