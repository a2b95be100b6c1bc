import {
  type ErrorCode,
  isNamed,
  KinoraError,
  type LoraFile,
  noiseOfName,
  ofLastImage,
  type SourceFile,
} from '../contract';
import { ApiError, type WorkerImage, type WorkerJob, type WorkerLora } from '../contract/v3';
import { HubClient, type HubOptions, hubByteSource, lorasAt, parseHub } from '../weights/hub';
import type { RetryPolicy } from '../weights/hub/retry';
import { createSourceHash, readChecked, startingOver } from '../weights/store';
import type { WorkerClient } from './client';
import { isTransient, isUnauthorized } from './transport-error';

/** Adapters of the hub that are kept for the next job. */
const keptAdapters = 3;
/** Largest adapter, in bytes. */
const largestAdapter = 2_000_000_000;

/**
 * The GPU is held meanwhile: an unreachable hub is tried for less than twenty seconds. A transfer that makes progress
 * has no limit.
 */
const servingPolicy: RetryPolicy = {
  firstDelayMs: 500,
  longestDelayMs: 4000,
  attempts: 6,
  stallMs: 9000,
  rateLimitDelayMs: 5000,
  rateLimitAttempts: 2,
  longestWaitMs: 5000,
  longestTotalMs: 12_000,
};
/** Remedy of failures that may pass: the download's own texts speak of resuming it. */
const laterRemedy =
  'The server gives the job out again. If it stays, check that this browser reaches where the LoRA is.';

/** Fetches the adapters of served jobs. Those of the hub are kept for a while: jobs repeat them. */
export class Adapters {
  /** By what the hub says of their content; the least recently used first. */
  readonly #kept = new Map<string, Blob>();

  /**
   * @param hub base address
   * @throws KinoraError `ADDRESS_INVALID`
   */
  constructor(
    readonly client: WorkerClient,
    hub: string,
    readonly hubOptions: HubOptions = {},
  ) {
    this.#hub = parseHub(hub);
  }
  readonly #hub: string;

  /**
   * @throws KinoraError `LORA_MISSING` where there is no such adapter, `LORA_INVALID` where it is too
   * large, a `HUB_…` code where it may be had later; each names the adapter as its caller wrote it
   * @throws ApiError when the relay does not take this worker
   */
  async fetch(lora: WorkerLora, signal: AbortSignal): Promise<LoraFile[]> {
    const { path, scale, noise } = lora;
    try {
      if (lora.from === 'hub') return await this.#ofHub(lora, signal);
      const file = await this.client.file(lora.url, { signal });
      // A link may have no name; the relay may have been told one.
      const name = !isNamed(path) && isNamed(file.name) ? file.name : path;
      return [{ name, file, scale, noise }];
    } catch (thrown) {
      signal.throwIfAborted();
      throw naming(path, thrown);
    }
  }

  async #ofHub(
    { path, scale, noise, repository, file }: Extract<WorkerLora, { from: 'hub' }>,
    signal: AbortSignal,
  ): Promise<LoraFile[]> {
    // A client caches its listings; the repository may have changed since the last job.
    const policy = { ...servingPolicy, ...this.hubOptions.policy };
    const client = new HubClient(this.#hub, { ...this.hubOptions, policy });
    const revision = 'main';
    const fetch = (one: string) =>
      startingOver(
        () => this.#fetchFile(client, { repository, path: one, revision }, signal),
        signal,
      );
    if (file !== null) return [{ name: path, file: await fetch(file), scale, noise }];
    const loras: LoraFile[] = [];
    for (const one of await lorasAt(client, { kind: 'repository', repository, revision }, signal)) {
      // Its own name tells which half of a pair it is, and where one half is asked for the other is not.
      const own = one && noiseOfName(one)?.noise;
      if (one && (own ?? noise) === (noise ?? own))
        loras.push({ name: `${repository}/${one}`, file: await fetch(one), scale, noise });
    }
    return loras;
  }

  async #fetchFile(client: HubClient, named: SourceFile, signal: AbortSignal): Promise<Blob> {
    const remote = await client.file(named, signal);
    const kept = this.#kept.get(remote.identity);
    if (kept) {
      this.#keep(remote.identity, kept);
      return kept;
    }
    if (remote.size > largestAdapter) {
      throw new KinoraError('LORA_INVALID', 'it is larger than 2 GB.');
    }
    const parts: Blob[] = [];
    const fetching = { source: hubByteSource(client, remote), hash: await createSourceHash() };
    await readChecked(
      { ...fetching, signal },
      // The browser may move the bytes of a blob to its disk.
      { write: (_, bytes) => parts.push(new Blob([new Uint8Array(bytes)])) },
    );
    const blob = new Blob(parts);
    this.#keep(remote.identity, blob);
    return blob;
  }

  #keep(identity: string, blob: Blob): void {
    this.#kept.delete(identity);
    this.#kept.set(identity, blob);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > keptAdapters && oldest !== undefined) this.#kept.delete(oldest);
  }
}

