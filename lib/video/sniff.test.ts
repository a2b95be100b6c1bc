import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { KinoraError } from '../contract';
import { type ImageHeader, sniffImage } from './sniff';
import { fromBase64, tinyImages } from './testing/images';

/** A PNG chunk; its checksum is not looked at here. */
function chunk(type: string, data: Uint8Array): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(type, 4, 'latin1');
  bytes.set(data, 8);
  return bytes;
}

function png(width: number, height: number, pixels: Uint8Array = new Uint8Array(9)): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  const data = chunk('IDAT', deflateSync(pixels));
  return Buffer.concat([signature, chunk('IHDR', header), data, chunk('IEND', Buffer.alloc(0))]);
}

function segment(marker: number, body: readonly number[]): number[] {
  const length = body.length + 2;
  return [0xff, marker, length >> 8, length & 0xff, ...body];
}

function jpeg(width: number, height: number, frame = 0xc0): Uint8Array {
  const size = [height >> 8, height & 0xff, width >> 8, width & 0xff];
  const lines = height > 0 ? [] : segment(0xdc, [0, 77]);
  return Uint8Array.from([
    ...[0xff, 0xd8],
    // A thumbnail inside EXIF with a size and an end of its own: both must be stepped over.
    ...segment(0xe1, [...segment(0xc0, [8, 0, 9, 0, 9, 1, 1, 0x11, 0]), 0xff, 0xd9]),
    ...segment(0xc4, [0, 1, 2, 3]), // a Huffman table, in the middle of the frame markers
    ...segment(frame, [8, ...size, 1, 1, 0x11, 0]),
    ...segment(0xda, [1, 1, 0, 0, 63, 0]),
    ...[0x12, 0xff, 0x00, 0x34, 0xff, 0xd0, 0x56, 0xff, 0xff],
    ...lines,
    ...segment(0xda, [1, 1, 0, 0, 63, 0]),
    ...[0x78, 0xff, 0xd9],
  ]);
}

/** 24 bits a pixel, its rows from top to bottom. */
function bmp(): Uint8Array {
  const view = new DataView(new ArrayBuffer(54 + 3 * 16));
  view.setUint16(0, 0x424d);
  view.setUint32(2, view.byteLength, true);
  view.setUint32(10, 54, true);
  view.setUint32(14, 40, true);
  view.setInt32(18, 5, true);
  view.setInt32(22, -3, true);
  view.setUint16(28, 24, true);
  return new Uint8Array(view.buffer);
}

async function codeOf(bytes: Uint8Array): Promise<string> {
  try {
    await sniffImage(bytes);
    return 'accepted';
  } catch (error) {
    if (error instanceof KinoraError) return error.code;
    throw error;
  }
}

const samples: [name: string, bytes: Uint8Array, header: ImageHeader][] = [
  ['PNG', png(30, 20), { format: 'png', width: 30, height: 20 }],
  ['JPEG', jpeg(300, 200), { format: 'jpeg', width: 300, height: 200 }],
  ['progressive JPEG', jpeg(300, 200, 0xc2), { format: 'jpeg', width: 300, height: 200 }],
  ['JPEG that tells its height late', jpeg(9, 0), { format: 'jpeg', width: 9, height: 77 }],
  ['GIF', fromBase64(tinyImages.gif), { format: 'gif', width: 1, height: 1 }],
  ['AVIF', fromBase64(tinyImages.avif), { format: 'avif', width: 2, height: 2 }],
  ['BMP', bmp(), { format: 'bmp', width: 5, height: 3 }],
  ['lossy WebP', fromBase64(tinyImages.webpLossy), { format: 'webp', width: 1, height: 1 }],
  ['lossless WebP', fromBase64(tinyImages.webpLossless), { format: 'webp', width: 1, height: 1 }],
  ['WebP with alpha', fromBase64(tinyImages.webpAlpha), { format: 'webp', width: 1, height: 1 }],
];

