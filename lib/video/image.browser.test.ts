import { describe, expect, test } from 'vitest';
import { decodeImage, type Pixels, toSmallJpeg } from './image';
import { fromBase64, tinyImages } from './testing/images';

type Color = readonly [number, number, number];
const red: Color = [255, 0, 0];
const green: Color = [0, 255, 0];
const blue: Color = [0, 0, 255];
const yellow: Color = [255, 255, 0];

/** An image of 48×32 with a colour in each corner: red, green above, blue, yellow below. */
async function corners(type: string, width = 48, height = 32): Promise<Blob> {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  if (!context) throw new Error('no canvas');
  for (const [i, color] of [red, green, blue, yellow].entries()) {
    context.fillStyle = `rgb(${color.join(' ')})`;
    context.fillRect(((i % 2) * width) / 2, ((i >> 1) * height) / 2, width / 2, height / 2);
  }
  return canvas.convertToBlob({ type, quality: 1 });
}

function pixelAt({ width, data }: Pixels, x: number, y: number): number[] {
  return [...data.subarray((y * width + x) * 4, (y * width + x) * 4 + 4)];
}

/** Which colour stands in each corner: top left, top right, bottom left, bottom right. */
function cornerColors(pixels: Pixels): string[] {
  const { width, height } = pixels;
  const names = new Map([
    [red, 'red'],
    [green, 'green'],
    [blue, 'blue'],
    [yellow, 'yellow'],
  ]);
  return [
    [4, 4],
    [width - 5, 4],
    [4, height - 5],
    [width - 5, height - 5],
  ].map(([x = 0, y = 0]) => {
    const pixel = pixelAt(pixels, x, y);
    for (const [color, name] of names) {
      if (color.every((value, c) => Math.abs(value - (pixel[c] ?? 0)) < 12)) return name;
    }
    return `unknown ${pixel}`;
  });
}

/** Puts an EXIF segment with nothing but an orientation behind the start of a JPEG. */
async function withOrientation(jpeg: Blob, orientation: number): Promise<Blob> {
  const exif = new Uint8Array(36);
  const view = new DataView(exif.buffer);
  view.setUint16(0, 0xffe1);
  view.setUint16(2, 34);
  exif.set(new TextEncoder().encode('Exif\0\0MM'), 4);
  view.setUint16(12, 42);
  view.setUint32(14, 8);
  view.setUint16(18, 1); // one entry
  view.setUint16(20, 0x0112); // orientation
  view.setUint16(22, 3); // of type SHORT
  view.setUint32(24, 1);
  view.setUint16(28, orientation);
  return new Blob([jpeg.slice(0, 2), exif, jpeg.slice(2)]);
}

test.each(['image/png', 'image/jpeg', 'image/webp'])('%s is decoded', async (type) => {
  const file = await corners(type);
  expect(file.type).toBe(type);
  const pixels = await decodeImage(file);
  expect([pixels.width, pixels.height]).toEqual([48, 32]);
  expect(cornerColors(pixels)).toEqual(['red', 'green', 'blue', 'yellow']);
});

test.each([
  ['gif', 1, 1],
  ['avif', 2, 2],
  ['webpLossy', 1, 1],
  ['webpLossless', 1, 1],
  ['webpAlpha', 1, 1],
] as const)('%s is decoded', async (name, width, height) => {
  const pixels = await decodeImage(new Blob([fromBase64(tinyImages[name])]));
  expect([pixels.width, pixels.height]).toEqual([width, height]);
  for (let i = 3; i < pixels.data.length; i += 4) expect(pixels.data[i]).toBe(255);
});

test('a BMP, and a JPEG without its end, are decoded', async () => {
  const bmp = new DataView(new ArrayBuffer(70));
  bmp.setUint16(0, 0x424d);
  bmp.setUint32(2, 70, true);
  bmp.setUint32(10, 54, true);
  bmp.setUint32(14, 40, true);
  bmp.setInt32(18, 2, true);
  bmp.setInt32(22, 2, true);
  bmp.setUint16(26, 1, true);
  bmp.setUint16(28, 24, true);
  bmp.setUint8(54 + 2, 200); // the red of the lower row's first pixel
  const pixels = await decodeImage(new Blob([bmp]));
  expect([pixels.width, pixels.height]).toEqual([2, 2]);
  expect(pixelAt(pixels, 0, 1)).toEqual([200, 0, 0, 255]);
  const jpeg = await corners('image/jpeg');
  const cut = await decodeImage(jpeg.slice(0, jpeg.size - 2));
  expect(cut).toEqual(await decodeImage(jpeg));
  const shorter = decodeImage(jpeg.slice(0, jpeg.size - 40));
  await expect(shorter).rejects.toMatchObject({ code: 'IMAGE_TRUNCATED' });
});