const passing: readonly ErrorCode[] = [
  'HUB_UNREACHABLE',
  'HUB_BUSY',
  'HUB_ANSWER_INVALID',
  'DOWNLOAD_CORRUPT',
];

/** The failure as a sentence that names the adapter. */
function naming(path: string, thrown: unknown): unknown {
  // The relay's own sentences name it already.
  const because = (reason: string) =>
    reason.includes(path) ? reason : `The LoRA ${path} cannot be had: ${reason}`;
  if (thrown instanceof ApiError) {
    if (thrown.code === 'UNAUTHORIZED' || thrown.code === 'FORBIDDEN') return thrown;
    if (isTransient(thrown)) return later('HUB_UNREACHABLE', because(thrown.message), thrown);
    return new KinoraError('LORA_MISSING', because(thrown.message), { cause: thrown });
  }
  if (thrown instanceof KinoraError) {
    const { code, message } = thrown;
    if (passing.includes(code)) return later(code, because(message), thrown);
    const missing = ['ADDRESS_INVALID', 'HUB_NOT_FOUND', 'HUB_DENIED'].includes(code);
    // No other file is read here: the model of this worker has no part in it.
    const lora = /^(MODEL|TENSOR)_/.test(code) ? 'LORA_INVALID' : code;
    return new KinoraError(missing ? 'LORA_MISSING' : lora, because(message), { cause: thrown });
  }
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return later('HUB_UNREACHABLE', because(`${reason}.`), thrown);
}

function later(code: ErrorCode, sentence: string, cause: unknown): KinoraError {
  return new KinoraError(code, sentence, { cause, remedy: laterRemedy });
}

/** Files of a job, besides its parameters. */
export interface Inputs {
  readonly image: Blob;
  readonly lastImage: Blob | undefined;
  readonly loras: readonly LoraFile[];
}

/**
 * Fetches images and adapters, all at once. The caller holds the GPU, so that a claimed job never has to
 * wait behind the studio; therefore nothing is waited for longer than about twenty seconds without a
 * byte. A large adapter that still comes may take longer.
 *
 * @throws KinoraError `IMAGE_UNREACHABLE`, and what {@link Adapters.fetch} throws
 * @throws TransportError where the relay does not answer; the signal's reason
 */
export async function fetchInputs(
  client: WorkerClient,
  adapters: Adapters,
  job: Pick<WorkerJob, 'image' | 'last_image' | 'loras'>,
  signal: AbortSignal,
): Promise<Inputs> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  try {
    const fetchImage = ({ url }: WorkerImage) =>
      client.file(url, { signal: either }).catch(asImageError);
    const [image, lastImage, loras] = await Promise.all([
      fetchImage(job.image),
      job.last_image && ofLastImage(fetchImage(job.last_image)),
      Promise.all(job.loras.map((lora) => adapters.fetch(lora, either))),
    ]);
    return { image, lastImage, loras: loras.flat() };
  } finally {
    // If one cannot be had, the others are of no use.
    over.abort();
  }
}

/** Looks at a failure of an image's own request. */
function asImageError(thrown: unknown): never {
  if (thrown instanceof ApiError && !isTransient(thrown) && !isUnauthorized(thrown)) {
    throw new KinoraError('IMAGE_UNREACHABLE', `The image cannot be had: ${thrown.message}`);
  }
  throw thrown;
}
