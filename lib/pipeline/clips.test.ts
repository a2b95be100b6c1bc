import { describe, expect, test } from 'vitest';
import { planClips } from './clips';
import { latentFrames } from './latents';

describe('planClips', () => {
  test('five seconds are one clip', () => {
    expect(planClips(121, 121, 4)).toEqual([{ frames: 121, dropFirst: false }]);
  });

  test('ten seconds are two full clips, the second without its first frame', () => {
    expect(planClips(241, 121, 4)).toEqual([
      { frames: 121, dropFirst: false },
      { frames: 121, dropFirst: true },
    ]);
  });

  test('six seconds end with a short clip', () => {
    expect(planClips(145, 121, 4)).toEqual([
      { frames: 121, dropFirst: false },
      { frames: 25, dropFirst: true },
    ]);
  });

  test.each([121, 81, 49, 9, 5, 241])('every duration adds up, in clips of up to %i', (longest) => {
    for (let duration = 5; duration <= 10; duration++) {
      const clips = planClips(24 * duration + 1, longest, 4);
      const shown = clips.reduce((sum, c) => sum + c.frames - (c.dropFirst ? 1 : 0), 0);
      expect(shown).toBe(24 * duration + 1);
      expect(clips.every((c) => c.frames % 4 === 1 && c.frames <= longest)).toBe(true);
      expect(clips.map((c) => c.dropFirst)).toEqual(clips.map((_, i) => i > 0));
    }
  });

  test('refuses frames that are not 4n+1', () => {
    expect(() => planClips(120, 121, 4)).toThrow(RangeError);
    expect(() => planClips(121, 120, 4)).toThrow(RangeError);
    expect(() => planClips(121, 1, 4)).toThrow(RangeError);
    expect(() => planClips(0, 121, 4)).toThrow(RangeError);
  });
});

test('latentFrames counts the first frame for itself', () => {
  expect(latentFrames(121, 4)).toBe(31);
  expect(latentFrames(9, 4)).toBe(3);
  expect(latentFrames(1, 4)).toBe(1);
  expect(() => latentFrames(10, 4)).toThrow(RangeError);
  expect(() => latentFrames(-3, 4)).toThrow(RangeError);
});
