import type { Logger } from 'pino';
import type { Submission } from '../../../lib/contract/v3';
import type { Caller } from '../../access/caller';
import type { Config } from '../../config';
import type { Guard } from '../../guard/guard';
import type { NewJob } from '../../jobs/submit';
import type { Store } from '../../store/store';
import { type Files, type Space, uploadRows } from '..';
import { acceptImage, type ImageContext } from './image';
import { findLora, isFound, type LoraFinder } from './loras';
import { type IntakeContext, runIntake } from './run';

/** What {@link createIntake} works with. */
export interface IntakeDependencies {
  readonly config: Config;
  readonly store: Pick<Store, 'db' | 'listen'>;
  readonly guard: Guard;
  readonly files: Pick<Files, 'blobs' | 'links'>;
  readonly jobs: IntakeContext['jobs'];
  readonly space: Pick<Space, 'require'>;
  readonly log: Logger;
}

/** Checks and fetches a submission's files before a worker sees it. */
export function createIntake(dependencies: IntakeDependencies) {
  const { config, store, guard, jobs, space, log } = dependencies;
  const { blobs, links } = dependencies.files;
  const context: ImageContext & LoraFinder = {
    config,
    guard,
    blobs,
    links,
    rows: uploadRows(store),
  };
  return {
    /**
     * Checks image and adapters of a submission. A data URI and an own upload are checked and stored at
     * once; another address is left to `run`.
     *
     * @returns what goes into the job's row
     * @throws ApiError `INVALID_IMAGE` for a data URI or upload that is no usable image,
     * `INVALID_PARAMETER` for an address or adapter path that cannot be read, `STORAGE_DOWN` on a full disk
     */
    async accept(
      jobId: string,
      submission: Submission,
      caller: Caller,
    ): Promise<Pick<NewJob, 'input' | 'image' | 'loras' | 'ready'>> {
      await space.require();
      const { enable_sync_mode: _sync, enable_base64_output: _base64, ...input } = submission;
      // Adapters first: what is refused for them leaves no image behind.
      const loras = await Promise.all(
        input.loras.map((lora, index) => findLora(context, caller.owner, lora, index)),
      );
      const { url, image } = await acceptImage(context, jobId, input.image, caller);
      const ready = image !== null && loras.every(isFound);
      return { input: { ...input, image: url }, image, loras, ready };
    },
    /** Fetches what waits, on this node, until the signal; a failure ends the job with code 1402. */
    run: (signal: AbortSignal): Promise<void> =>
      runIntake({ ...context, store, jobs, log }, signal),
  };
}

export type Intake = ReturnType<typeof createIntake>;
