/** How a picture moved, for tests of videos that show something. */
import type { Frame } from '../../../pipeline/latents';

/** A complex grid in rows. */
interface Spectrum {
  readonly real: Float64Array;
  readonly imaginary: Float64Array;
}

/**
 * By how much the content moved from one frame to another, by phase correlation: the peak of the inverse
 * transform of the normalised cross-power spectrum (Kuglin and Hines, 1975).
 *
 * @returns pixels of the frame, positive to the right and down, in steps of two
 */
export function displacement(from: Frame, to: Frame) {
  const [a, b] = [grey(from), grey(to)];
  const { width, height } = a;
  const [first, second] = [transform2d(a, -1), transform2d(b, -1)];
  const real = new Float64Array(width * height);
  const imaginary = new Float64Array(width * height);
  for (let i = 0; i < real.length; i++) {
    const [ar, ai] = [first.real[i] ?? 0, first.imaginary[i] ?? 0];
    const [br, bi] = [second.real[i] ?? 0, second.imaginary[i] ?? 0];
    const [re, im] = [br * ar + bi * ai, bi * ar - br * ai];
    const length = Math.hypot(re, im) + 1e-9;
    real[i] = re / length;
    imaginary[i] = im / length;
  }
  const surface = transform2d({ real, imaginary, width, height }, 1).real;
  const peak = surface.indexOf(surface.reduce((most, value) => Math.max(most, value), -Infinity));
  const [x, y] = [peak % width, Math.floor(peak / width)];
  const signed = (shift: number, size: number) => (shift > size / 2 ? shift - size : shift) * 2;
  return { x: signed(x, width), y: signed(y, height) };
}

/**
 * By how much the content grew from one frame to another: of the magnifications from 0.8 to 1.25 about the centre,
 * with shifts of up to 8 pixels, the one whose middle part differs least from the second frame.
 */
export function magnification(from: Frame, to: Frame): number {
  const { width, height } = from;
  const [centreX, centreY] = [width / 2, height / 2];
  // Green, every second pixel of the middle three fifths.
  const value = ({ data }: Frame, x: number, y: number) =>
    data[(height + Math.round(y)) * width + Math.round(x)] ?? 0;
  let best = { error: Infinity, scale: 1 };
  for (let step = -8; step <= 8; step++) {
    const scale = 1.25 ** (step / 8);
    for (let shiftY = -8; shiftY <= 8; shiftY += 2) {
      for (let shiftX = -8; shiftX <= 8; shiftX += 2) {
        let error = 0;
        for (let y = Math.ceil(0.2 * height); y < 0.8 * height; y += 2) {
          for (let x = Math.ceil(0.2 * width); x < 0.8 * width; x += 2) {
            const fromX = centreX + (x - centreX - shiftX) / scale;
            const fromY = centreY + (y - centreY - shiftY) / scale;
            error += (value(to, x, y) - value(from, fromX, fromY)) ** 2;
          }
        }
        if (error < best.error) best = { error, scale };
      }
    }
  }
  return best.scale;
}

/** Peak signal-to-noise ratio of two frames in dB. */
export function psnr(a: Frame, b: Frame): number {
  let sum = 0;
  for (let i = 0; i < a.data.length; i++) sum += ((a.data[i] ?? 0) - (b.data[i] ?? 0)) ** 2;
  return -10 * Math.log10(sum / a.data.length / 4);
}

/** The mean brightness of a frame, 0 to 1. */
export function brightness({ data }: Frame): number {
  return data.reduce((sum, value) => sum + value, 0) / data.length / 2 + 0.5;
}

/** Half the resolution, without its mean, faded out towards the edges, which do not repeat. */
function grey({ width, height, data }: Frame) {
  const [w, h] = [width / 2, height / 2];
  const real = new Float64Array(w * h);
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < w; x++) {
      for (const [dx, dy] of [
        [0, 0],
        [0, 1],
        [1, 0],
        [1, 1],
      ] as const) {
        const at = (2 * y + dy) * width + 2 * x + dx;
        for (let plane = 0; plane < 3; plane++) {
          real[y * w + x] = (real[y * w + x] ?? 0) + (data[plane * width * height + at] ?? 0);
        }
      }
    }
  }
  const mean = real.reduce((sum, value) => sum + value, 0) / real.length;
  const window = (i: number, n: number) => Math.sin((Math.PI * (i + 0.5)) / n) ** 2;
  for (let i = 0; i < real.length; i++) {
    const fade = window(i % w, w) * window(Math.floor(i / w), h);
    real[i] = ((real[i] ?? 0) - mean) * fade;
  }
  return { real, imaginary: new Float64Array(w * h), width: w, height: h };
}

/** Fourier transform of rows and columns, by its definition: the grids are small. */
function transform2d(
  grid: Spectrum & { readonly width: number; readonly height: number },
  sign: 1 | -1,
): Spectrum {
  const { width, height } = grid;
  const rows = transform(grid, { count: height, stride: width }, { length: width, step: 1 }, sign);
  return transform(rows, { count: width, stride: 1 }, { length: height, step: width }, sign);
}

function transform(
  { real, imaginary }: Spectrum,
  { count, stride }: { readonly count: number; readonly stride: number },
  { length, step }: { readonly length: number; readonly step: number },
  sign: 1 | -1,
): Spectrum {
  const out = { real: new Float64Array(real.length), imaginary: new Float64Array(real.length) };
  const angles = Array.from({ length }, (_, i) => (sign * 2 * Math.PI * i) / length);
  const [cosine, sine] = [angles.map(Math.cos), angles.map(Math.sin)];
  for (let line = 0; line < count; line++) {
    for (let k = 0; k < length; k++) {
      let [re, im] = [0, 0];
      for (let i = 0; i < length; i++) {
        const at = line * stride + i * step;
        const [c, s] = [cosine[(k * i) % length] ?? 0, sine[(k * i) % length] ?? 0];
        re += (real[at] ?? 0) * c - (imaginary[at] ?? 0) * s;
        im += (real[at] ?? 0) * s + (imaginary[at] ?? 0) * c;
      }
      out.real[line * stride + k * step] = re;
      out.imaginary[line * stride + k * step] = im;
    }
  }
  return out;
}
