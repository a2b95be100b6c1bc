import type { Frame } from './latents';

/** A picture that a clip shows at one of its frames. */
export interface KeyFrame {
  /** Of the clip, from 0. */
  readonly frame: number;
  readonly image: Frame;
}

/** The latent frame that shows a frame: 0 for the first, then one for each `stride` frames. */
export function latentOf(frame: number, stride: number): number {
  return Math.ceil(frame / stride);
}

/**
 * A frame of a clip that ends in a given picture. A held last latent frame was encoded as a lone picture and stands for
 * several frames, so what is decoded of it is near the picture but not it: the last frames fade into the picture, and
 * the last one is the picture.
 *
 * @param index of the frame, from 0
 * @param frames of the clip
 * @param fade frames that the change is spread over
 */
export function fadeInto(
  end: Frame,
  frame: Frame,
  index: number,
  frames: number,
  fade: number,
): Frame {
  return shifted(frame, 1 - (frames - 1 - index) / fade, frame, end);
}

/**
 * A frame of a clip that goes on from another one's last frame. The clip was made from an encoding of that frame, so that
 * its own first frame differs a little from it in detail and colour; the difference is taken over and fades out.
 *
 * @param last frame of the clip before, as it was shown
 * @param first frame of this clip, which shows the same and is left out
 * @param index of the frame, from 0
 * @param fade frames until the difference is gone
 */
export function goingOn(
  last: Frame,
  first: Frame,
  frame: Frame,
  index: number,
  fade: number,
): Frame {
  return shifted(frame, 1 - index / fade, first, last);
}

/** A frame with a share of what leads from one frame to another; as it is where the share is not over 0. */
function shifted(frame: Frame, share: number, from: Frame, to: Frame): Frame {
  if (share <= 0) return frame;
  const data = frame.data.map(
    (value, i) => value + share * ((to.data[i] as number) - (from.data[i] as number)),
  );
  return { ...frame, data };
}
