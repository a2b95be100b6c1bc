import {
  type CheckpointInfo,
  type Continuation,
  KinoraError,
  type ProgressEvent,
  type PromptOptimization,
  sha256,
} from '../../contract';
import { joinOf } from '../clips';
import type { Frame } from '../latents';
import type { VideoModel } from '../model';
import type { ImageToVideoRequest, VideoEnd } from '../request';
import {
  decodeFile,
  encodeFile,
  type RunIdentity,
  UnusableFile,
  type UnusableReason,
} from './format';
import { RunCheckpoints } from './run-checkpoints';
import { type RunStorage, readSavedRun, removeSaved } from './saved-run';
import { CheckpointWriter } from './writer';

export { RunCheckpoints } from './run-checkpoints';
export { type RunStorage, removeSaved, savedPromptOptimization } from './saved-run';

type EndValues = Pick<VideoEnd, 'colours'>;

/** What the end of a video fits: the same model, frames of the same size. */
function identityOfEnd(model: VideoModel, { width, height }: Omit<Frame, 'data'>): RunIdentity {
  return { model: model.manifest.id, request: `last latents of ${width}×${height}` };
}

/**
 * The end of a finished video as a file.
 *
 * @param size pixels of a frame
 */
export function encodeEnd(
  { latents, colours }: VideoEnd,
  model: VideoModel,
  size: Omit<Frame, 'data'>,
): Promise<Blob> {
  const run = identityOfEnd(model, size);
  return encodeFile<EndValues>({ run, values: { colours }, tensors: latents });
}

/**
 * Reads the end of an earlier video.
 *
 * @throws KinoraError `CHECKPOINT_INVALID`
 */
export async function readEnd(
  file: Blob,
  model: VideoModel,
  size: Omit<Frame, 'data'>,
): Promise<VideoEnd> {
  try {
    const { values, tensors } = await decodeFile<EndValues>(file, identityOfEnd(model, size));
    return { ...values, latents: tensors };
  } catch (thrown) {
    if (!(thrown instanceof UnusableFile)) throw thrown;
    const sentence =
      'What is kept of the end of the video that this one continues is damaged, or of another model or version of Kinora.';
    const remedy = 'Make that video longer again, from its last picture.';
    throw new KinoraError('CHECKPOINT_INVALID', sentence, { remedy });
  }
}

/** How a run is saved, and how it starts from what was saved. */
export interface RunSaving {
  readonly storage: RunStorage;
  /** A new run when absent: what was saved is discarded. */
  readonly continuation?: Continuation | undefined;
  /** The saved state, as far as that is known. */
  readonly checkpoint?: CheckpointInfo | undefined;
  /** The outcome of the prompt's optimisation; kept with the run. */
  readonly promptOptimization?: PromptOptimization | null;
  /** Shortest time between two checkpoints, in seconds; 20 when absent. */
  readonly intervalSeconds?: number | undefined;
}

const reasons: Readonly<Record<UnusableReason | 'missing', string>> = {
  damaged: 'The saved state of this generation is damaged.',
  version: 'The saved state of this generation is of another version of Kinora.',
  model: 'The saved state of this generation is of another model or other adapters.',
  request: 'The saved state of this generation is of other settings or another image.',
  missing: 'The saved state of this generation is not in this browser any more.',
};

/**
 * Opens what is saved of a run, for what its request says of it.
 *
 * @param clips how many the run has
 * @throws KinoraError where nothing can be decoded: `CHECKPOINT_MISMATCH` if what is saved is whole, but of another
 *   model or request, else `CHECKPOINT_INVALID`
 */
export async function openCheckpoints(
  { storage, continuation, checkpoint, promptOptimization = null, intervalSeconds }: RunSaving,
  model: VideoModel,
  request: ImageToVideoRequest,
  clips: number,
  report: (event: ProgressEvent) => void,
): Promise<RunCheckpoints> {
  const identity = await identityOf(model, request);
  const none = { saved: null, problem: null };
  const { saved, problem } = continuation ? await readSavedRun(storage, identity, clips) : none;
  const sentence = reasons[problem ?? 'missing'];
  const decodes = continuation === 'finish' || continuation === 'refine';
  const state = continuation === 'refine' ? null : (saved?.state ?? null);
  const isUsable = saved !== null && (saved.clips.length > 0 || state !== null);
  if (decodes && !isUsable) {
    const isWhole = problem === 'model' || problem === 'request';
    throw new KinoraError(isWhole ? 'CHECKPOINT_MISMATCH' : 'CHECKPOINT_INVALID', sentence);
  }
  // Without a problem its texts may be there, and save some time.
  const used = isUsable || problem === null ? saved : null;
  if (!used) await removeSaved(storage, clips, true);
  const finished = used?.clips.length ?? 0;
  const { steps } = request;
  let at: CheckpointInfo | null = null;
  if (finished > 0 && !decodes) at = { clip: finished - 1, clips, step: steps, steps };
  if (state) at = { clip: finished, clips, step: state.denoise.step, steps };
  if (continuation && (!used || (checkpoint && isBefore(at, checkpoint)))) {
    const next = at ? 'It goes on from what is left of it.' : 'It starts anew.';
    report({ type: 'checkpoint-problem', problem: 'restarted', sentence: `${sentence} ${next}` });
  }
  if (at) report({ type: 'checkpoint', checkpoint: at });
  const resumes = used ? used.resumes + (decodes ? 0 : 1) : 0;
  const writer = new CheckpointWriter({
    storage,
    run: identity,
    clips,
    intervalSeconds,
    resumedFrom: state?.file,
    report,
  });
  if (continuation !== 'refine') writer.saveRun({ resumes, promptOptimization });
  const start = used && { ...used, state };
  return new RunCheckpoints({ saved: start, decodes, resumes, writer, clips, steps });
}

/** Whether the run that is saved at `at` is behind `other`. */
function isBefore(at: CheckpointInfo | null, other: CheckpointInfo): boolean {
  return !at || at.clip < other.clip || (at.clip === other.clip && at.step < other.step);
}

/** Fingerprints of all that the latents depend on. */
async function identityOf(model: VideoModel, request: ImageToVideoRequest): Promise<RunIdentity> {
  const { image, lastImage, before, decoder: _, ...rest } = request;
  const { width, height } = image;
  const hashOf = (values: Float32Array) => sha256(values as Float32Array<ArrayBuffer>);
  const pixelsOf = ({ data }: Frame) => hashOf(data);
  const pixels = await pixelsOf(image);
  const lastPixels = lastImage && (await pixelsOf(lastImage));
  const entries = Object.entries({
    ...rest,
    width,
    height,
    pixels,
    ...(lastPixels && { lastPixels }),
    ...(before && { before: [await Promise.all(before.latents.map(hashOf)), before.colours] }),
    // How many latent frames its clips have.
    join: joinOf(model.manifest, before?.latents.length),
  });
  const values = entries.sort(([a], [b]) => (a < b ? -1 : 1));
  const hash = (text: string) => sha256(new TextEncoder().encode(text));
  return {
    model: await hash(model.fingerprint),
    request: await hash(JSON.stringify(values)),
  };
}