test('the numbers of a PNG come out unchanged, over many strips and whatever its type says', async () => {
  // 2,400 × 2,000 pixels are more than one strip.
  const [width, height] = [2400, 2000];
  const data = new Uint8ClampedArray(width * height * 4);
  for (let i = 0; i < data.length; i++)
    data[i] = i % 4 === 3 ? 255 : Math.imul(i, 2654435761) >>> 24;
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext('2d')?.putImageData(new ImageData(data, width, height), 0, 0);
  const png = await canvas.convertToBlob();
  const pixels = await decodeImage(new Blob([png], { type: 'text/plain' }));
  expect([pixels.width, pixels.height]).toEqual([width, height]);
  expect(pixels.data.every((value, i) => value === data[i])).toBe(true);
});

test('transparent parts become white, or the colour of the background', async () => {
  const canvas = new OffscreenCanvas(4, 1);
  const rows = [10, 20, 30, 255, 0, 0, 0, 0, 255, 0, 0, 128, 0, 0, 0, 128];
  canvas.getContext('2d')?.putImageData(new ImageData(Uint8ClampedArray.from(rows), 4, 1), 0, 0);
  const pixels = await decodeImage(await canvas.convertToBlob());
  expect(pixelAt(pixels, 0, 0)).toEqual([10, 20, 30, 255]);
  expect(pixelAt(pixels, 1, 0)).toEqual([255, 255, 255, 255]);
  expect(pixelAt(pixels, 2, 0)).toEqual([255, 127, 127, 255]);
  expect(pixelAt(pixels, 3, 0)).toEqual([127, 127, 127, 255]);
  const onGreen = await decodeImage(await canvas.convertToBlob(), '#00ff00');
  expect(pixelAt(onGreen, 0, 0)).toEqual([10, 20, 30, 255]);
  expect(pixelAt(onGreen, 1, 0)).toEqual([0, 255, 0, 255]);
});

test('a small JPEG has no more bytes than it may, however detailed the picture is', async () => {
  const [width, height] = [2000, 1000];
  const noise = new Uint8ClampedArray(width * height * 4);
  let state = 1;
  for (let at = 0; at < noise.length; at += 1) {
    state = (state * 48271) % 2147483647;
    noise[at] = at % 4 === 3 ? 255 : state & 255;
  }
  const small = await toSmallJpeg({ width, height, data: noise }, 200_000);
  expect(small.type).toBe('image/jpeg');
  expect(small.size).toBeLessThanOrEqual(200_000);
  const pixels = await decodeImage(small);
  expect(pixels.width / pixels.height).toBeCloseTo(2, 1);

  const plain = new Uint8ClampedArray(width * height * 4).fill(255);
  const bitmap = await createImageBitmap(
    await toSmallJpeg({ width, height, data: plain }, 200_000),
  );
  expect([bitmap.width, bitmap.height]).toEqual([1280, 640]);
});

describe('EXIF orientation', () => {
  // What lies in the corners when the stored image is turned as each value asks (Exif 2.32, 4.6.4).
  test.each([
    [1, ['red', 'green', 'blue', 'yellow']],
    [2, ['green', 'red', 'yellow', 'blue']],
    [3, ['yellow', 'blue', 'green', 'red']],
    [4, ['blue', 'yellow', 'red', 'green']],
    [5, ['red', 'blue', 'green', 'yellow']],
    [6, ['blue', 'red', 'yellow', 'green']],
    [7, ['yellow', 'green', 'blue', 'red']],
    [8, ['green', 'yellow', 'red', 'blue']],
  ])('%i is applied', async (orientation, expected) => {
    const pixels = await decodeImage(
      await withOrientation(await corners('image/jpeg'), orientation),
    );
    const size = orientation >= 5 ? [32, 48] : [48, 32];
    expect([pixels.width, pixels.height]).toEqual(size);
    expect(cornerColors(pixels)).toEqual(expected);
  });
});

// Files that are cut or no image are refused by their bytes: sniff.test.ts.
test('the right shape, but broken inside', async () => {
  const bytes = new Uint8Array(await (await corners('image/png')).arrayBuffer());
  const pixels = new TextDecoder('latin1').decode(bytes).indexOf('IDAT') + 4;
  bytes.fill(0xa5, pixels, pixels + new DataView(bytes.buffer).getUint32(pixels - 8));
  await expect(decodeImage(new Blob([bytes]))).rejects.toMatchObject({ code: 'IMAGE_UNREADABLE' });
});
