/** Largest zoom of a {@link Framing}. */
export const maxZoom = 4;

/**
 * How the start image lies in the frame of the video. It is independent of the sizes of both. A request
 * without one has {@link centred}.
 */
export interface Framing {
  /**
   * 1 fills the frame with the image; 2 shows half of that, in width and height. 0 shows the whole image, with
   * bars beside or above it where it has another shape; values between 0 and 1 lie between the two. At most
   * {@link maxZoom}.
   */
  readonly zoom: number;
  /**
   * Horizontal position: 0 puts the left edge of the image on the left edge of the frame, 1 the right edge on
   * the right edge, as `object-position` of CSS does.
   */
  readonly x: number;
  /** Vertical position: 0 is the top, 1 the bottom. */
  readonly y: number;
  /** What the bars show: the image itself, blurred, or a colour as `#rrggbb`. */
  readonly background: string;
}

/** Fills the frame with the centre of the image. */
export const centred: Framing = { zoom: 1, x: 0.5, y: 0.5, background: 'blur' };

/** The colour behind transparent parts of an image: that of the bars, and white where these are blurred. */
export function backing({ background }: Framing): string {
  return background === 'blur' ? '#ffffff' : background;
}

/** Cells on the long side of the frame that a blurred background is made of. */
export const blurCells = 24;

/**
 * Standard deviation of the blurred background, as a fraction of the long side of the frame: that of the cubic
 * B-spline, √⅓ cells, and of the mean over a cell, √(1/12).
 */
export const blurDeviation = Math.sqrt(1 / 3 + 1 / 12) / blurCells;

/** Width and height in pixels. */
export interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** One axis of a placed image: `source` pixels are scaled to `resized`, of which a part is shown. */
export interface PlacedAxis {
  readonly source: number;
  readonly resized: number;
  /** First scaled pixel that is shown. */
  readonly offset: number;
  /** Number of scaled pixels that are shown. */
  readonly length: number;
  /** Pixel of the frame on which the first one lies. The frame before it and behind the last is background. */
  readonly start: number;
}

/** Position of an image in a frame. */
export interface Placement {
  readonly x: PlacedAxis;
  readonly y: PlacedAxis;
}

/**
 * Places an image in a frame. The engine and the editor of the page both use it. Sizes are rounded as
 * Wan2.2's own preprocessing rounds them.
 *
 * @param image size of the image in pixels
 * @param frame size of the frame in pixels, as the model computes it
 * @param video size of the delivered video, for which the frame is scaled to cover it and cropped in the
 *   centre; a zoom of 0 shows the whole image in this part of the frame
 * @throws TypeError for sizes that are not positive whole numbers
 */
export function placeImage(
  image: PixelSize,
  framing: Framing,
  frame: PixelSize,
  video: PixelSize = frame,
): Placement {
  for (const size of [image.width, image.height, frame.width, frame.height]) {
    if (!Number.isInteger(size) || size < 1) throw new TypeError(`A size of ${size} pixels.`);
  }
  const { zoom } = framing;
  const cover = coverScale(image, frame);
  const delivered = coverScale(frame, video);
  const fit = Math.min(video.width / image.width, video.height / image.height) / delivered;
  const scale = zoom < 1 ? fit + (cover - fit) * zoom : cover * zoom;
  const along = (source: number, frameLength: number, position: number): PlacedAxis => {
    const rounded = Math.max(1, Math.round(source * scale));
    const resized = zoom < 1 ? rounded : Math.max(frameLength, rounded);
    const length = Math.min(resized, frameLength);
    const offset = Math.floor(position * (resized - length));
    const start = Math.floor(position * (frameLength - length));
    return { source, resized, offset, length, start };
  };
  return {
    x: along(image.width, frame.width, framing.x),
    y: along(image.height, frame.height, framing.y),
  };
}

/** Scale by which `size` covers `target`. */
export function coverScale(size: PixelSize, target: PixelSize): number {
  return Math.max(target.width / size.width, target.height / size.height);
}