describe.each(samples)('%s', (_name, bytes, header) => {
  test('its format and size are read', async () => {
    expect(await sniffImage(bytes)).toMatchObject(header);
  });

  test('garbage after its end is tolerated', async () => {
    const garbage = Uint8Array.from({ length: 50 }, (_, i) => (i * 91 + 7) & 0xff);
    expect(await sniffImage(Uint8Array.from([...bytes, ...garbage]))).toMatchObject(header);
    const zeros = new Uint8Array(20);
    expect(await sniffImage(Uint8Array.from([...bytes, ...zeros]))).toMatchObject(header);
  });

  test('cut off at any byte it is refused, but for an end without content', async () => {
    const end = header.format === 'png' ? 12 : header.format === 'gif' ? 1 : 0;
    for (let length = 1; length < bytes.length; length++) {
      const code = await codeOf(bytes.subarray(0, length));
      if (length === bytes.length - end) {
        expect(code).toBe('accepted');
        continue;
      }
      expect(['IMAGE_TRUNCATED', 'IMAGE_UNREADABLE'], `${length} bytes`).toContain(code);
      if (length >= 32) expect(code, `${length} bytes`).toBe('IMAGE_TRUNCATED');
    }
  });
});

test('the real image of the goldens is read', async () => {
  const bytes = await readFile('lib/models/wan/goldens/tiny-wan22-ti2v/image.png');
  expect(await sniffImage(bytes)).toEqual({
    format: 'png',
    width: 96,
    height: 64,
    isUpright: false,
    bytes,
  });
});

test('an empty file is refused', async () => {
  expect(await codeOf(new Uint8Array(0))).toBe('IMAGE_EMPTY');
});

test('20 MB are accepted, one byte more is not', async () => {
  const large = new Uint8Array(20_000_001);
  large.set(png(30, 20));
  expect(await codeOf(large.subarray(0, 20_000_000))).toBe('accepted');
  expect(await codeOf(large)).toBe('IMAGE_TOO_LARGE');
});

test.each([
  ['text', new TextEncoder().encode('This is certainly no image, whatever its name may say.')],
  ['SVG', new TextEncoder().encode('<svg xmlns="http://www.w3.org/2000/svg"></svg>')],
  ['MP4', new TextEncoder().encode('\0\0\0\x18ftypisom\0\0\0\0isomavc1----')],
  ['RIFF sound', new TextEncoder().encode('RIFF\x24\0\0\0WAVEfmt ')],
  ['an image without pixels', png(0, 20)],
])('%s is not an image', async (_name, bytes) => {
  expect(await codeOf(bytes)).toBe('IMAGE_UNREADABLE');
});

test.each([
  ['ftypheic\0\0\0\0mif1heic'],
  ['ftypmif1\0\0\0\0mif1heix'],
  ['ftypmsf1\0\0\0\0msf1hevc'],
])('HEIC has a sentence of its own: %j', async (box) => {
  expect(await codeOf(new TextEncoder().encode(`\0\0\0\x18${box}----`))).toBe('IMAGE_HEIC');
});

test('40 megapixels are accepted, one line more is not', async () => {
  expect(await codeOf(png(8000, 5000))).toBe('accepted');
  expect(await codeOf(png(8000, 5001))).toBe('IMAGE_TOO_MANY_PIXELS');
  const sentence = 'The image has 8000×5001 pixels, more than 40 megapixels.';
  await expect(sniffImage(png(8000, 5001))).rejects.toThrow(sentence);
  expect(await codeOf(png(2 ** 31 - 1, 2 ** 31 - 1))).toBe('IMAGE_TOO_MANY_PIXELS');
  expect(await codeOf(jpeg(65_535, 65_535))).toBe('IMAGE_TOO_MANY_PIXELS');
});

test('too many pixels are said before a missing end', async () => {
  expect(await codeOf(png(9000, 9000).subarray(0, 40))).toBe('IMAGE_TOO_MANY_PIXELS');
});

test('an end without any picture is an image that was cut', async () => {
  expect(await codeOf(Uint8Array.from([0xff, 0xd8, 0xff, 0xd9]))).toBe('IMAGE_TRUNCATED');
});

test('the larger of canvas and first picture counts for a GIF', async () => {
  const gif = fromBase64(tinyImages.gif);
  const at = gif.indexOf(0x2c, 13);
  new DataView(gif.buffer).setUint16(at + 5, 60_000, true);
  new DataView(gif.buffer).setUint16(at + 7, 60_000, true);
  expect(await codeOf(gif)).toBe('IMAGE_TOO_MANY_PIXELS');
});

