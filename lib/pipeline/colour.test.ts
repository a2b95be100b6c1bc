import { describe, expect, test } from 'vitest';
import { ColourKeeper, ColourStatistics, fittedColours, recoloured } from './colour';
import type { Frame } from './latents';
import { gaussianNoise } from './noise';

const [width, height, second, frames] = [64, 48, 12, 48];
const plane = width * height;

/** A drawn picture: sky, hill and sun, moved by `shift` pixels but for a still frame around it. */
function drawn(shift = 0): Frame {
  const data = new Float32Array(3 * plane);
  for (let i = 0; i < plane; i++) {
    const [x, y] = [i % width, Math.floor(i / width)];
    const isStill = isStillAt(i);
    const u = isStill ? x : x + shift;
    const sun = !isStill && Math.hypot(u - 40, y - 14) < 7;
    const isHill = y > 30 + 8 * Math.sin(u / 9);
    const sky = [0.1 + y / 80, 0.3 + y / 120, 0.8 - y / 160];
    const colour = sun ? [0.9, 0.8, 0.2] : isHill ? [0.2, 0.45 + u / 400, 0.15] : sky;
    for (const c of [0, 1, 2]) data[c * plane + i] = 2 * (colour[c] as number) - 1;
  }
  return { data, width, height };
}

function isStillAt(i: number): boolean {
  const [x, y] = [i % width, Math.floor(i / width)];
  return x < 12 || y >= height - 10;
}

/** As an encoder and decoder that change colours give a picture: gains, offsets of 255, and noise of 2.5 of 255. */
function drifted(frame: Frame, gain: number[], offset: number[], seed: number): Frame {
  const noise = gaussianNoise({ seed, stream: 0, count: frame.data.length });
  const data = frame.data.map((value, i) => {
    const c = Math.floor(i / plane);
    const level = (gain[c] as number) * 127.5 * (value + 1) + (offset[c] as number);
    return (level + 2.5 * (noise[i] as number)) / 127.5 - 1;
  });
  return { ...frame, data };
}

/** CIE 1976 L*a*b*, D65, of sRGB 0 … 1. */
function lab(rgb: readonly number[]): number[] {
  const [r = 0, g = 0, b = 0] = rgb.map((u) =>
    u <= 0.04045 ? u / 12.92 : ((u + 0.055) / 1.055) ** 2.4,
  );
  const f = (t: number) => (t > (6 / 29) ** 3 ? Math.cbrt(t) : t / (3 * (6 / 29) ** 2) + 4 / 29);
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
  const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** The pixels of the still part, in squares of 8×8. */
const stillSquares = Array.from({ length: 48 }, (_, square) =>
  Array.from({ length: plane }, (_, i) => i).filter(
    (i) => isStillAt(i) && Math.floor((i % width) / 8) + 8 * Math.floor(i / width / 8) === square,
  ),
).filter((pixels, square) => pixels.length > 0 && (square % 8 === 0 || square >= 40));

/** ΔE of the mean colours of squares of the still part: what is left of noise in them hardly counts. */
function deltaE(a: Frame, b: Frame): number {
  const mean = ({ data }: Frame, pixels: readonly number[]) =>
    lab(
      [0, 1, 2].map((c) => {
        const sum = pixels.reduce((all, i) => all + (data[c * plane + i] as number) + 1, 0);
        return sum / (2 * pixels.length);
      }),
    );
  const all = stillSquares.map((pixels) => {
    const [p, q] = [mean(a, pixels), mean(b, pixels)];
    return Math.hypot(...p.map((value, i) => value - (q[i] as number)));
  });
  return all.reduce((sum, value) => sum + value, 0) / all.length;
}

/** A clip that goes on from a drawn one, as `made` gives its frames. @returns ΔE of each frame's still part */
function continued(made: (frame: Frame, index: number) => Frame, keeps = true) {
  const before = new ColourStatistics();
  for (let i = 0; i < second; i++) before.add(drawn(i - second + 1));
  const last = drawn();
  const keeper = new ColourKeeper({ last, before, frames, second });
  const away = Array.from({ length: frames }, (_, index) => {
    const frame = made(drawn(index), index);
    return deltaE(keeps ? keeper.next(frame, index) : frame, last);
  });
  return { away, found: keeper.found };
}

const [gains, offsets] = [
  [1.04, 0.98, 0.95],
  [3, -2, 2],
];
const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

describe('the colours of a clip that goes on from a picture', () => {
  test('stay as they are where nothing has changed them', () => {
    const still = drawn();
    const same = new ColourStatistics();
    same.add(still);
    const keeper = new ColourKeeper({ last: still, before: same, frames, second });
    for (let i = 0; i < frames; i++) {
      const { data } = keeper.next(still, i);
      expect(
        Math.max(...data.map((value, at) => Math.abs(value - (still.data[at] ?? 0)))),
      ).toBeLessThan(1e-5);
    }
  });

  test('are led back where encoding has changed them, to ΔE 2 and less', () => {
    const encoded = (frame: Frame, index: number) => drifted(frame, gains, offsets, index);
    const raw = continued(encoded, false);
    const { away, found } = continued(encoded);
    expect(mean(raw.away)).toBeGreaterThan(2.5);
    expect(Math.max(...away)).toBeLessThan(2);
    for (const [c, gain] of found.encoding.gain.entries()) {
      expect(gain).toBeCloseTo(1 / (gains[c] as number), 1);
    }
  });

  test('are led back by a half where the model has changed them, later by less', () => {
    const model = (frame: Frame, index: number) =>
      index === 0 ? frame : drifted(frame, [1.03, 1, 0.97], [2, 0, -2], index);
    const raw = continued(model, false);
    const { away } = continued(model);
    expect(away[second] as number).toBeLessThan(0.75 * (raw.away[second] as number));
    expect(Math.abs((away[frames - 1] as number) - (raw.away[frames - 1] as number))).toBeLessThan(
      0.2,
    );
  });

  test('are not changed by more than a tenth and 8 of 255', () => {
    const night = recoloured(drawn(), { gain: [0.3, 0.3, 0.3], offset: [0, 0, 0] });
    const { gain, offset } = fittedColours(night, drawn());
    expect(gain).toEqual([1.1, 1.1, 1.1]);
    expect(offset).toEqual([8, 8, 8]);
  });
});
