import type { Pixels } from '../../../video/image';

/** Brightness of a picture, 0 … 255, row by row. */
export interface Luma {
  readonly width: number;
  readonly height: number;
  readonly data: Float32Array;
}

/** What can be known of a video without people. */
export interface Measures {
  /** SSIM of the first frame with the start image, −1 … 1. */
  readonly first_frame_ssim: number;
  /** Mean |Laplacian| of each frame, as a share of the start image's. */
  readonly sharpness: readonly number[];
  /** Levels (of 255) by which a patch differs from the mean of its neighbours in time. */
  readonly flicker: number;
  /** Pixels per frame that the content moves, for a picture 1280 pixels wide. */
  readonly flow: number;
  /** Distance in CIE Lab between the mean colours of the start image and the last frame. */
  readonly colour_drift: number;
  /** PSNR in dB of the last frame with the picture that it was to end with; null without one. */
  readonly end_psnr: number | null;
  /** Step from the last frame to the first one, as a multiple of the usual step; null where it is no loop. */
  readonly loop_seam: number | null;
}

/** Rec. 709 brightness of a picture. */
export function lumaOf({ width, height, data }: Pixels): Luma {
  const luma = new Float32Array(width * height);
  for (let i = 0; i < luma.length; i++) {
    const [r, g, b] = [data[4 * i] ?? 0, data[4 * i + 1] ?? 0, data[4 * i + 2] ?? 0];
    luma[i] = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  return { width, height, data: luma };
}

/** Means of squares of `factor` pixels; what is left over at the edges is dropped. */
export function shrunk({ width, height, data }: Luma, factor: number): Luma {
  const [w, h] = [Math.floor(width / factor), Math.floor(height / factor)];
  const small = new Float32Array(w * h);
  for (let y = 0; y < h * factor; y++) {
    const row = Math.floor(y / factor) * w;
    for (let x = 0; x < w * factor; x++) {
      const at = row + Math.floor(x / factor);
      small[at] = (small[at] ?? 0) + (data[y * width + x] ?? 0) / factor ** 2;
    }
  }
  return { width: w, height: h, data: small };
}

/**
 * Structural similarity: Wang et al., "Image Quality Assessment: From Error Visibility to Structural
 * Similarity", IEEE TIP 13 (2004), over squares of 8 pixels, 4 apart, alike in weight.
 */
export function ssim(a: Luma, b: Luma): number {
  const [size, step] = [8, 4];
  const [c1, c2] = [(0.01 * 255) ** 2, (0.03 * 255) ** 2];
  let [sum, count] = [0, 0];
  for (let y = 0; y + size <= a.height; y += step) {
    for (let x = 0; x + size <= a.width; x += step) {
      let [ma, mb, aa, bb, ab] = [0, 0, 0, 0, 0];
      for (let i = 0; i < size * size; i++) {
        const at = (y + Math.floor(i / size)) * a.width + x + (i % size);
        const [p, q] = [a.data[at] ?? 0, b.data[at] ?? 0];
        ma += p;
        mb += q;
        aa += p * p;
        bb += q * q;
        ab += p * q;
      }
      const n = size * size;
      [ma, mb] = [ma / n, mb / n];
      const [va, vb, cov] = [aa / n - ma * ma, bb / n - mb * mb, ab / n - ma * mb];
      const similar = (2 * ma * mb + c1) * (2 * cov + c2);
      sum += similar / ((ma * ma + mb * mb + c1) * (va + vb + c2));
      count += 1;
    }
  }
  return sum / count;
}

/** Mean |Laplacian| of the inner pixels, in levels. */
export function sharpness({ width, height, data }: Luma): number {
  let sum = 0;
  for (let y = 1; y < height - 1; y++) {
    for (let x = 1; x < width - 1; x++) {
      const at = y * width + x;
      const around =
        (data[at - 1] ?? 0) +
        (data[at + 1] ?? 0) +
        (data[at - width] ?? 0) +
        (data[at + width] ?? 0);
      sum += Math.abs(4 * (data[at] ?? 0) - around);
    }
  }
  return sum / ((width - 2) * (height - 2));
}

/** Mean |a − b|, in levels. */
export function difference(a: Luma, b: Luma): number {
  return (
    a.data.reduce((sum, value, i) => sum + Math.abs(value - (b.data[i] ?? 0)), 0) / a.data.length
  );
}

/** Peak signal-to-noise ratio of the colours of two pictures, in dB; at most 100. */
export function psnr(a: Pixels, b: Pixels): number {
  let sum = 0;
  for (let i = 0; i < a.data.length; i++) {
    if (i % 4 !== 3) sum += ((a.data[i] ?? 0) - (b.data[i] ?? 0)) ** 2;
  }
  const mean = sum / ((a.data.length / 4) * 3);
  return mean === 0 ? 100 : Math.min(100, 10 * Math.log10(255 ** 2 / mean));
}

/**
 * How far the content moves from one picture to another: squares of 16 pixels, each to the place within `reach`
 * where it differs least. A square without texture, or one that fits nowhere better than where it was, stays.
 * Those at the edges are left out, as their content may have left the picture.
 *
 * @returns pixels, as a mean over the squares
 */
export function motion(from: Luma, to: Luma, reach = 12): number {
  const size = 16;
  let [sum, squares] = [0, 0];
  for (let y = reach; y + size + reach <= from.height; y += size) {
    for (let x = reach; x + size + reach <= from.width; x += size) {
      // Another place has to be better by a level a pixel.
      let best = {
        error: mismatch(from, to, { x, y, dx: 0, dy: 0, size }) - size * size,
        length: 0,
      };
      for (let dy = -reach; dy <= reach; dy++) {
        for (let dx = -reach; dx <= reach; dx++) {
          const error = mismatch(from, to, { x, y, dx, dy, size, limit: best.error });
          if (error < best.error) best = { error, length: Math.hypot(dx, dy) };
        }
      }
      sum += best.length;
      squares += 1;
    }
  }
  return sum / Math.max(1, squares);
}

/** Sum of absolute differences of a square and the one that lies (dx, dy) from it; ends at the limit. */
function mismatch(
  from: Luma,
  to: Luma,
  at: { x: number; y: number; dx: number; dy: number; size: number; limit?: number },
): number {
  const { x, y, dx, dy, size, limit = Number.POSITIVE_INFINITY } = at;
  let sum = 0;
  for (let row = 0; row < size && sum < limit; row++) {
    const a = (y + row) * from.width + x;
    const b = (y + dy + row) * to.width + x + dx;
    for (let i = 0; i < size; i++) sum += Math.abs((from.data[a + i] ?? 0) - (to.data[b + i] ?? 0));
  }
  return sum;
}

/** Mean colour of a picture in CIE Lab under D65 (IEC 61966-2-1, CIE 15). */
export function meanLab({ data }: Pixels): readonly [l: number, a: number, b: number] {
  const sums = [0, 0, 0];
  for (let i = 0; i < data.length; i += 4) {
    const [r = 0, g = 0, b = 0] = [data[i], data[i + 1], data[i + 2]].map((u) => linear[u ?? 0]);
    const fx = cubeRoot((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
    const fy = cubeRoot(0.2126 * r + 0.7152 * g + 0.0722 * b);
    const fz = cubeRoot((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
    for (const [k, value] of [116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)].entries()) {
      sums[k] = (sums[k] ?? 0) + value;
    }
  }
  const [l = 0, a = 0, b = 0] = sums.map((sum) => sum / (data.length / 4));
  return [l, a, b];
}

const linear = Array.from({ length: 256 }, (_, level) => {
  const u = level / 255;
  return u <= 0.04045 ? u / 12.92 : ((u + 0.055) / 1.055) ** 2.4;
});

function cubeRoot(t: number): number {
  return t > (6 / 29) ** 3 ? Math.cbrt(t) : t / (3 * (6 / 29) ** 2) + 4 / 29;
}

/** Frames between the two pictures that {@link motion} compares: slow motion is less than a pixel per frame. */
const flowSpan = 4;

/**
 * Measures a video, frame by frame.
 *
 * @param still the start image, in the size of the video
 * @param frames in order
 * @param loop whether it was to end where it begins
 */
export async function measureVideo(
  still: Pixels,
  frames: AsyncIterable<Pixels>,
  loop: boolean,
): Promise<Measures> {
  const start = lumaOf(still);
  const sharp = sharpness(start);
  const sharpnesses: number[] = [];
  const smalls: Luma[] = [];
  let first: Luma | null = null;
  let last: Pixels | null = null;
  for await (const frame of frames) {
    const luma = lumaOf(frame);
    first ??= luma;
    last = frame;
    sharpnesses.push(sharpness(luma) / sharp);
    smalls.push(shrunk(luma, 4));
  }
  if (!first || !last) throw new TypeError('the video has no frames');
  const end = meanLab(last);
  const [l, a, b] = meanLab(still).map((value, k) => value - (end[k] ?? 0));
  const pairs = smalls.slice(flowSpan).map((to, i) => [smalls[i], to] as const);
  const spans = pairs.filter((_, i) => i % flowSpan === 0);
  const moved = spans.map(([from, to]) => (from ? motion(from, to) : 0));
  // A shrunk pixel is four wide.
  const perFrame = (4 * mean(moved)) / flowSpan;
  return {
    first_frame_ssim: ssim(start, first),
    sharpness: sharpnesses,
    flicker: flickerOf(smalls.map((small) => shrunk(small, 4))),
    flow: (perFrame * 1280) / Math.max(still.width, still.height),
    colour_drift: Math.hypot(l ?? 0, a ?? 0, b ?? 0),
    end_psnr: loop ? psnr(last, still) : null,
    loop_seam: loop ? seamOf(smalls) : null,
  };
}

function flickerOf(patches: readonly Luma[]): number {
  const inner = patches.slice(1, -1).map(({ data }, i) => {
    const [before, after] = [patches[i]?.data, patches[i + 2]?.data];
    const off = data.map((value, k) =>
      Math.abs(value - ((before?.[k] ?? 0) + (after?.[k] ?? 0)) / 2),
    );
    return mean([...off]);
  });
  return mean(inner);
}

function seamOf(frames: readonly Luma[]): number | null {
  const steps = frames.slice(1).map((frame, i) => difference(frames[i] ?? frame, frame));
  const [first, last] = [frames[0], frames.at(-1)];
  const usual = median(steps);
  return first && last && usual > 0 ? difference(last, first) / usual : null;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

/** The middle value; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((x, y) => x - y);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
}
