import { type ModelManifest, type Size, sizeInPixels } from '../../contract';
import { planClips } from '../clips';
import { latentSizeOf } from '../latents';
import type { ModelCounts } from '../model';
import type { Sampling } from '../profiles';
import type { RunWork } from './work';

/** A run whose work is counted. */
export interface CountedRun {
  readonly manifest: ModelManifest;
  readonly counts: ModelCounts;
  readonly sampling: Sampling;
  readonly size: Size;
  readonly frames: number;
  readonly optimises: boolean;
  /** See {@link RunWork.decodesOnly}. */
  readonly decodesOnly?: boolean;
  readonly checkedFrames: number;
}

/** What the work of a run is counted from, by its model. */
export function workOf(run: CountedRun): RunWork {
  const { manifest, counts, sampling, size, frames, optimises, decodesOnly, checkedFrames } = run;
  const native = manifest.nativeSizes[size];
  const delivered = sizeInPixels(size);
  return {
    clips: planClips(frames, manifest.maxClipFrames, counts.latents.strides.time),
    sampling,
    computation: (ofClip) =>
      counts.computation(
        latentSizeOf(counts.latents, { ...native, frames: ofClip }),
        sampling.decoder,
      ),
    bytes: { text: counts.weightBytes('text'), denoise: counts.weightBytes('denoise') },
    pixels: {
      native: native.width * native.height,
      delivered: delivered.width * delivered.height,
    },
    optimises,
    ...(decodesOnly !== undefined && { decodesOnly }),
    checkedFrames,
  };
}
