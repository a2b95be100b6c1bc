import { at, type PlacedAxis } from '../contract';

/**
 * A separable resampler with the same numbers in every browser. Shrinking widens the kernel by the scale
 * (antialiasing) as Pillow and torchvision do. Near the border the kernel is cut off; the weights of a
 * pixel always sum to 1.
 */

/** A reconstruction kernel: zero outside [−support, support]. */
export interface Kernel {
  readonly support: number;
  weight(x: number): number;
}

/** Lanczos with three lobes: the sharpest of the usual kernels, for photos. */
export const lanczos3: Kernel = {
  support: 3,
  weight: (x) => (Math.abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0),
};

/** Cubic convolution with a = −0.5 (Keys 1981), PIL's bicubic: four taps, hardly any ringing. */
export const catmullRom: Kernel = {
  support: 2,
  weight(x) {
    const t = Math.abs(x);
    if (t < 1) return (1.5 * t - 2.5) * t * t + 1;
    if (t < 2) return ((-0.5 * t + 2.5) * t - 4) * t + 2;
    return 0;
  },
};

/** The cubic B-spline: it smooths like a Gaussian instead of meeting the pixels, for a blur. */
export const cubicSpline: Kernel = {
  support: 2,
  weight(x) {
    const t = Math.abs(x);
    if (t < 1) return (t / 2 - 1) * t * t + 2 / 3;
    if (t < 2) return (2 - t) ** 3 / 6;
    return 0;
  },
};

function sinc(x: number): number {
  if (x === 0) return 1;
  const t = Math.PI * x;
  return Math.sin(t) / t;
}

/** The source pixels and weights of one axis. */
export interface Axis<Weights = Float32Array> {
  /** Source pixels per output pixel. */
  readonly taps: number;
  /** First source pixel of each output pixel. */
  readonly starts: Int32Array;
  /** `taps` weights for each output pixel, one after another. */
  readonly weights: Weights;
}

/** The weights of one axis; see {@link Axis}. */
export function makeAxis(place: Omit<PlacedAxis, 'start'>, kernel: Kernel): Axis {
  const axis = exactAxis(place, kernel);
  return { ...axis, weights: Float32Array.from(axis.weights) };
}

/** The weights of one axis in double precision. */
export function exactAxis(
  { source, resized, offset, length }: Omit<PlacedAxis, 'start'>,
  kernel: Kernel,
): Axis<Float64Array> {
  const scale = source / resized;
  const stretch = Math.max(1, scale);
  const support = kernel.support * stretch;
  // An open interval of length L holds at most ⌈L⌉ pixel centres; at its ends the kernel is zero.
  const taps = Math.min(source, Math.ceil(2 * support));
  const starts = new Int32Array(length);
  const weights = new Float64Array(length * taps);
  for (let i = 0; i < length; i++) {
    const center = (offset + i + 0.5) * scale;
    const first = Math.floor(center - support - 0.5) + 1;
    const start = Math.min(Math.max(first, 0), source - taps);
    let sum = 0;
    for (let t = 0; t < taps; t++) {
      const weight = kernel.weight((start + t + 0.5 - center) / stretch);
      weights[i * taps + t] = weight;
      sum += weight;
    }
    starts[i] = start;
    for (let t = 0; t < taps; t++) {
      weights[i * taps + t] = (weights[i * taps + t] as number) / sum;
    }
  }
  return { taps, starts, weights };
}

/** Source pixels that an axis touches: from the first to before the last. */
export function axisSpan({ starts, taps }: Axis): { from: number; to: number } {
  return { from: at(starts, 0), to: at(starts, starts.length - 1) + taps };
}
