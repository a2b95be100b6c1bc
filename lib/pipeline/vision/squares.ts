import { at } from '../../contract';
import { type Axis, catmullRom, exactAxis, type Kernel } from '../../video/resample';
import type { Frame } from '../latents';

/** How a checker wants its pixels. */
export interface Preprocessing {
  /** Side of the square in pixels. */
  readonly size: number;
  readonly kernel: Kernel;
  /**
   * `cover` keeps the ratio and cuts squares out, `middle` the one in the middle; `stretch` makes one square of the
   * whole image.
   */
  readonly fit: 'cover' | 'middle' | 'stretch';
  /** By channel, of values in 0…1. */
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

/** PIL's bilinear kernel. */
export const triangle: Kernel = { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) };
export const bicubic = catmullRom;

/** An image as bytes, one channel at a time: a photo has 40 megapixels at most. */
export interface ByteImage {
  readonly width: number;
  readonly height: number;
  /** Red, green or blue, [height, width]. */
  channel(c: number): Uint8ClampedArray;
}

/** Squares of one image, kept until they are scored: planar RGB [count, 3, size, size]. */
export interface Squares {
  /** Bytes, or numbers of 0…1 where the classifier's filter does not round. */
  readonly values: Uint8ClampedArray | Float32Array;
  readonly count: number;
}

/** Size of an image after scaling, and the starts of the squares in it. */
export interface SquareLayout {
  readonly width: number;
  readonly height: number;
  readonly offsets: readonly (readonly [x: number, y: number])[];
}

/**
 * Squares of an image, at most. An image of a single row would have thousands; of a ratio above this number,
 * parts between the squares are not seen.
 */
const maxSquares = 16;

/**
 * The squares that cover an image: its short side is scaled to the square's, and along the long side lie
 * as few as cover it, flush with both ends. The long side is truncated as in torchvision's `Resize`.
 */
export function layOutSquares(
  { width, height }: { readonly width: number; readonly height: number },
  { size, fit }: Pick<Preprocessing, 'size' | 'fit'>,
): SquareLayout {
  if (fit === 'stretch') return { width: size, height: size, offsets: [[0, 0]] };
  const long = Math.floor((size * Math.max(width, height)) / Math.min(width, height));
  const count = Math.min(maxSquares, Math.ceil(long / size));
  const middle = [Math.floor((long - size) / 2)];
  const all = Array.from({ length: count }, (_, k) =>
    count === 1 ? 0 : Math.round((k * (long - size)) / (count - 1)),
  );
  const starts = fit === 'middle' ? middle : all;
  return width >= height
    ? { width: long, height: size, offsets: starts.map((x) => [x, 0] as const) }
    : { width: size, height: long, offsets: starts.map((y) => [0, y] as const) };
}

/** Scales an image and cuts it into squares. Both passes round to bytes, as PIL does. */
export function cutSquares(image: ByteImage, preprocessing: Preprocessing): Squares {
  const { size, kernel } = preprocessing;
  const layout = layOutSquares(image, preprocessing);
  const count = layout.offsets.length;
  const plane = size * size;
  const bytes = new Uint8ClampedArray(count * 3 * plane);
  const along = (source: number, resized: number, offset: number) =>
    fixedPoint(exactAxis({ source, resized, offset, length: size }, kernel));
  for (let c = 0; c < 3; c++) {
    const source = image.channel(c); // [height, width]
    for (const [index, [x, y]] of layout.offsets.entries()) {
      const columns = along(image.width, layout.width, x);
      const across = resampleAcross(source, image.width, image.height, columns); // [height, size]
      const target = bytes.subarray((3 * index + c) * plane, (3 * index + c + 1) * plane);
      resampleDown(across, size, along(image.height, layout.height, y), target); // [size, size]
    }
  }
  return { values: bytes, count };
}

/** Bits behind the point of a weight: PIL's `PRECISION_BITS`. */
const weightBits = 22;
const half = 2 ** (weightBits - 1);

type FixedAxis = Axis<Int32Array>;

/**
 * Weights as PIL rounds them: from double precision, halves away from zero. Sums are exact then. Weights that
 * were rounded to single precision before give some pixels that are one step off.
 */
function fixedPoint({ weights, ...axis }: Axis<Float64Array>): FixedAxis {
  const rounded = (w: number) => Math.trunc(w * 2 ** weightBits + Math.sign(w) / 2);
  return { ...axis, weights: Int32Array.from(weights, rounded) };
}

