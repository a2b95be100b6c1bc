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

/** A picture that a video shows, and which frames lead to it and on from it. */
export interface ShownPicture {
  /** Of the video, from 1. */
  readonly frame: number;
  /** Null for the first frame of the video as it is decoded: the end of a loop. */
  readonly image: Frame | null;
  /** Frames over which the video fades into it. */
  readonly fade: number;
  /** The last frame that it may change. */
  readonly until: number;
}

/**
 * Puts pictures into a video. A latent frame that is held for a picture was encoded as a lone one and stands for several
 * frames, so what is decoded of it is near the picture but not it: the frames before fade into the picture, one frame is
 * the picture, and what that differs by from the decoded one fades out in the frames behind it.
 */
export class PictureFades {
  #first: Frame | undefined;
  /** The picture that was shown last, and what was decoded in its place. */
  #last: (ShownPicture & { readonly image: Frame; readonly decoded: Frame }) | null = null;

  /**
   * @param pictures in the order of their frames
   * @param fade frames behind a picture until nothing is left of it
   */
  constructor(
    readonly pictures: readonly ShownPicture[],
    readonly fade: number,
  ) {}

  /** Whether a frame is shown otherwise than it is decoded. @param index of the frame in the video */
  changes(index: number): boolean {
    return this.pictures.some(
      ({ frame, fade, until }) =>
        index > frame - fade && index < frame + this.fade && index <= until,
    );
  }

  /** The next frame, as it is shown. @param index of the frame in the video */
  next(decoded: Frame, index: number): Frame {
    this.#first ??= decoded;
    const last = this.#last;
    let shown = decoded;
    if (last && index <= last.until)
      shown = goingOn(last.image, last.decoded, shown, index - last.frame, this.fade);
    for (const picture of this.pictures) {
      const image = picture.image ?? this.#first;
      const left = picture.frame - index;
      if (left >= 0) shown = shifted(shown, 1 - left / picture.fade, shown, image);
      if (left === 0) this.#last = { ...picture, image, decoded };
    }
    return shown;
  }
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
