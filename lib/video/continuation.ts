import { readFrame } from './frames';
import { type Pixels, toPng } from './image';

interface Size {
  readonly width: number;
  readonly height: number;
}

/**
 * The last frame of a video as the start image of one that continues it.
 *
 * @param native the size at which the model computes
 * @returns a PNG
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function continuationImage(video: Blob, native: Size): Promise<Blob> {
  return toPng(extendFrame(await readFrame(video), native));
}

/**
 * A frame with the margin that was cut off when the model's frame was scaled to it, filled with its mirror
 * image. Without it the model would be given a cut-out: the continuation would start enlarged, by 2.3 % at
 * 1280×720, and each further one again. The margin itself is cut off again, so nobody sees it.
 */
export function extendFrame(frame: Pixels, native: Size): Pixels {
  // The size of the model's frame when it is scaled to cover the video's.
  const scale = Math.max(frame.width / native.width, frame.height / native.height);
  const width = Math.max(frame.width, Math.round(native.width * scale));
  const height = Math.max(frame.height, Math.round(native.height * scale));
  const left = Math.floor((width - frame.width) / 2);
  const top = Math.floor((height - frame.height) / 2);
  const data = new Uint8ClampedArray(width * height * 4);
  const source = new Uint32Array(
    frame.data.buffer,
    frame.data.byteOffset,
    frame.width * frame.height,
  );
  const target = new Uint32Array(data.buffer);
  for (let row = 0; row < height; row++) {
    const line = mirrored(row - top, frame.height) * frame.width;
    for (let column = 0; column < width; column++) {
      const at = line + mirrored(column - left, frame.width);
      target[row * width + column] = source[at] as number;
    }
  }
  return { width, height, data };
}

/** An index outside of 0 … length − 1 as its mirror image inside. */
function mirrored(index: number, length: number): number {
  const inside = index < 0 ? -1 - index : index;
  return inside < length ? inside : 2 * length - 1 - inside;
}
