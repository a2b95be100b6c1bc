import type { LoraFile } from '../contract/engine';
import { KinoraError } from '../contract/errors';
import { ApiError } from '../contract/v3/errors';
import type { WorkerJob } from '../contract/v3/worker';
import type { Adapters } from './adapters';
import { isRefusal, type WorkerClient } from './client';
import { isPassing } from './passing';

/** What a job works on, besides its parameters. */
export interface Inputs {
  readonly image: Blob;
  readonly loras: readonly LoraFile[];
}

/**
 * Fetches image and adapters, all at once. Whoever calls holds the GPU, so that a claimed job never has to
 * wait behind the studio; therefore nothing is waited for longer than about twenty seconds without a
 * byte. A large adapter that still comes may take longer.
 *
 * @throws KinoraError `IMAGE_UNREACHABLE`, and what {@link Adapters.fetch} throws
 * @throws Unreachable where the relay does not answer; the signal's reason
 */
export async function fetchInputs(
  client: WorkerClient,
  adapters: Adapters,
  job: Pick<WorkerJob, 'image' | 'loras'>,
  signal: AbortSignal,
): Promise<Inputs> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  try {
    const [image, loras] = await Promise.all([
      client.file(job.image.url, { signal: either }).catch(unlessRefused),
      Promise.all(job.loras.map((lora) => adapters.fetch(lora, either))),
    ]);
    return { image, loras };
  } finally {
    // Where one cannot be had, the others are of no use.
    over.abort();
  }
}

/** Looks at a failure of the image's own request. */
function unlessRefused(thrown: unknown): never {
  if (thrown instanceof ApiError && !isPassing(thrown) && !isRefusal(thrown)) {
    throw new KinoraError('IMAGE_UNREACHABLE', `The image cannot be had: ${thrown.message}`);
  }
  throw thrown;
}
