import { expect, test } from 'vitest';
import type { Pixels } from '../../../video/image';
import { lumaOf, meanLab, measureVideo, motion, psnr, shrunk, ssim } from './measures';
import { type ComparedClip, endsOf, summaryOf, withClip } from './record';
import { compareScenes } from './scenes';

const [width, height] = [320, 256];

/** A picture of smooth, uneven texture that lies `shift` pixels to the right. */
function picture(shift = 0, change = (value: number) => value): Pixels {
  const data = new Uint8ClampedArray(width * height * 4).fill(255);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const u = x - shift;
      const value =
        128 + 40 * Math.sin(u / 9 + y / 23) + 30 * Math.cos(u / 31 - y / 7) + 40 * Math.sin(u / 2);
      for (let k = 0; k < 3; k++) data[4 * (y * width + x) + k] = change(value);
    }
  }
  return { width, height, data };
}
async function* video(...frames: Pixels[]) {
  yield* frames;
}
const still = picture();
const frames = (make: (i: number) => Pixels) =>
  video(...Array.from({ length: 9 }, (_, i) => make(i)));

test('a video that is its start image has nothing to complain of, and no motion', async () => {
  const same = await measureVideo(
    still,
    frames(() => still),
    true,
  );
  expect(same).toMatchObject({ flicker: 0, flow: 0, colour_drift: 0, end_psnr: 100 });
  expect(same.first_frame_ssim).toBeCloseTo(1, 6);
  expect(same.sharpness.map((value) => value.toFixed(6))).toEqual(Array(9).fill('1.000000'));
  // Without any motion there is no usual step that the seam could be compared with.
  expect(same.loop_seam).toBeNull();
});

test('each figure tells what it is for from the others', async () => {
  const pan = await measureVideo(
    still,
    frames((i) => picture(4 * i)),
    true,
  );
  // 4 pixels a frame, in a picture a quarter as wide.
  const share = pan.flow / ((4 * 1280) / width);
  expect(share).toBeGreaterThan(0.8);
  expect(share).toBeLessThan(1.2);
  expect(pan.loop_seam).toBeGreaterThan(1.5);
  expect(pan.first_frame_ssim).toBeCloseTo(1, 6);

  const flickering = await measureVideo(
    still,
    frames((i) => picture(0, (value) => value + (i % 2) * 6)),
    false,
  );
  expect(flickering.flicker).toBeCloseTo(6, 0);
  expect([flickering.flow, flickering.end_psnr, flickering.loop_seam]).toEqual([0, null, null]);

  const fading = await measureVideo(
    still,
    frames((i) => picture(0, (value) => 128 + (value - 128) * (1 - i / 10))),
    false,
  );
  expect(fading.sharpness.at(-1)).toBeCloseTo(0.2, 1);
  expect(fading.flicker).toBeLessThan(1);
});

test('the figures are those of their definitions', () => {
  const grey = (level: number): Pixels => {
    const data = new Uint8ClampedArray(16 * 16 * 4).fill(level);
    return { width: 16, height: 16, data };
  };
  expect(psnr(grey(100), grey(110))).toBeCloseTo(10 * Math.log10(255 ** 2 / 100), 9);
  // Two plain pictures differ in the first factor only: (2ab + c) / (a² + b² + c).
  const c = 2.55 ** 2;
  const expected = (2 * 100 * 110 + c) / (100 ** 2 + 110 ** 2 + c);
  expect(ssim(lumaOf(grey(100)), lumaOf(grey(110)))).toBeCloseTo(expected, 6);
  const [l, a, b] = meanLab(grey(255));
  expect(l).toBeCloseTo(100, 2);
  expect(Math.hypot(a, b)).toBeLessThan(0.05);
  // CIE Lab of #777777.
  expect(meanLab(grey(0x77))[0]).toBeCloseTo(50.03, 1);
  const [from, to] = [shrunk(lumaOf(picture()), 2), shrunk(lumaOf(picture(6)), 2)];
  expect(motion(from, to)).toBeCloseTo(3, 0);
});

test('there are twenty start images, each drawn otherwise; the summary is of one clip a scene and column', () => {
  expect(new Set(compareScenes.map(({ name }) => name)).size).toBe(20);
  expect(new Set(compareScenes.map(({ svg }) => svg)).size).toBe(20);
  const measures = { first_frame_ssim: 1, sharpness: [1], flicker: 0, colour_drift: 0 };
  const clip = (scene: string, column: string, flow: number): ComparedClip => ({
    scene,
    column,
    prompt: '',
    seed: 1,
    image_sha256: '',
    profile: column,
    applied: null,
    seconds: { total: 1, sampling: 1, decode: 0 },
    image: '',
    video: '',
    measures: { ...measures, flow, end_psnr: null, loop_seam: null },
  });
  const clips = [clip('a', 'x', 9), clip('b', 'x', 4), clip('a', 'y', 1), clip('a', 'x', 2)].reduce(
    withClip,
    [] as ComparedClip[],
  );
  expect(summaryOf(clips)).toMatchObject({ x: { flow: 3 }, y: { flow: 1, end_psnr: null } });
});

test('an end image is better made in the way whose median PSNR is higher', () => {
  const ends = (...decibels: number[]) => {
    const [own, alone, repeated] = decibels.map((psnr) => ({ psnr, step: 1 / psnr }));
    if (!own || !alone || !repeated) throw new TypeError('there are three');
    return { own, alone, repeated };
  };
  const made = endsOf([ends(40, 30, 32), ends(41, 38, 33), ends(42, 31, 34)]);
  expect(made).toMatchObject({ alone: { psnr: 31, step: 1 / 31 }, better: 'repeated' });
  expect(endsOf([ends(40, 32, 30)]).better).toBe('alone');
});
