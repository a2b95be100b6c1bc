import { type ErrorRecord, toKinoraError } from '../contract/errors';
import { Signal } from '../contract/signal';
import type { DoorbellServerMessage, WorkerDeclaration } from '../contract/v3/worker';
import { withGpu } from '../predictions/locks';
import { Attempt, type AttemptDoors } from './attempt';
import { Backoff } from './backoff';
import { isLeaseLost, isRefusal } from './client';
import { Doorbell, type DoorbellOptions } from './doorbell';
import { Drained, reasonOf, refusalOf } from './ends';
import { Fitness } from './failures';
import { askedWaitMs, isPassing } from './passing';
import type { FinishedJob } from './shelf';

/** What the loop works with. */
export interface ServeDoors extends AttemptDoors {
  /** For tests; a real WebSocket when absent. */
  readonly connect?: NonNullable<DoorbellOptions['connect']>;
  /** First wait after a lost connection, in milliseconds. */
  readonly firstDelayMs?: number;
}

/** Wait before the relay is asked again, where it did not say. */
const retryMs = 5000;
/** How long a worker that took itself out rests before it tries again: nobody may be there to say so. */
const restMs = 300_000;

/** A job after its time on the GPU. */
interface ComputedJob {
  readonly attempt: Attempt;
  /** Null where it failed. */
  readonly finished: FinishedJob | null;
}

/**
 * Serves jobs until it is stopped or refused. Connected, it asks for a job when the doorbell rings and
 * now and then without it; it has the GPU's lock while it asks, so that it never takes a job that would
 * have to wait for the studio, and keeps it only where there is one: from the job's inputs, which are
 * waited for shortly, to the last frame. The video is uploaded without it.
 */
export class ServeLoop {
  readonly #doors: ServeDoors;
  readonly #declaration: WorkerDeclaration;
  readonly #stop = new AbortController();
  readonly #wake = new Signal();
  /** Ends the wait for the next connection; rings of the doorbell do not. */
  readonly #reconnect = new Signal();
  readonly #backoff: Backoff;
  readonly #fitness = new Fitness();
  /** Ends a wait for the GPU, not the work on it. */
  #gpuWait = new AbortController();
  #doorbell: Doorbell | null = null;
  #attempt: Attempt | null = null;
  #paused = false;
  /** Where it took itself out: why, and until when, milliseconds since the epoch. */
  #unfit: { readonly error: ErrorRecord; readonly until: number } | null = null;
  #drained = false;
  #refusal: ErrorRecord | null = null;

