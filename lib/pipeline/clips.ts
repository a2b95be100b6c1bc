import { latentFrames } from './latents';

/** One clip of a video: what a single run of the model makes. */
export interface Clip {
  /** Frames that the model makes. */
  readonly frames: number;
  /** True for every clip but the first: its first frame repeats the last one of the clip before. */
  readonly dropFirst: boolean;
}

/**
 * Splits a video into clips that the model can make in one go. The first is as long as allowed; each
 * further one starts from the last decoded frame and adds its frames but the first.
 *
 * @param frames frames of the video, one more than a multiple of the stride
 * @param maxClipFrames longest clip of the model, one more than a multiple of the stride, more than one
 * @param stride frames per latent frame
 * @throws RangeError for another number of frames
 */
export function planClips(frames: number, maxClipFrames: number, stride: number): Clip[] {
  latentFrames(frames, stride);
  if (latentFrames(maxClipFrames, stride) < 2) {
    throw new RangeError('A clip of one frame cannot continue a video.');
  }
  const clips: Clip[] = [{ frames: Math.min(frames, maxClipFrames), dropFirst: false }];
  let left = frames - maxClipFrames;
  while (left > 0) {
    // Both terms are multiples of the stride, so that the clip is one more than such a multiple.
    const added = Math.min(left, maxClipFrames - 1);
    clips.push({ frames: added + 1, dropFirst: true });
    left -= added;
  }
  return clips;
}
