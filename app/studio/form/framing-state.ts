import {
  centred,
  coverScale,
  type Framing,
  maxZoom,
  type PixelSize,
  type Placement,
  placeImage,
} from '../../../lib/contract';
import { t } from '../../texts';
import '../../texts/en/form';

/** Pixels that the short side of a start image should have; with fewer the video looks soft. */
export const sharpPixels = 640;

/** What a framing is applied to: the image, the frame of the model, and the delivered video, in pixels. */
export interface FramingSizes {
  readonly image: PixelSize;
  readonly frame: PixelSize;
  readonly video: PixelSize;
}

/** Left, top, width and height of the image, as percentages of the part of the frame that the video shows. */
export interface ShownImage {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Where the video shows the image; parts beyond 0 to 100 % are cropped. */
export function shownImage(placement: Placement, { frame, video }: FramingSizes): ShownImage {
  const scale = coverScale(frame, video);
  const along = ({ resized, offset, start }: Placement['x'], from: number, to: number) => {
    const cropped = (from * scale - to) / 2;
    return {
      position: (100 * ((start - offset) * scale - cropped)) / to,
      length: (100 * resized * scale) / to,
    };
  };
  const x = along(placement.x, frame.width, video.width);
  const y = along(placement.y, frame.height, video.height);
  return { left: x.position, top: y.position, width: x.length, height: y.length };
}

/** Whether the video shows bars beside or above the image. */
export function hasBars({ left, top, width, height }: ShownImage): boolean {
  // Sizes are rounded to pixels of the frame.
  const covers = (from: number, length: number) => from < 0.5 && from + length > 99.5;
  return !covers(left, width) || !covers(top, height);
}

/**
 * Moves the image, as far as it goes.
 *
 * @param dx to the right, as a fraction of the width of the video
 * @param dy down, as a fraction of its height
 */
export function moved(framing: Framing, sizes: FramingSizes, dx: number, dy: number): Framing {
  const { frame, video } = sizes;
  const placement = placeImage(sizes.image, framing, frame, video);
  const scale = coverScale(frame, video);
  const along = (position: number, resized: number, length: number, by: number) => {
    // Where the image is larger than the frame, its edge lies at a negative place.
    const room = length - resized;
    return room === 0 ? position : clamp((position * room + by) / room, 0, 1);
  };
  return {
    ...framing,
    x: along(framing.x, placement.x.resized, frame.width, (dx * video.width) / scale),
    y: along(framing.y, placement.y.resized, frame.height, (dy * video.height) / scale),
  };
}

/** Changes the zoom; what is in the middle of the frame stays there, as far as it can. */
export function zoomed(framing: Framing, { image, frame, video }: FramingSizes, zoom: number) {
  const next = { ...framing, zoom: clamp(zoom, 0, maxZoom) };
  const before = placeImage(image, framing, frame, video);
  const after = placeImage(image, next, frame, video);
  const along = (position: number, from: number, to: number, length: number) => {
    const middle = (length / 2 - position * (length - from)) / from;
    const room = length - to;
    return room === 0 ? position : clamp((length / 2 - middle * to) / room, 0, 1);
  };
  return {
    ...next,
    x: along(framing.x, before.x.resized, after.x.resized, frame.width),
    y: along(framing.y, before.y.resized, after.y.resized, frame.height),
  };
}

/** What a key does in the editor; null for other keys. */
export function framingOfKey(
  { key, shiftKey }: { readonly key: string; readonly shiftKey: boolean },
  framing: Framing,
  sizes: FramingSizes,
): Framing | null {
  const step = shiftKey ? 0.1 : 0.02;
  if (key === 'ArrowLeft') return moved(framing, sizes, -step, 0);
  if (key === 'ArrowRight') return moved(framing, sizes, step, 0);
  if (key === 'ArrowUp') return moved(framing, sizes, 0, -step);
  if (key === 'ArrowDown') return moved(framing, sizes, 0, step);
  if (key === '+' || key === '=') return zoomed(framing, sizes, framing.zoom + 0.1);
  if (key === '-') return zoomed(framing, sizes, framing.zoom - 0.1);
  return null;
}

/** The whole image in the middle, keeping the background. */
export function fitted({ background }: Framing): Framing {
  return { ...centred, zoom: 0, background };
}

/** The centre of the image, filling the frame, keeping the background. */
export function filling({ background }: Framing): Framing {
  return { ...centred, background };
}

/** A sentence where the image has too few pixels for a sharp video; null where it has enough. */
export function pixelWarning({ width, height }: PixelSize, { zoom }: Framing): string | null {
  const short = Math.min(width, height);
  if (short < sharpPixels) {
    return t('form.fewPixels', { width, height, enough: sharpPixels });
  }
  const shown = Math.round(short / Math.max(1, zoom));
  if (shown >= sharpPixels) return null;
  return t('form.fewPixelsZoomed', { shown, enough: sharpPixels });
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}
