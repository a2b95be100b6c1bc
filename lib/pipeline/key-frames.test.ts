import { expect, test } from 'vitest';
import { PictureFades } from './key-frames';
import type { Frame } from './latents';

/** A picture of one value. */
const flat = (value: number): Frame => ({
  width: 1,
  height: 1,
  data: new Float32Array(3).fill(value),
});

/** What is shown of frames that are decoded to their number. */
function shown(fades: PictureFades, count: number): number[] {
  return Array.from({ length: count }, (_, i) => fades.next(flat(i), i).data[0] ?? Number.NaN);
}

test('frames fade into a picture, and what it differs by fades out behind it', () => {
  const picture = { frame: 4, image: flat(8), fade: 2, until: 11 };
  const fades = new PictureFades([picture], 4);
  // Decoded to 4, the frame shows 8: three, two and one quarter of the difference are left.
  expect(shown(fades, 10)).toEqual([0, 1, 2, (3 + 8) / 2, 8, 5 + 3, 6 + 2, 7 + 1, 8, 9]);
  const changed = Array.from({ length: 10 }, (_, i) => fades.changes(i));
  expect(changed).toEqual(
    [3, 4, 5, 6, 7].reduce((all, i) => all.with(i, true), new Array(10).fill(false)),
  );
});

test('a picture changes nothing behind the frame that it may change last', () => {
  const picture = { frame: 4, image: flat(8), fade: 2, until: 5 };
  const fades = new PictureFades([picture], 4);
  expect(shown(fades, 8)).toEqual([0, 1, 2, 5.5, 8, 8, 6, 7]);
  expect([5, 6].map((i) => fades.changes(i))).toEqual([true, false]);
});

test('a loop ends in its first frame as it was decoded, also behind another picture', () => {
  const pictures = [
    { frame: 2, image: flat(4), fade: 2, until: 6 },
    { frame: 6, image: null, fade: 4, until: 6 },
  ];
  const frames = shown(new PictureFades(pictures, 2), 7);
  expect(frames[2]).toBe(4);
  expect(frames[6]).toBe(0);
  expect(frames[5]).toBe(5 / 4);
});
