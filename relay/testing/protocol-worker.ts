import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { sizeInPixels, sizes, uncheckedSafety } from '../../lib/contract';
import type { Completion, WorkerDeclaration, WorkerJob } from '../../lib/contract/v3';
import { WorkerClient } from '../../lib/worker/client';
import { isLeaseLost } from '../../lib/worker/transport-error';
import { clearSafety } from './jobs';
import { makeVideo } from './video';

/** What a {@link ProtocolWorker} needs. */
export interface ProtocolWorkerOptions {
  readonly origin: string;
  readonly token: string;
  /** How long it pretends to compute, in milliseconds; it sends heartbeats meanwhile. */
  readonly workMs?: number;
  /** Makes what it uploads. Default: a grey video without tags, one for each size and duration. */
  readonly video?: (job: WorkerJob) => Promise<Uint8Array<ArrayBuffer>>;
  /** What it reports in another way. */
  readonly report?: Partial<Completion>;
}

/**
 * A worker that speaks the protocol as a tab does, with the same client, but uploads a grey video
 * instead of computing one: for tests of the relay under load, where a GPU would be in the way.
 */
export class ProtocolWorker {
  readonly declaration: WorkerDeclaration;
  readonly client: WorkerClient;
  /** Ids in the order in which it completed them. */
  readonly completed: string[] = [];
  readonly #workMs: number;
  readonly #video: (job: WorkerJob) => Promise<Uint8Array<ArrayBuffer>>;
  readonly #report: Partial<Completion>;

  constructor({ origin, token, workMs = 0, video = videoOf, report = {} }: ProtocolWorkerOptions) {
    this.client = new WorkerClient({ server: origin, token, firstDelayMs: 50 });
    this.#workMs = workMs;
    this.#video = video;
    this.#report = report;
    this.declaration = {
      worker_id: randomBytes(16).toString('hex'),
      name: 'protocol worker',
      model: 'mini',
      precision: 'f32',
      backend: 'wasm',
      sizes: [...sizes],
      loras: true,
      max_duration: 10,
      knows: ['loop', 'last_image', 'last_image_at', 'upscale', 'smooth'],
      safety_checker: 'ready',
      prompt_optimizer: false,
    };
  }

  /** Works until the signal; a server that is away is waited for. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // Nodes are killed in these tests: it asks again.
      const took = await this.once(signal).catch(() => false);
      if (!took) await delay(40, undefined, { signal }).catch(() => undefined);
    }
  }

  /**
   * Claims and completes one job.
   *
   * @returns false where none was given, or where the lease was lost on the way
   */
  async once(signal: AbortSignal): Promise<boolean> {
    const claim = { ...this.declaration, wait_seconds: 2 };
    const { job } = await this.client.claim(claim, { signal, timeoutMs: 5000 });
    if (!job) return false;
    try {
      await this.#work(job, signal);
      await this.#finish(job, signal);
      this.completed.push(job.id);
      return true;
    } catch (thrown) {
      if (isLeaseLost(thrown)) return false;
      throw thrown;
    }
  }

  async #work(job: WorkerJob, signal: AbortSignal): Promise<void> {
    await this.client.file(job.image.url, { signal });
    const until = performance.now() + this.#workMs;
    while (performance.now() < until) {
      await this.#heartbeat(job, signal);
      await delay(Math.min(job.heartbeat_interval_ms, until - performance.now()), undefined, {
        signal,
      });
    }
  }

  async #heartbeat(job: WorkerJob, signal: AbortSignal): Promise<void> {
    const { num_inference_steps: steps } = job.parameters;
    const progress = { phase: 'denoise', step: 1, steps, clip: 0, clips: 1 } as const;
    const heartbeat = { lease_token: job.lease_token, ...progress, seconds_remaining: null };
    await this.client.heartbeat(job.id, heartbeat, { signal });
  }

  async #finish(job: WorkerJob, signal: AbortSignal): Promise<void> {
    const video = await this.#video(job);
    const sha256 = createHash('sha256').update(video).digest('hex');
    const address = { id: job.id, leaseToken: job.lease_token, sha256 };
    await this.client.output(address, new Blob([video]), signal);
    const completion = {
      lease_token: job.lease_token,
      sha256,
      bytes: video.length,
      seed: job.parameters.seed,
      inference_ms: Math.round(this.#workMs),
      model: this.declaration.model,
      precision: this.declaration.precision,
      encoder: 'none',
      safety: job.enable_safety_checker ? clearSafety : uncheckedSafety('off'),
      prompt_optimization: null,
      ...this.#report,
    };
    await this.client.complete(job.id, completion, { signal });
  }
}

const videos = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();

/** One video per size and duration: they are all alike. */
function videoOf({ parameters }: WorkerJob): Promise<Uint8Array<ArrayBuffer>> {
  const key = `${parameters.size} ${parameters.duration}`;
  const known = videos.get(key);
  if (known !== undefined) return known;
  const { width, height } = sizeInPixels(parameters.size);
  const made = makeVideo({ width, height, frames: 24 * parameters.duration + 1, fps: 24 });
  videos.set(key, made);
  return made;
}
