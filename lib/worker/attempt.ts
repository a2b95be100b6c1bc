import {
  base64,
  fileSha256,
  type GenerationResult,
  isFlagged,
  type KinoraError,
  optionsOfFields,
  type ProgressEvent,
} from '../contract';
import {
  ApiError,
  type ApiErrorCode,
  type Heartbeat,
  profileOfModel,
  type WorkerJob,
} from '../contract/v3';
import { type EngineClient, runEngine } from '../predictions/engine-client';
import { listRuns, removeRun, servedRun } from '../predictions/run-files';
import { requestOf, validParameters } from '../predictions/run-input';
import { advanceProgress, initialProgress, type RunProgress } from '../predictions/run-state';
import { readVideo, removeVideo, servedVideo } from '../predictions/videos';
import type { ServedJob, ServeOptions, ServingListener } from './api';
import type { WorkerClient } from './client';
import type { CurrentJob } from './connection';
import { describeFailure, inWords } from './failures';
import { type Adapters, fetchInputs } from './inputs';
import { keepLease } from './lease-keeper';
import { type FinishedJob, notChecked, type PendingUploads } from './pending-uploads';
import { PreviewPictures } from './preview';
import { isLeaseLost, isUnauthorized } from './transport-error';
import { uploadVideo } from './upload';

/** Dependencies of an attempt. */
export interface AttemptDependencies extends ServingListener {
  readonly options: ServeOptions;
  readonly client: WorkerClient;
  readonly engine: EngineClient;
  readonly adapters: Adapters;
  readonly pendingUploads: PendingUploads;
}

/** Refusals of a video after which it is sent once more. */
const resendable: readonly ApiErrorCode[] = ['OUTPUT_REJECTED', 'CONFLICT'];
/** How long an upload may go on after somebody has disconnected, in milliseconds. */
const uploadGraceMs = 10_000;

/** How an attempt ended; `error` is what a person should know. */
export interface Ended {
  readonly served: ServedJob;
  readonly error: KinoraError | null;
}

/**
 * One attempt at one job under one lease: compute, then deliver. Heartbeats go out from the first moment to
 * the last. Nothing here throws but a relay that does not take this worker: every other end is reported
 * to the relay and becomes a {@link ServedJob}.
 */
export class Attempt {
  readonly #dependencies: AttemptDependencies;
  readonly #stop: AbortSignal;
  readonly job: CurrentJob;
  readonly #token: string;
  readonly #lost = new AbortController();
  readonly #over = new AbortController();
  readonly #pictures = new PreviewPictures();
  #progress: RunProgress;
  #refused: unknown = null;
  /** Outcomes of the checks of a finished video. */
  #checkResults: Pick<ServedJob, 'safety' | 'prompt'> = { safety: null, prompt: null };
  #failure: unknown = null;

