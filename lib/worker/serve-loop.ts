import { type ErrorRecord, optionsOfFields, Signal, toKinoraError } from '../contract';
import type { WorkerDeclaration, WorkerJob } from '../contract/v3';
import { gpuLock } from '../predictions/locks';
import { Attempt, type AttemptDependencies } from './attempt';
import { Fitness } from './failures';
import type { FinishedJob } from './pending-uploads';
import {
  Backoff,
  disconnectReason,
  isLeaseLost,
  isTransient,
  isUnauthorized,
  retryAfterOf,
  unauthorizedRecord,
} from './transport-error';

/** The declaration of a worker, without its model. */
export type WorkerAbilities = Pick<
  WorkerDeclaration,
  'knows' | 'safety_checker' | 'prompt_optimizer'
>;

/** Dependencies of the loop. */
export interface ServeDependencies extends AttemptDependencies {
  /** What this browser has besides the model; asked before each claim, since it may be installed meanwhile. */
  readonly abilities: () => Promise<WorkerAbilities>;
  /** First wait after a lost connection, in milliseconds. */
  readonly firstDelayMs?: number;
}

/** How often the length of the queue is asked for, in milliseconds. */
const queueMs = 10_000;
/** How long a worker that took itself out pauses before it tries again by itself. */
const restMs = 300_000;

/**
 * Serves jobs until it is stopped or refused. Connected, it asks for a job, and the relay holds the request
 * until there is one. It asks only while the GPU is free, and takes the GPU's lock when a job has come:
 * from the job's inputs, which are waited for shortly, to the last frame. A job that comes at the moment
 * when the studio takes the GPU is handed back. The video is uploaded without the lock.
 */
export class ServeLoop {
  readonly #dependencies: ServeDependencies;
  readonly #declaration: Omit<WorkerDeclaration, keyof WorkerAbilities>;
  readonly #stop = new AbortController();
  /** Something happened that ends a pause. */
  readonly #wake = new Signal();
  /** Ends the wait for the next connection. */
  readonly #reconnect = new Signal();
  readonly #backoff: Backoff;
  readonly #fitness = new Fitness();
  /** Ends a wait for the GPU or for a job, not the work on one. */
  #interruption = new AbortController();
  /** Whether the relay has answered at once since the last change: then the next claim is held. */
  #answered = false;
  #attempt: Attempt | null = null;
  #paused = false;
  /** Why it pauses, and until when, in milliseconds since the epoch. */
  #unfit: { readonly error: ErrorRecord; readonly until: number } | null = null;
  #refusal: ErrorRecord | null = null;