/** Each row of [height, width] by the axis. A clamped array cuts what exceeds a byte. */
function resampleAcross(
  source: Uint8ClampedArray,
  width: number,
  height: number,
  { taps, starts, weights }: FixedAxis,
): Uint8ClampedArray {
  const length = starts.length;
  const target = new Uint8ClampedArray(height * length);
  for (let row = 0; row < height; row++) {
    for (let i = 0; i < length; i++) {
      const first = row * width + (starts[i] as number);
      let sum = half;
      for (let t = 0; t < taps; t++) {
        sum += (weights[i * taps + t] as number) * (source[first + t] as number);
      }
      target[row * length + i] = sum >> weightBits;
    }
  }
  return target;
}

/** Each column of [height, width] by the axis. */
function resampleDown(
  source: Uint8ClampedArray,
  width: number,
  { taps, starts, weights }: FixedAxis,
  target: Uint8ClampedArray,
): void {
  for (let i = 0; i < starts.length; i++) {
    const first = (starts[i] as number) * width;
    for (let column = 0; column < width; column++) {
      let sum = half;
      for (let t = 0; t < taps; t++) {
        sum += (weights[i * taps + t] as number) * (source[first + t * width + column] as number);
      }
      target[i * width + column] = sum >> weightBits;
    }
  }
}

/**
 * Squeezes the whole image into one square, by the filter that TensorFlow calls bilinear with aligned corners:
 * the outermost pixels stay where they are, and nothing is smoothed where the image shrinks.
 *
 * @returns values of 0…1
 */
export function squeeze(image: ByteImage, size: number): Squares {
  const values = new Float32Array(3 * size * size);
  /** Both neighbours of each position, and how far it is from the first one. */
  const along = (length: number) =>
    Array.from({ length: size }, (_, i) => {
      const place = (i * (length - 1)) / (size - 1);
      return { first: Math.floor(place), next: Math.ceil(place), part: place % 1 };
    });
  const [columns, rows] = [along(image.width), along(image.height)];
  let to = 0;
  for (let c = 0; c < 3; c++) {
    const source = image.channel(c); // [height, width]
    for (const row of rows) {
      for (const { first, next, part } of columns) {
        const between = (y: number) => {
          const left = source[y * image.width + first] as number;
          return left + ((source[y * image.width + next] as number) - left) * part;
        };
        const above = between(row.first);
        values[to++] = (above + (between(row.next) - above) * row.part) / 255;
      }
    }
  }
  return { values, count: 1 };
}

/** Decoded pixels: RGBA, row by row. */
export interface RgbaImage {
  readonly data: Uint8ClampedArray;
  readonly width: number;
  readonly height: number;
}

export function rgbaBytes({ data, width, height }: RgbaImage): ByteImage {
  return {
    width,
    height,
    channel(c) {
      const plane = new Uint8ClampedArray(width * height);
      for (let i = 0; i < plane.length; i++) plane[i] = data[4 * i + c] as number;
      return plane;
    },
  };
}

/** A decoded frame in −1…1 as bytes, rounded as the encoder's pixels are. */
export function frameBytes({ data, width, height }: Frame): ByteImage {
  const plane = width * height;
  const bytes = new Uint8ClampedArray(3 * plane);
  // A clamped array rounds to the nearest and cuts what is out of range.
  for (let i = 0; i < bytes.length; i++) bytes[i] = (data[i] as number) * 127.5 + 127.5;
  return { width, height, channel: (c) => bytes.subarray(c * plane, (c + 1) * plane) };
}

/**
 * Bytes of squares as the network takes them: `(byte/255 − mean) / std` by channel.
 *
 * @returns [count, 3, size, size]
 */
export function normalise(bytes: Squares['values'], preprocessing: Preprocessing): Float32Array {
  const { size, mean, std } = preprocessing;
  const plane = size * size;
  const pixels = new Float32Array(bytes.length);
  // Rounded to f32 after each operation, as PyTorch does it.
  const { fround } = Math;
  const value = (byte: number, c: number) =>
    fround(fround(fround(byte / 255) - fround(at(mean, c))) / fround(at(std, c)));
  const tables = [0, 1, 2].map((c) =>
    Float32Array.from({ length: 256 }, (_, byte) => value(byte, c)),
  );
  for (let i = 0; i < bytes.length; i++) {
    const table = tables[Math.floor(i / plane) % 3] as Float32Array;
    pixels[i] = table[bytes[i] as number] as number;
  }
  return pixels;
}
