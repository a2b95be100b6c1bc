/** One clip of a video: what a single run of the model makes. */
export interface Clip {
  /** Frames that the model makes, 4n+1. */
  readonly frames: number;
  /** True for every clip but the first: its first frame repeats the last one of the clip before. */
  readonly dropFirst: boolean;
}

/**
 * Splits a video into clips that the model can make in one go. The first is as long as allowed; each
 * further one starts from the last decoded frame and adds its frames but the first.
 *
 * @param frames frames of the video, 4n+1 (24·duration + 1 always is)
 * @param maxClipFrames longest clip of the model, 4n+1 and at least 5
 * @throws RangeError for another number of frames
 */
export function planClips(frames: number, maxClipFrames: number): Clip[] {
  checkFrames(frames);
  checkFrames(maxClipFrames);
  if (maxClipFrames < 5) throw new RangeError('A clip of one frame cannot continue a video.');
  const clips: Clip[] = [{ frames: Math.min(frames, maxClipFrames), dropFirst: false }];
  let left = frames - maxClipFrames;
  while (left > 0) {
    // Both terms are multiples of 4, so that the clip is 4n+1 again.
    const added = Math.min(left, maxClipFrames - 1);
    clips.push({ frames: added + 1, dropFirst: true });
    left -= added;
  }
  return clips;
}

/**
 * Latent frames of a clip: one for its first frame, one for each further `temporalStride` frames.
 *
 * @throws RangeError when the frames do not fit the stride
 */
export function latentFrames(frames: number, temporalStride: number): number {
  if (!Number.isInteger(frames) || frames < 1 || (frames - 1) % temporalStride !== 0) {
    throw new RangeError(`${frames} frames are not a multiple of ${temporalStride} plus 1.`);
  }
  return (frames - 1) / temporalStride + 1;
}

function checkFrames(frames: number): void {
  latentFrames(frames, 4);
}
