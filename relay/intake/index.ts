import type { Logger } from 'pino';
import type { Config } from '../config';
import { type SignedFiles, uploadRows } from '../files';
import type { Guard, Intake } from '../relay';
import type { Store } from '../store/store';
import { acceptImage, type ImageContext } from './image';
import { findLora, isFound, type LoraFinder } from './loras';
import { type IntakeContext, runIntake } from './run';

/** What {@link createIntake} works with. */
export interface IntakeParts {
  readonly config: Config;
  readonly store: Pick<Store, 'db' | 'listen'>;
  readonly guard: Guard;
  readonly files: Pick<SignedFiles, 'blobs' | 'links'>;
  readonly jobs: IntakeContext['jobs'];
  readonly log: Logger;
}

/** Checks and fetches a submission's files before a worker sees it. */
export function createIntake(parts: IntakeParts): Intake {
  const { config, store, guard, jobs, log } = parts;
  const { blobs, links } = parts.files;
  const context: ImageContext & LoraFinder = {
    config,
    guard,
    blobs,
    links,
    rows: uploadRows(store),
  };
  return {
    async accept(jobId, submission, caller) {
      const { enable_sync_mode: _sync, enable_base64_output: _base64, ...input } = submission;
      // Adapters first: what is refused for them leaves no image behind.
      const loras = await Promise.all(
        input.loras.map((lora, index) => findLora(context, caller.owner, lora, index)),
      );
      const { url, image } = await acceptImage(context, jobId, input.image, caller);
      const ready = image !== null && loras.every(isFound);
      return { input: { ...input, image: url }, image, loras, ready };
    },
    run: (signal) => runIntake({ ...context, store, jobs, log }, signal),
  };
}
