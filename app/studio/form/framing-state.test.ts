import { describe, expect, test } from 'vitest';
import { centred, placeImage } from '../../../lib/contract';
import { framingOfKey, hasBars, moved, pixelWarning, shownImage, zoomed } from './framing-state';

const frame = { width: 1280, height: 704 };
const video = { width: 1280, height: 720 };
const wide = { image: { width: 2000, height: 1000 }, frame, video };
const tall = { image: { width: 1000, height: 2000 }, frame, video };

describe('moving', () => {
  test('by a part of the video, as far as the image goes', () => {
    // Filling, 2000×1000 becomes 1408×704: 128 pixels of room.
    const left = moved(centred, wide, -0.05, 0.5);
    expect(left.x).toBeCloseTo(0.5 + (0.05 * 1280 * (704 / 720)) / 128);
    expect(left.y).toBe(0.5); // there is no room above and below
    expect(moved(centred, wide, -1, 0).x).toBe(1);
    expect(moved(centred, wide, 1, 0).x).toBe(0);
  });

  test('beside bars the image goes the same way', () => {
    const whole = { ...centred, zoom: 0 };
    expect(moved(whole, tall, 1, 0).x).toBe(1);
    expect(moved(whole, tall, -1, 0).x).toBe(0);
  });
});

test('zooming keeps what is in the middle there', () => {
  const start = { ...centred, zoom: 1.5, x: 0.7, y: 0.3 };
  const middle = (framing: typeof start) => {
    const { x, y } = placeImage(wide.image, framing, frame, video);
    return [(x.offset + 640) / x.resized, (y.offset + 352) / y.resized];
  };
  const next = zoomed(start, wide, 3);
  const [before, after] = [middle(start), middle(next)];
  for (const axis of [0, 1]) expect(after[axis]).toBeCloseTo(before[axis] as number, 2);
  expect(zoomed(start, wide, 99).zoom).toBe(4);
  expect(zoomed(start, wide, -1)).toMatchObject({ zoom: 0 });
});

test('keys move and zoom; other keys are left alone', () => {
  const key = (name: string, shiftKey = false) =>
    framingOfKey({ key: name, shiftKey }, centred, wide);
  expect(key('ArrowRight')?.x).toBeLessThan(0.5);
  expect(key('ArrowRight', true)?.x).toBeLessThan(key('ArrowRight')?.x ?? 0);
  expect(key('+')?.zoom).toBeCloseTo(1.1);
  expect(key('-')?.zoom).toBeCloseTo(0.9);
  expect(key('Tab')).toBeNull();
});

test('bars are those that the video shows', () => {
  const barsOf = (sizes: typeof wide, zoom: number) => {
    const framing = { ...centred, zoom };
    return hasBars(shownImage(placeImage(sizes.image, framing, frame, video), sizes));
  };
  expect([barsOf(wide, 0), barsOf(wide, 1), barsOf(tall, 0.9), barsOf(tall, 1)]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  // Of 1280×704 the video leaves out columns at both sides: 16:9 fits it without a bar to see.
  expect(barsOf({ ...wide, image: { width: 1920, height: 1080 } }, 0)).toBe(false);
});

test('too few pixels are said: of the image, or of what the zoom leaves', () => {
  const hd = { width: 1920, height: 1080 };
  expect(pixelWarning(hd, centred)).toBeNull();
  expect(pixelWarning({ width: 640, height: 900 }, centred)).toBeNull();
  expect(pixelWarning({ width: 900, height: 639 }, centred)).toMatch('900×639 pixels');
  expect(pixelWarning(hd, { ...centred, zoom: 2 })).toMatch('540 pixels of its short side');
  expect(pixelWarning(hd, { ...centred, zoom: 0 })).toBeNull();
});
