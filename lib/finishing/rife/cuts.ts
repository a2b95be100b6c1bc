import type { Frame } from '../../pipeline/latents';

/** Side of the small pictures that are compared. */
const side = 32;
/** Below it two frames are of different scenes (Practical-RIFE, `inference_video.py`). */
const leastSimilarity = 0.2;

/** Gaussian of σ 1.5 over 11 values (Wang et al. 2004, "Image quality assessment"). */
const reach = 5;
const gaussian = normalised(
  Array.from({ length: 2 * reach + 1 }, (_, i) => Math.exp(-((i - reach) ** 2) / (2 * 1.5 ** 2))),
);

/** Whether a scene ends between two frames: nothing can be interpolated there. */
export function isCut(a: Frame, b: Frame): boolean {
  return similarity(a, b) < leastSimilarity;
}

/**
 * SSIM (Wang et al. 2004) of both frames at 32×32, with windows over colours, rows and columns as Practical-RIFE has
 * them (`pytorch_msssim`, `ssim_matlab`).
 */
export function similarity(a: Frame, b: Frame): number {
  const [x, y] = [small(a), small(b)];
  const product = (p: Float64Array, q: Float64Array) => p.map((value, i) => value * (q[i] ?? 0));
  const [mx, my] = [blurred(x), blurred(y)];
  const [xx, yy, xy] = [blurred(product(x, x)), blurred(product(y, y)), blurred(product(x, y))];
  const [c1, c2] = [0.01 ** 2, 0.03 ** 2];
  const map = mx.map((m, i) => {
    const [n, pxx, pyy, pxy] = [my[i] ?? 0, xx[i] ?? 0, yy[i] ?? 0, xy[i] ?? 0];
    const structure = (2 * (pxy - m * n) + c2) / (pxx - m * m + pyy - n * n + c2);
    return ((2 * m * n + c1) / (m * m + n * n + c1)) * structure;
  });
  return map.reduce((sum, value) => sum + value, 0) / map.length;
}

/** [3, 32, 32] in 0…1, bilinear without antialiasing. */
function small({ data, width, height }: Frame): Float64Array {
  const places = (size: number) =>
    Array.from({ length: side }, (_, i) => {
      const place = Math.max(0, ((i + 0.5) * size) / side - 0.5);
      const first = Math.floor(place);
      return { first, second: Math.min(first + 1, size - 1), share: place - first };
    });
  const [rows, columns] = [places(height), places(width)];
  const out = new Float64Array(3 * side * side);
  for (let c = 0; c < 3; c++) {
    for (const [y, row] of rows.entries()) {
      for (const [x, column] of columns.entries()) {
        const along = (line: number) => {
          const start = (c * height + line) * width;
          const [p, q] = [data[start + column.first] ?? 0, data[start + column.second] ?? 0];
          return p + (q - p) * column.share;
        };
        const [p, q] = [along(row.first), along(row.second)];
        out[(c * side + y) * side + x] = (p + (q - p) * row.share + 1) / 2;
      }
    }
  }
  return out;
}

/** Gaussian means over all three axes of [3, 32, 32]; beyond an edge it goes on as it ends. */
function blurred(values: Float64Array): Float64Array {
  let from = values;
  for (const [size, stride] of [
    [3, side * side],
    [side, side],
    [side, 1],
  ] as const) {
    from = from.map((_, i) => {
      const place = Math.floor(i / stride) % size;
      return gaussian.reduce((sum, weight, k) => {
        const other = Math.min(size - 1, Math.max(0, place + k - reach));
        return sum + weight * (from[i + (other - place) * stride] ?? 0);
      }, 0);
    });
  }
  return from;
}

function normalised(weights: readonly number[]): readonly number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}