  constructor(dependencies: ServeDependencies) {
    const { options, client, firstDelayMs = 1000 } = dependencies;
    this.#dependencies = dependencies;
    this.#backoff = new Backoff(firstDelayMs, 60_000, client.clock.random);
    this.#declaration = {
      worker_id: crypto.randomUUID().replaceAll('-', ''),
      name: options.name,
      model: options.model,
      precision: options.precision,
      backend: options.device.backend,
      sizes: [...options.sizes],
      loras: true,
      max_duration: 10,
    };
  }

  /** Resolves when it has ended; every end is an event. */
  async run(): Promise<void> {
    const { onEvent, engine, pendingUploads } = this.#dependencies;
    const { signal } = this.#stop;
    onEvent({ type: 'connecting' });
    let error: ErrorRecord | null = null;
    try {
      await pendingUploads.sweep();
      while (!signal.aborted) await this.#session();
    } catch (thrown) {
      if (isUnauthorized(thrown)) this.#refusal = unauthorizedRecord(thrown);
      else if (!signal.aborted) error = toKinoraError(thrown).toRecord();
    } finally {
      engine.close();
    }
    if (this.#refusal) onEvent({ type: 'refused', error: this.#refusal });
    else onEvent({ type: 'disconnected', error });
  }

  /** Finishes the current job and takes no other. */
  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#dependencies.onEvent({ type: 'pausing' });
    this.#interrupt();
  }

  resume(): void {
    this.#paused = false;
    this.#unfit = null;
    this.#fitness.reset();
    this.#dependencies.onEvent({ type: 'resumed' });
    this.#interrupt();
  }

  /** Ends the current job, hands its lease back, and ends {@link run}. */
  stop(): void {
    this.#stop.abort();
    this.#interrupt();
    this.#reconnect.raise();
  }

  /** Claims anew, or connects, at once: a held claim may have lost its connection. */
  retryNow(): void {
    this.#interruption.abort();
    this.#reconnect.raise();
  }

  #interrupt(): void {
    this.#interruption.abort();
    this.#wake.raise();
  }

  /** One connection, until it is lost: then the wait for the next. @throws what ends the whole */
  async #session(): Promise<void> {
    const { client, onEvent } = this.#dependencies;
    const { signal } = this.#stop;
    const ended = new AbortController();
    try {
      const identity = await client.me({ signal, attempts: 1 });
      onEvent({ type: 'connected', identity });
      void this.#followQueue(AbortSignal.any([signal, ended.signal]));
      this.#answered = false;
      await this.#deliverFinished();
      await this.#serve();
    } catch (thrown) {
      if (signal.aborted || isUnauthorized(thrown)) throw thrown;
      const reason = disconnectReason(thrown);
      if (reason === null) throw thrown;
      const waitMs = Math.max(this.#backoff.next(), retryAfterOf(thrown));
      onEvent({ type: 'unreachable', at: Date.now() + waitMs, reason });
      ended.abort();
      this.#reconnect.clear();
      await this.#reconnect.wait(waitMs);
    } finally {
      ended.abort();
    }
  }

  /** Tells how many jobs wait, until the connection is lost. */
  async #followQueue(signal: AbortSignal): Promise<void> {
    const { client, onEvent } = this.#dependencies;
    while (!signal.aborted) {
      try {
        await client.clock.sleep(queueMs, signal);
        onEvent({ type: 'identity', identity: await client.me({ signal, attempts: 1 }) });
      } catch {
        // The next claim or heartbeat says what is wrong.
      }
    }
  }

  async #serve(): Promise<void> {
    for (;;) {
      this.#stop.signal.throwIfAborted();
      if (this.#paused) await this.#rest();
      else await this.#turn();
    }
  }

  /** Paused, until something happens. */
  async #rest(): Promise<void> {
    this.#dependencies.onEvent({ type: 'paused', error: this.#unfit?.error ?? null });
    const { clock } = this.#dependencies.client;
    const until = this.#unfit?.until ?? Number.POSITIVE_INFINITY;
    this.#wake.clear();
    await this.#whileListed(() => this.#wake.wait(until - clock.now()));
    if (this.#paused && clock.now() >= until - 100) this.resume();
  }

  /** Waits for a job, and does it. */
  async #turn(): Promise<void> {
    this.#interruption = new AbortController();
    const interrupted = this.#interruption.signal;
    let job: WorkerJob | null;
    try {
      await this.#untilGpuIsFree(interrupted);
      job = await this.#claim(interrupted);
    } catch (thrown) {
      if (interrupted.aborted) return;
      throw thrown;
    }
    if (job) await this.#work(job);
  }

  async #untilGpuIsFree(interrupted: AbortSignal): Promise<void> {
    const { locks } = navigator;
    const isFree = await locks.request(
      gpuLock,
      { ifAvailable: true },
      async (lock) => lock !== null,
    );
    if (isFree) return;
    this.#dependencies.onEvent({ type: 'gpuBusy' });
    await this.#whileListed(() => locks.request(gpuLock, { signal: interrupted }, async () => {}));
  }

  /** @returns null where there is no job yet */
  async #claim(interrupted: AbortSignal): Promise<WorkerJob | null> {
    const { client, onEvent, abilities } = this.#dependencies;
    // The first answer comes at once, as it says which jobs wait that this worker is not given.
    const wait = this.#answered ? {} : { wait_seconds: 0 };
    const claim = { ...this.#declaration, ...(await abilities()), ...wait };
    const { job, skipped, retry_after_ms } = await client.claim(claim, { signal: interrupted });
    // Only now it works: who am I is answered by a server without its database, too.
    this.#backoff.reset();
    this.#answered = true;
    if (job) return job;
    onEvent({ type: 'nothing', skipped });
    await client.clock.sleep(retry_after_ms, interrupted);
    return null;
  }

  /**
   * Runs a wait during which this worker reports to the relay that it is there, but takes no job.
   *
   * @throws ApiError, TransportError when the relay does not accept the report
   */
  async #whileListed(wait: () => Promise<unknown>): Promise<void> {
    const over = new AbortController();
    const { signal } = over;
    const { client, abilities } = this.#dependencies;
    const report = async () => {
      while (!signal.aborted) {
        const claim = { ...this.#declaration, ...(await abilities()), paused: true };
        const answer = await client.claim(claim, { signal });
        await client.clock.sleep(answer.retry_after_ms, signal);
      }
    };
    const reporting = report();
    // The race below rejects with it, or no caller needs it any more.
    reporting.catch(() => undefined);
    try {
      await Promise.race([wait(), reporting]);
    } finally {
      over.abort();
    }
  }

  /** Takes the GPU for a job and computes it; hands it back where the studio was first. */
  async #work(job: WorkerJob): Promise<void> {
    const { client, onEvent } = this.#dependencies;
    const { id, attempt: number, parameters, lease_token: token } = job;
    const { size, duration } = parameters;
    const loras = job.loras.length;
    const current = { id, attempt: number, size, duration, loras, startedAt: Date.now() };
    this.#answered = false;
    const computed = await navigator.locks.request(
      gpuLock,
      { ifAvailable: true },
      async (lock): Promise<[Attempt, FinishedJob | null] | null> => {
        if (!lock) return null;
        onEvent({ type: 'claimed', job: current, parameters, options: optionsOfFields(job) });
        const lease = { job: current, token, heartbeatMs: job.heartbeat_interval_ms };
        const steps = parameters.num_inference_steps;
        const attempt = new Attempt(this.#dependencies, lease, this.#stop.signal, steps);
        this.#attempt = attempt;
        // Sent again: the claim replaced the state that had it.
        if (this.#paused) onEvent({ type: 'pausing' });
        return [attempt, await attempt.compute(job)];
      },
    );
    if (computed) await this.#finish(...computed);
    else await client.release(id, token).catch(unlessLost);
  }

  async #finish(attempt: Attempt, finished: FinishedJob | null): Promise<void> {
    try {
      if (finished) await attempt.deliver(finished);
      const { served, error } = await attempt.end();
      const judged = error !== null || served.outcome === 'completed';
      const adapters = attempt.job.loras > 0;
      if (judged && this.#fitness.judge(error, adapters) && error) this.#takeOut(error.toRecord());
    } finally {
      this.#attempt = null;
    }
  }

  /** Pauses for a while, since no person may be there to resume; without end if a person has paused it. */
  #takeOut(error: ErrorRecord): void {
    const now = this.#dependencies.client.clock.now();
    this.#unfit = { error, until: this.#paused ? Number.POSITIVE_INFINITY : now + restMs };
    this.#paused = true;
  }

  /** Uploads what an earlier page has left, where its lease still stands. */
  async #deliverFinished(): Promise<void> {
    const { client, pendingUploads } = this.#dependencies;
    for (const finished of await pendingUploads.all()) {
      const { id, job, heartbeatMs, completion, videoFile } = finished;
      const token = completion.lease_token;
      try {
        await client.lease(id, token);
      } catch (thrown) {
        if (isUnauthorized(thrown) || isTransient(thrown)) throw thrown;
        // Anything else says nothing of the lease: the video is kept.
        if (isLeaseLost(thrown)) await pendingUploads.drop(id, videoFile);
        continue;
      }
      this.#attempt = new Attempt(
        this.#dependencies,
        { job, token, heartbeatMs },
        this.#stop.signal,
      );
      await this.#finish(this.#attempt, finished);
    }
  }
}

/** A job that is no longer this worker's need not be handed back. */
function unlessLost(thrown: unknown): void {
  if (!isLeaseLost(thrown)) throw thrown;
}
