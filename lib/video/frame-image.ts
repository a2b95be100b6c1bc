import { blurCells, centred, type Framing, type PixelSize, placeImage } from '../contract';
import { coverCrop, resamplePixels } from './cover-crop';
import { FrameScaler } from './frame-scaler';
import type { Pixels } from './image';
import { cubicSpline, lanczos3 } from './resample';

/**
 * An image as the model takes it, framed: planar RGB [3, height, width] in [−1, 1]. Without a framing it is
 * what {@link coverCrop} gives.
 *
 * @param frame size of the result in pixels
 * @param video size of the delivered video; see {@link placeImage}
 * @throws TypeError for sizes that are not positive whole numbers
 */
export function frameImage(
  pixels: Pixels,
  framing: Framing = centred,
  frame: PixelSize,
  video: PixelSize = frame,
): Float32Array<ArrayBuffer> {
  const placement = placeImage(pixels, framing, frame, video);
  const { x, y } = placement;
  const image = resamplePixels(pixels, placement, lanczos3);
  if (x.length === frame.width && y.length === frame.height) return image;
  const { background } = framing;
  const output = background === 'blur' ? blurred(pixels, frame) : filled(background, frame);
  for (let c = 0; c < 3; c++) {
    for (let row = 0; row < y.length; row++) {
      const from = (c * y.length + row) * x.length;
      const to = (c * frame.height + y.start + row) * frame.width + x.start;
      output.set(image.subarray(from, from + x.length), to);
    }
  }
  return output;
}

/** The image scaled to cover the frame, and blurred: shrunk to few cells and enlarged smoothly. */
function blurred(pixels: Pixels, frame: PixelSize): Float32Array<ArrayBuffer> {
  const scale = blurCells / Math.max(frame.width, frame.height);
  const width = Math.max(1, Math.round(frame.width * scale));
  const height = Math.max(1, Math.round(frame.height * scale));
  const cells = { width, height };
  const data = new FrameScaler(cells, cells).scale(coverCrop(pixels, width, height));
  const whole = (source: number, length: number) => {
    return { source, resized: length, offset: 0, length, start: 0 };
  };
  const placement = { x: whole(width, frame.width), y: whole(height, frame.height) };
  return resamplePixels({ ...cells, data }, placement, cubicSpline);
}

/** A frame of one colour, `#rrggbb`. */
function filled(colour: string, { width, height }: PixelSize): Float32Array<ArrayBuffer> {
  const plane = width * height;
  const output = new Float32Array(3 * plane);
  for (let c = 0; c < 3; c++) {
    const value = Number.parseInt(colour.slice(1 + 2 * c, 3 + 2 * c), 16);
    output.fill(value / 127.5 - 1, c * plane, (c + 1) * plane);
  }
  return output;
}
