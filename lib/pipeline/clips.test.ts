import { describe, expect, test } from 'vitest';
import { planClips } from './clips';
import { latentFrames } from './latents';

describe('planClips', () => {
  test('five seconds are one clip', () => {
    expect(planClips(121, 121, 4)).toEqual([{ frames: 121, shared: 0, last: 120 }]);
  });

  test('ten seconds are two full clips, the second from the last frame of the first', () => {
    expect(planClips(241, 121, 4)).toEqual([
      { frames: 121, shared: 0, last: 120 },
      { frames: 121, shared: 1, last: 240 },
    ]);
  });

  test('six seconds end with a short clip', () => {
    expect(planClips(145, 121, 4)).toEqual([
      { frames: 121, shared: 0, last: 120 },
      { frames: 25, shared: 1, last: 144 },
    ]);
  });

  test('more that it shares with the clip before comes on top of what a clip adds', () => {
    expect(planClips(241, 121, 4, { shared: 2 })).toEqual([
      { frames: 121, shared: 0, last: 120 },
      { frames: 125, shared: 2, last: 240 },
    ]);
    expect(planClips(121, 121, 4, { shared: 3, fromFirst: true })).toEqual([
      { frames: 129, shared: 3, last: 120 },
    ]);
  });

  test.each([121, 81, 49, 9, 5, 241])('every duration adds up, in clips of up to %i', (longest) => {
    for (let duration = 5; duration <= 10; duration++) {
      const clips = planClips(24 * duration + 1, longest, 4);
      const shown = clips.reduce((sum, c) => sum + c.frames - c.shared, 0);
      expect(shown).toBe(24 * duration + 1);
      expect(clips.every((c) => c.frames % 4 === 1 && c.frames <= longest)).toBe(true);
      expect(clips.map((c) => c.shared)).toEqual(clips.map((_, i) => Math.min(i, 1)));
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
