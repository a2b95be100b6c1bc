import {
  backing,
  blurCells,
  centred,
  type Framing,
  type PixelSize,
  type Placement,
  placeImage,
} from '../contract';
import { FrameScaler } from './frame-scaler';
import { decodeImage, type Pixels, toPng } from './image';
import { axisSpan, cubicSpline, type Kernel, lanczos3, makeAxis } from './resample';

/**
 * An image as the model takes it: scaled to cover `width`×`height`, centre-cropped, planar RGB
 * [3, height, width] in [−1, 1]. Lanczos-3 in float32. Where the sizes match already the result is exactly
 * `u8 / 127.5 − 1`.
 *
 * @throws TypeError for sizes that are not positive whole numbers
 */
export function coverCrop(
  pixels: Pixels,
  width: number,
  height: number,
): Float32Array<ArrayBuffer> {
  return resamplePixels(pixels, placeImage(pixels, centred, { width, height }), lanczos3);
}

/**
 * The shown part of a placed image, planar RGB [3, y.length, x.length] in [−1, 1], in float32; overshoot of the
 * kernel is cut off. Only the wanted part is computed, one row at a time. A pixel without scaling is exactly `u8 /
 * 127.5 − 1`.
 *
 * @throws TypeError for pixels of another size
 */
export function resamplePixels(
  pixels: Pixels,
  { x, y }: Placement,
  kernel: Kernel,
): Float32Array<ArrayBuffer> {
  if (pixels.data.length !== 4 * x.source * y.source) {
    throw new TypeError(`${pixels.data.length} bytes are not ${x.source}×${y.source} pixels`);
  }
  const width = x.length;
  const height = y.length;
  const plane = width * height;
  const output = new Float32Array(3 * plane);
  const data = pixels.data;
  if (x.resized === x.source && y.resized === y.source) {
    for (let i = 0; i < plane; i++) {
      const row = y.offset + Math.floor(i / width);
      const at = 4 * (row * x.source + x.offset + (i % width));
      for (let c = 0; c < 3; c++) output[c * plane + i] = (data[at + c] as number) / 127.5 - 1;
    }
    return output;
  }

  const columns = makeAxis(x, kernel);
  const rows = makeAxis(y, kernel);
  const { from, to } = axisSpan(columns);
  const blended = new Float32Array(3 * (to - from)); // one row, [3, columns], of every source column
  const span = to - from;
  for (let i = 0; i < height; i++) {
    blended.fill(0);
    const start = rows.starts[i] as number;
    for (let t = 0; t < rows.taps; t++) {
      const weight = rows.weights[i * rows.taps + t] as number;
      if (weight === 0) continue;
      let at = ((start + t) * pixels.width + from) * 4;
      for (let j = 0; j < span; j++, at += 4) {
        blended[j] = (blended[j] as number) + weight * (data[at] as number);
        blended[span + j] = (blended[span + j] as number) + weight * (data[at + 1] as number);
        blended[2 * span + j] =
          (blended[2 * span + j] as number) + weight * (data[at + 2] as number);
      }
    }
    for (let j = 0; j < width; j++) {
      const first = (columns.starts[j] as number) - from;
      let red = 0;
      let green = 0;
      let blue = 0;
      for (let t = 0; t < columns.taps; t++) {
        const weight = columns.weights[j * columns.taps + t] as number;
        red += weight * (blended[first + t] as number);
        green += weight * (blended[span + first + t] as number);
        blue += weight * (blended[2 * span + first + t] as number);
      }
      const at = i * width + j;
      output[at] = toUnit(red);
      output[plane + at] = toUnit(green);
      output[2 * plane + at] = toUnit(blue);
    }
  }
  return output;
}

/** 0…255 to −1…1, overshoot cut off. */
function toUnit(value: number): number {
  return Math.min(1, Math.max(-1, value / 127.5 - 1));
}

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

/**
 * An image as the model takes it, as a PNG: sent to the API, which puts images in the centre, it lies in the frame
 * as it was framed.
 *
 * @param frame what the model computes, in pixels
 * @param video size of the delivered video
 * @throws KinoraError as {@link decodeImage} does
 */
export async function framedPng(
  image: Blob,
  framing: Framing | undefined,
  frame: PixelSize,
  video: PixelSize,
): Promise<Blob> {
  const pixels = await decodeImage(image, backing(framing ?? centred));
  const data = new FrameScaler(frame, frame).scale(frameImage(pixels, framing, frame, video));
  return toPng({ width: frame.width, height: frame.height, data });
}