describe('an end that is missing', () => {
  const read = (name: string) => new Uint8Array(readFileSync(new URL(name, import.meta.url)));
  const progressive = read('testing/progressive-no-eoi.jpg');
  const photo = read('../../public/samples/lighthouse.jpg');
  const cutPhoto = photo.slice(0, -2);
  const join = (...parts: readonly Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
  const golden = read('../models/wan/goldens/tiny-wan22-ti2v/image.png');
  const gif = fromBase64(tinyImages.gif);
  const marker = Uint8Array.of(0xff, 0xd9);
  const trailer = new TextEncoder().encode('SEFHk\0\0\0\x01\0\0\0SEFT');

  test.each([
    ['a progressive JPEG', progressive, join(progressive, marker)],
    ['a JPEG', cutPhoto, photo],
    ['a JPEG with the trailer of a phone in its place', join(cutPhoto, trailer), photo],
    ['a PNG', golden.slice(0, -12), golden],
    ['a GIF', gif.slice(0, -1), gif],
  ])('%s is whole, and gets one', async (_name, bytes, whole) => {
    const image = await sniffImage(bytes);
    expect(Buffer.compare(image.bytes, whole)).toBe(0);
  });

  test.each([
    ['progressive', progressive],
    ['baseline', cutPhoto],
  ])('a %s JPEG that ends anywhere before is cut', async (_name, bytes) => {
    const step = Math.ceil(bytes.length / 150);
    for (let cut = 1; cut < bytes.length; cut += cut < 20 ? 1 : step) {
      const part = bytes.slice(0, -cut);
      const code = part.length < 3 ? 'IMAGE_UNREADABLE' : 'IMAGE_TRUNCATED';
      expect(await codeOf(part), `${cut} bytes`).toBe(code);
      // A trailer that is longer than what is missing is read as that.
      if (cut < 200) continue;
      expect(await codeOf(join(part, trailer)), `${cut} bytes, trailer`).toBe('IMAGE_TRUNCATED');
    }
  });

  test('a PNG that ends between two of its chunks is cut', async () => {
    const rows = deflateSync(Buffer.alloc(20 * 91, 7), { level: 0 });
    const file = png(30, 20);
    const chunks = [0, 500, 1000].map((at) => chunk('IDAT', rows.subarray(at, at + 500)));
    const rest = chunk('IDAT', rows.subarray(1500));
    const start = file.subarray(0, 33);
    expect(await codeOf(join(start, ...chunks, rest))).toBe('accepted');
    for (const count of [1, 2, 3]) {
      expect(await codeOf(join(start, ...chunks.slice(0, count)))).toBe('IMAGE_TRUNCATED');
    }
  });
});

test('a JPEG that its Exif turns by a right angle is upright', async () => {
  const bytes = readFileSync(new URL('../../public/samples/lighthouse.jpg', import.meta.url));
  for (const [order, isLittle] of [
    ['II', true],
    ['MM', false],
  ] as const) {
    for (const [orientation, isUpright] of [
      [1, false],
      [3, false],
      [6, true],
      [9, false],
    ] as const) {
      const exif = new Uint8Array(44);
      const view = new DataView(exif.buffer);
      exif.set([0xff, 0xe1, 0, 42, ...new TextEncoder().encode(`Exif\0\0${order}`)]);
      const tiff = 10;
      view.setUint16(tiff + 2, 42, isLittle);
      view.setUint32(tiff + 4, 8, isLittle);
      view.setUint16(tiff + 8, 2, isLittle);
      view.setUint16(tiff + 10, 0x010f, isLittle); // the camera's maker, then the orientation
      view.setUint16(tiff + 22, 0x0112, isLittle);
      view.setUint16(tiff + 24, 3, isLittle);
      view.setUint32(tiff + 26, 1, isLittle);
      view.setUint16(tiff + 30, orientation, isLittle);
      const file = Buffer.concat([bytes.subarray(0, 20), exif, bytes.subarray(20)]);
      // The picture is 3:2.
      expect((await sniffImage(file)).isUpright, `${order} ${orientation}`).toBe(isUpright);
    }
  }
});

test('an AVIF that is turned by a quarter is upright', async () => {
  const bytes = Buffer.from(fromBase64(tinyImages.avif));
  // Twice as wide as high.
  bytes.writeUInt32BE(4, bytes.indexOf('ispe') + 8);
  for (const [angle, isTurned] of [
    [0, false],
    [1, true],
    [2, false],
    [3, true],
  ] as const) {
    const rotation = Buffer.concat([Buffer.of(0, 0, 0, 9), Buffer.from('irot'), Buffer.of(angle)]);
    const at = bytes.indexOf('ipco') + 4;
    const file = Buffer.concat([bytes.subarray(0, at), rotation, bytes.subarray(at)]);
    for (const box of ['ipco', 'iprp', 'meta']) {
      const size = file.indexOf(box) - 4;
      file.writeUInt32BE(file.readUInt32BE(size) + rotation.length, size);
    }
    expect((await sniffImage(file)).isUpright).toBe(isTurned);
  }
});