  constructor(doors: ServeDoors) {
    const { options, client, firstDelayMs = 1000 } = doors;
    this.#doors = doors;
    this.#backoff = new Backoff(firstDelayMs, 60_000, client.clock.random);
    this.#declaration = {
      worker_id: crypto.randomUUID().replaceAll('-', ''),
      name: options.name,
      model: options.model,
      precision: options.precision,
      backend: options.backend,
      sizes: [...options.sizes],
      loras: true,
      max_duration: 10,
    };
  }

  /** Resolves when it has ended; every end is an event. */
  async run(): Promise<void> {
    const { onEvent, engine, shelf } = this.#doors;
    const { signal } = this.#stop;
    onEvent({ type: 'connecting' });
    let error: ErrorRecord | null = null;
    try {
      await shelf.sweep();
      while (!signal.aborted) await this.#session();
    } catch (thrown) {
      if (isRefusal(thrown)) this.#refusal = refusalOf('The server does not take this token.');
      else if (!signal.aborted) error = toKinoraError(thrown).toRecord();
    } finally {
      this.#doorbell?.close();
      engine.close();
    }
    if (this.#refusal) onEvent({ type: 'refused', error: this.#refusal });
    else onEvent({ type: 'disconnected', error });
  }

  /** Finishes the current job and takes no other. */
  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#doors.onEvent({ type: 'pausing' });
    this.#interrupt();
  }

  resume(): void {
    this.#paused = false;
    this.#unfit = null;
    this.#fitness.reset();
    this.#doors.onEvent({ type: 'resumed' });
    this.#interrupt();
  }

  /** Ends the current job, hands its lease back, and ends {@link run}. */
  stop(): void {
    this.#stop.abort();
    this.#interrupt();
    this.#reconnect.raise();
  }

  /** Does now what waits for its time. */
  retryNow(): void {
    this.#wake.raise();
    this.#reconnect.raise();
  }

  #interrupt(): void {
    this.#gpuWait.abort();
    this.#wake.raise();
  }

  /** One connection, until it is lost: then the wait for the next. @throws what ends the whole */
  async #session(): Promise<void> {
    const { client, onEvent } = this.#doors;
    const { signal } = this.#stop;
    try {
      const identity = await client.me({ signal, attempts: 1 });
      this.#drained = false;
      onEvent({ type: 'connected', identity, doorbell: false });
      this.#openDoorbell();
      await this.#deliverFinished();
      await this.#serve();
    } catch (thrown) {
      if (signal.aborted || isRefusal(thrown)) throw thrown;
      const reason = reasonOf(thrown);
      if (reason === null) throw thrown;
      this.#doorbell?.close();
      const waitMs = Math.max(this.#backoff.next(), askedWaitMs(thrown));
      onEvent({ type: 'unreachable', at: Date.now() + waitMs, reason });
      this.#reconnect.clear();
      await this.#reconnect.wait(waitMs);
    }
  }

  async #serve(): Promise<void> {
    let waitMs = 0;
    for (;;) {
      await this.#wake.wait(this.#paused || this.#drained ? 0 : waitMs);
      this.#stop.signal.throwIfAborted();
      if (this.#drained) throw new Drained();
      if (this.#paused) {
        await this.#rest();
        waitMs = 0;
      } else {
        waitMs = await this.#turn();
      }
    }
  }

  /** Paused, until something happens. */
  async #rest(): Promise<void> {
    this.#doors.onEvent({ type: 'paused', error: this.#unfit?.error ?? null });
    this.#doorbell?.say({ type: 'state', state: 'paused' });
    const { clock } = this.#doors.client;
    const until = this.#unfit?.until ?? Number.POSITIVE_INFINITY;
    await this.#wake.wait(until - clock.now());
    if (this.#paused && clock.now() >= until - 100) this.resume();
    if (!this.#paused) this.#doorbell?.say({ type: 'state', state: 'idle' });
  }

  /** Asks for a job, and does it. @returns how long to wait before the next turn, in milliseconds */
  async #turn(): Promise<number> {
    const { onEvent } = this.#doors;
    this.#gpuWait = new AbortController();
    const wait = this.#gpuWait.signal;
    let begun = false;
    const claim = async () => {
      begun = true;
      return this.#claim();
    };
    let claimed: number | ComputedJob;
    try {
      claimed = await withGpu(claim, () => onEvent({ type: 'gpuBusy' }), wait);
    } catch (thrown) {
      if (!begun && wait.aborted) return 0;
      throw thrown;
    }
    if (typeof claimed === 'number') return claimed;
    await this.#finish(claimed.attempt, claimed.finished);
    return 0;
  }

  /** With the GPU: takes a job and computes it. @returns the wait in milliseconds where there is none */
  async #claim(): Promise<number | ComputedJob> {
    const { client, onEvent } = this.#doors;
    // Not ended by a stop: the answer may have a job in it, which is handed back then.
    const { job, skipped, retry_after_ms } = await client.claim(this.#declaration);
    // Only now it works: who am I is answered by a server without its database, too.
    this.#backoff.reset();
    if (!job) {
      onEvent({ type: 'nothing', skipped });
      return retry_after_ms > 0 ? retry_after_ms : retryMs;
    }
    const { id, attempt: number, parameters } = job;
    const { size, duration } = parameters;
    const loras = job.loras.length;
    const current = { id, attempt: number, size, duration, loras, startedAt: Date.now() };
    onEvent({ type: 'claimed', job: current, parameters });
    this.#doorbell?.say({ type: 'state', state: 'busy' });
    const lease = { job: current, token: job.lease_token, beatEveryMs: job.beat_every_ms };
    const steps = parameters.num_inference_steps;
    const attempt = new Attempt(this.#doors, lease, this.#stop.signal, steps);
    this.#attempt = attempt;
    // Told again: the state of before the claim would hide it.
    if (this.#paused) onEvent({ type: 'pausing' });
    return { attempt, finished: await attempt.compute(job) };
  }

  async #finish(attempt: Attempt, finished: FinishedJob | null): Promise<void> {
    try {
      if (finished) await attempt.deliver(finished);
      const { served, error } = await attempt.end();
      const judged = error !== null || served.outcome === 'completed';
      if (judged && this.#fitness.judge(error) && error) this.#takeOut(error.toRecord());
    } finally {
      this.#attempt = null;
    }
    this.#doorbell?.say({ type: 'state', state: this.#paused ? 'paused' : 'idle' });
  }

  /** Pauses for a while, as nobody may be there to resume; until then where somebody has paused it. */
  #takeOut(error: ErrorRecord): void {
    const now = this.#doors.client.clock.now();
    this.#unfit = { error, until: this.#paused ? Number.POSITIVE_INFINITY : now + restMs };
    this.#paused = true;
  }

  /** Uploads what an earlier page has left, where its lease still stands. */
  async #deliverFinished(): Promise<void> {
    const { client, shelf } = this.#doors;
    for (const finished of await shelf.all()) {
      const { id, job, beatEveryMs, completion, videoFile } = finished;
      const token = completion.lease_token;
      try {
        await client.lease(id, token);
      } catch (thrown) {
        if (isRefusal(thrown) || isPassing(thrown)) throw thrown;
        // Anything else says nothing of the lease: the video is kept.
        if (isLeaseLost(thrown)) await shelf.drop(id, videoFile);
        continue;
      }
      this.#attempt = new Attempt(this.#doors, { job, token, beatEveryMs }, this.#stop.signal);
      await this.#finish(this.#attempt, finished);
    }
  }

  #openDoorbell(): void {
    const { options, onEvent, connect, client } = this.#doors;
    this.#doorbell?.close();
    this.#doorbell = new Doorbell({
      server: options.server,
      clock: client.clock,
      hello: () => ({
        type: 'hello',
        token: options.token,
        declaration: this.#declaration,
        state: this.#attempt ? 'busy' : this.#paused ? 'paused' : 'idle',
      }),
      onMessage: (message) => this.#take(message),
      onOpen: (open) => onEvent({ type: 'doorbell', open }),
      ...(connect && { connect }),
    });
  }

  #take(message: DoorbellServerMessage): void {
    switch (message.type) {
      case 'welcome':
      case 'job_available':
        // After a pause in the connection, a ring may have been missed.
        this.#wake.raise();
        break;
      case 'cancel':
        if (this.#attempt?.id === message.id) this.#attempt.lose();
        break;
      case 'drain':
        this.#drained = true;
        this.#doors.onEvent({ type: 'draining' });
        this.#interrupt();
        break;
      case 'refused':
        this.#refusal = refusalOf(message.message);
        this.stop();
    }
  }
}