  /**
   * Sends heartbeats from now on.
   *
   * @param stop somebody disconnects: the lease is handed back
   */
  constructor(
    dependencies: AttemptDependencies,
    lease: { readonly job: CurrentJob; readonly token: string; readonly heartbeatMs: number },
    stop: AbortSignal,
    steps = 0,
  ) {
    this.#dependencies = dependencies;
    this.#stop = stop;
    this.job = lease.job;
    this.#token = lease.token;
    this.#progress = initialProgress({ num_inference_steps: steps });
    const watcher = {
      state: () => this.#heartbeat(),
      onLost: () => this.lose(),
      onRefused: (error: unknown) => {
        this.#refused = error;
        this.lose();
      },
      onAnswered: (answered: boolean) => dependencies.onEvent({ type: 'heartbeat', answered }),
    };
    const kept = { id: this.id, token: lease.token, heartbeatMs: lease.heartbeatMs };
    void keepLease(dependencies.client, kept, watcher, this.#over.signal);
  }

  get id(): string {
    return this.job.id;
  }

  /** The job was cancelled, or another worker has it: all work on it stops at once. */
  lose(): void {
    this.#lost.abort();
  }

  /** Makes the video and keeps it for upload; null when that failed, which {@link end} reports. */
  async compute(job: WorkerJob): Promise<FinishedJob | null> {
    const { onEvent, onLease, engine, client, adapters, pendingUploads, options } =
      this.#dependencies;
    const signal = AbortSignal.any([this.#stop, this.#lost.signal]);
    onLease({ id: this.id, token: this.#token });
    try {
      const parsed = await validParameters(job.parameters, job.last_image);
      const inputs = await fetchInputs(client, adapters, job, signal);
      // An address may be that of a pair: then each file is one of them.
      const files = inputs.loras.map(({ name, scale, noise }) => ({ path: name, scale, noise }));
      const parameters = { ...parsed, loras: files };
      const { model, device } = options;
      const videoFile = servedVideo(this.id);
      const profile = profileOfModel(job.model);
      const run = { id: this.id, parameters, model, profile, options: optionsOfFields(job) };
      const request = {
        ...requestOf(run, inputs, device),
        videoFile,
        // A tab that died has left it, and the job has come back to this browser.
        continuation: (await isSaved(this.id)) ? ('resume' as const) : undefined,
      };
      const result = await runEngine(engine, request, signal, (event) => {
        this.#take(event);
        onEvent({ type: 'progress', event });
      });
      const completion = {
        lease_token: this.#token,
        sha256: await fileSha256(await readVideo(videoFile)),
        bytes: result.videoBytes,
        seed: result.seed,
        inference_ms: Math.round(result.timings.total * 1000),
        sampling_ms: Math.round((result.timings.denoise ?? 0) * 1000),
        decode_ms: Math.round((result.timings.decode ?? 0) * 1000),
        ...(result.applied && { applied: result.applied }),
        model,
        precision: options.precision,
        encoder: result.encoder,
        safety: result.safety ?? notChecked,
        prompt_optimization: result.promptOptimization ?? null,
        pictures: await inBase64(result),
      };
      const heartbeatMs = job.heartbeat_interval_ms;
      const finished = { id: this.id, job: this.job, heartbeatMs, videoFile, completion };
      await pendingUploads.keep(finished);
      return finished;
    } catch (thrown) {
      this.#failure = thrown;
      return null;
    } finally {
      onLease(null);
    }
  }

  /** Uploads the video and completes the job. {@link end} reports a failure. */
  async deliver(finished: FinishedJob): Promise<void> {
    const { client, onEvent } = this.#dependencies;
    const { completion, videoFile } = finished;
    this.#checkResults = {
      safety: completion.safety.status,
      prompt: completion.prompt_optimization?.status ?? null,
    };
    onEvent({ type: 'uploading', job: this.job, bytes: completion.bytes });
    const grace = new AbortController();
    const end = () => setTimeout(() => grace.abort(), uploadGraceMs);
    if (this.#stop.aborted) end();
    else this.#stop.addEventListener('abort', end, { once: true });
    const signal = AbortSignal.any([this.#lost.signal, grace.signal]);
    const target = { id: this.id, leaseToken: this.#token, sha256: completion.sha256 };
    try {
      const file = await readVideo(videoFile);
      for (let sent = 1; ; sent++) {
        try {
          await uploadVideo(client, target, file, signal);
          const attempts = Number.POSITIVE_INFINITY;
          await client.complete(this.id, completion, { signal, attempts });
          return;
        } catch (thrown) {
          // The received video is damaged or incomplete: send the whole video again.
          const again = thrown instanceof ApiError && resendable.includes(thrown.code);
          if (!again || sent === 2) throw thrown;
        }
      }
    } catch (thrown) {
      this.#failure = thrown;
    } finally {
      this.#stop.removeEventListener('abort', end);
    }
  }

  /**
   * Ends the heartbeats, reports to the relay how it ended, and removes what was kept.
   *
   * @throws ApiError when the relay does not take this worker any more
   */
  async end(): Promise<Ended> {
    const { client, pendingUploads, onEvent } = this.#dependencies;
    const failure = this.#failure;
    const lost = this.#lost.signal.aborted || isLeaseLost(failure);
    const stopped = this.#stop.aborted && !lost;
    this.#over.abort();
    let outcome: ServedJob['outcome'] = 'completed';
    let error: KinoraError | null = null;
    if (failure !== null && lost) outcome = 'lost';
    else if (failure !== null && stopped) {
      outcome = 'released';
      // Its lease ends by itself where the server is not reached.
      await client.release(this.id, this.#token, { attempts: 2, timeoutMs: 5000 }).catch(() => {});
    } else if (failure !== null) {
      outcome = 'failed';
      error = inWords(failure);
      const report = { lease_token: this.#token, ...describeFailure(failure) };
      await client.fail(this.id, report).catch((thrown: unknown) => {
        // Without a report the lease runs out. A lost lease also explains why the image was gone.
        if (!isLeaseLost(thrown)) return;
        outcome = 'lost';
        error = null;
      });
    }
    const videoFile = servedVideo(this.id);
    // The job has ended either way; what cannot be removed only takes space.
    await pendingUploads
      .drop(this.id, videoFile)
      .catch(() => removeVideo(videoFile).catch(() => {}));
    // The same is true of what the run has stored.
    await removeRun(servedRun(this.id)).catch(() => {});
    const endedAt = Date.now();
    const { id, attempt, startedAt } = this.job;
    const seconds = (endedAt - startedAt) / 1000;
    const record = error?.toRecord() ?? null;
    const served = { id, attempt, outcome, error: record, ...this.#checkResults, seconds, endedAt };
    onEvent({ type: 'ended', job: served });
    const refusal = this.#refused ?? (isUnauthorized(failure) ? failure : null);
    if (refusal) throw refusal;
    return { served, error };
  }

  #take(event: ProgressEvent): void {
    this.#progress = advanceProgress(this.#progress, event);
    if (event.type === 'preview') this.#pictures.offer(event);
  }

  async #heartbeat(): Promise<Omit<Heartbeat, 'lease_token'>> {
    const { phase, step, steps, clip, clips, secondsRemaining } = this.#progress;
    // A heartbeat without a picture is as good.
    const preview = await this.#pictures.take().catch(() => null);
    return {
      phase,
      step,
      steps,
      clip,
      clips,
      seconds_remaining: secondsRemaining,
      ...(preview !== null && { preview }),
    };
  }
}

/** The pictures for links to the video; a frame of a flagged one is not among them. */
async function inBase64({ pictures = {}, safety = notChecked }: GenerationResult) {
  const { poster, ...images } = pictures;
  const shown = { ...images, ...(poster && !isFlagged(safety) && { poster }) };
  const encoded = Object.entries(shown).map(async ([name, picture]) => {
    return [name, base64(new Uint8Array(await picture.arrayBuffer()))] as const;
  });
  return Object.fromEntries(await Promise.all(encoded));
}

/** Whether something is saved of a job that was begun in this browser; what cannot be read starts anew. */
async function isSaved(jobId: string): Promise<boolean> {
  const runs = await listRuns().catch(() => []);
  return runs.some(({ id, bytes }) => id === servedRun(jobId) && bytes > 0);
}
