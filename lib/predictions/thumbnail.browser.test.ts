import { expect, test } from 'vitest';
import type { Framing } from '../contract';
import { makeThumbnail } from './thumbnail';

/** A picture whose left half is red and right half is transparent. */
async function halfTransparent(): Promise<Blob> {
  const canvas = new OffscreenCanvas(400, 400);
  const context = canvas.getContext('2d');
  if (!context) throw new Error('no canvas');
  context.fillStyle = '#ff0000';
  context.fillRect(0, 0, 200, 400);
  return canvas.convertToBlob();
}

/** Size of a thumbnail, and its colours at places from 0 to 1. */
async function look(
  framing: Framing | undefined,
  ...places: readonly (readonly [number, number])[]
) {
  const thumbnail = await makeThumbnail(await halfTransparent(), framing, '1280*720');
  if (!thumbnail) throw new Error('no thumbnail');
  const bitmap = await createImageBitmap(thumbnail);
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext('2d');
  context?.drawImage(bitmap, 0, 0);
  const colours = places.map(([x, y]) => {
    const pixel = context?.getImageData(Math.round(x * width), Math.round(y * height), 1, 1).data;
    // JPEG changes them a little.
    return [...(pixel ?? [])]
      .slice(0, 3)
      .map((value) => (value > 127 ? 1 : 0))
      .join('');
  });
  return { size: [width, height], colours };
}

const left = [0.2, 0.5] as const;
const right = [0.8, 0.5] as const;

test('a thumbnail shows the picture as the video does, transparent parts over the colour of the background', async () => {
  expect(await look(undefined, left, right)).toEqual({ size: [320, 180], colours: ['100', '111'] });
  const whole = { zoom: 0, x: 0.5, y: 0.5, background: '#00ff00' };
  const bar = [0.05, 0.5] as const;
  expect((await look(whole, bar, [0.4, 0.5], [0.6, 0.5])).colours).toEqual(['010', '100', '010']);
  // Twice as large, at the left edge of the picture: nothing transparent is in sight.
  const zoomed = { zoom: 2, x: 0, y: 0.5, background: 'blur' };
  expect((await look(zoomed, left, right)).colours).toEqual(['100', '100']);
});

test('what is no picture has no thumbnail', async () => {
  expect(await makeThumbnail(new Blob(['text']))).toBeNull();
});
