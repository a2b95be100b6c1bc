import { readFile } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { isUpright, publicImage } from './public-image';
import { sniffImage } from './sniff';
import { fromBase64, tinyImages } from './testing/images';

const place = 'GPS 59.3293 N 18.0686 E';
const text = Buffer.from(place);

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(data.length);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}

const golden = new URL('../models/wan22/goldens/image.png', import.meta.url);

test('a PNG without metadata stays as it is', async () => {
  const bytes = await readFile(golden);
  expect(Buffer.from(publicImage(bytes)).equals(bytes)).toBe(true);
});

test('texts, Exif and what is behind the end of a PNG are left out', async () => {
  const bytes = await readFile(golden);
  const start = bytes.subarray(0, 33);
  const chunks = ['tEXt', 'zTXt', 'iTXt', 'eXIf', 'tIME'].map((type) => pngChunk(type, text));
  const file = Buffer.concat([start, ...chunks, bytes.subarray(33), text]);
  await sniffImage(file);
  expect(Buffer.from(publicImage(file)).equals(bytes)).toBe(true);
});

test('a JPEG keeps orientation and colours, and loses place, comment, thumbnail and the video behind it', async () => {
  const bytes = await readFile(new URL('../../public/samples/lighthouse.jpg', import.meta.url));
  const segment = (marker: number, ...parts: readonly (Buffer | string)[]) => {
    const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
    const head = Buffer.of(0xff, marker, 0, 0);
    head.writeUInt16BE(body.length + 2, 2);
    return Buffer.concat([head, body]);
  };
  const exif = (little: boolean) => {
    const tiff = Buffer.alloc(34);
    tiff.write(little ? 'II' : 'MM');
    const [u16, u32] = little
      ? ([tiff.writeUInt16LE, tiff.writeUInt32LE] as const)
      : ([tiff.writeUInt16BE, tiff.writeUInt32BE] as const);
    u16.call(tiff, 42, 2);
    u32.call(tiff, 8, 4);
    u16.call(tiff, 2, 8);
    u16.call(tiff, 0x010f, 10); // the camera's maker, then the orientation
    u16.call(tiff, 0x0112, 22);
    u16.call(tiff, 3, 24);
    u32.call(tiff, 1, 26);
    u16.call(tiff, 6, 30);
    return segment(0xe1, 'Exif\0\0', tiff, text);
  };
  const profile = segment(0xe2, 'ICC_PROFILE\0', Buffer.of(1, 1), 'profile');
  for (const little of [true, false]) {
    const file = Buffer.concat([
      bytes.subarray(0, 20),
      ...[exif(little), segment(0xe1, 'http://ns.adobe.com/xap/1.0/\0', text), profile],
      ...[segment(0xe2, 'MPF\0', text), segment(0xed, 'Photoshop 3.0\0', text)],
      segment(0xfe, text),
      bytes.subarray(20),
      text,
    ]);
    await sniffImage(file);
    // The picture is 3:2; the orientation 6 turns it by a right angle.
    expect([await isUpright(bytes), await isUpright(file)]).toEqual([false, true]);
    const copy = Buffer.from(publicImage(file));
    const kept = copy.subarray(20, 56);
    expect(kept.includes('Exif')).toBe(true);
    // Count, tag, type, count, value of the one entry, big-endian.
    expect(kept.subarray(18, 30).toString('hex')).toBe('000101120003000000010006');
    const rest = Buffer.concat([copy.subarray(0, 20), copy.subarray(56)]);
    expect(rest.equals(Buffer.concat([bytes.subarray(0, 20), profile, bytes.subarray(20)]))).toBe(
      true,
    );
  }
});

test('a GIF keeps its repetitions and loses its comments', async () => {
  const bytes = Buffer.from(fromBase64(tinyImages.gif));
  const head = bytes.subarray(0, 19);
  const block = (label: number, ...parts: readonly Buffer[]) =>
    Buffer.concat([
      Buffer.of(0x21, label),
      ...parts.flatMap((part) => [Buffer.of(part.length), part]),
      Buffer.of(0),
    ]);
  const loop = block(0xff, Buffer.from('NETSCAPE2.0'), Buffer.of(1, 0, 0));
  const hidden = [block(0xfe, text), block(0xff, Buffer.from('XMP DataXMP'), text)];
  const file = Buffer.concat([head, loop, ...hidden, bytes.subarray(19), text]);
  await sniffImage(file);
  const wanted = Buffer.concat([head, loop, bytes.subarray(19)]);
  expect(Buffer.from(publicImage(file)).equals(wanted)).toBe(true);
});

test.each(['webpLossy', 'webpLossless', 'webpAlpha', 'gif', 'avif'] as const)(
  'a %s without metadata stays as it is',
  (name) => {
    const bytes = fromBase64(tinyImages[name]);
    expect(Buffer.from(publicImage(bytes)).equals(Buffer.from(bytes))).toBe(true);
  },
);

test('Exif and XMP of a WebP are left out, with their flags', async () => {
  const bytes = Buffer.from(fromBase64(tinyImages.webpAlpha));
  const chunk = (type: string) => {
    const head = Buffer.alloc(8);
    head.write(type);
    head.writeUInt32LE(text.length, 4);
    return Buffer.concat([head, text, Buffer.alloc(text.length & 1)]);
  };
  const file = Buffer.concat([bytes, chunk('EXIF'), chunk('XMP ')]);
  file.writeUInt32LE(file.length - 8, 4);
  file[20] = (file[20] ?? 0) | 0x0c;
  await sniffImage(file);
  expect(Buffer.from(publicImage(file)).equals(bytes)).toBe(true);
});

test('the Exif item of an AVIF is overwritten', async () => {
  const bytes = Buffer.from(fromBase64(tinyImages.avif));
  // A second item at the end of the file; the boxes before the picture grow by as much as is inserted.
  const info = Buffer.from('0000001a696e6665020000000002000045786966', 'hex');
  const entry = Buffer.concat([info, Buffer.from('Exif\0\0')]);
  const place2 = Buffer.alloc(14);
  const grown = entry.length + place2.length;
  const insert = (file: Buffer, box: string, more: Buffer, count: number): Buffer => {
    const at = file.indexOf(box) - 4;
    const size = file.readUInt32BE(at);
    const whole = Buffer.concat([file.subarray(0, at + size), more, file.subarray(at + size)]);
    whole.writeUInt32BE(size + more.length, at);
    whole.writeUInt16BE(2, at + count);
    const meta = whole.indexOf('meta') - 4;
    whole.writeUInt32BE(whole.readUInt32BE(meta) + more.length, meta);
    return whole;
  };
  place2.writeUInt16BE(2, 0);
  place2.writeUInt16BE(1, 4);
  place2.writeUInt32BE(bytes.length + grown + 8, 6);
  place2.writeUInt32BE(text.length, 10);
  let file = insert(bytes, 'iloc', place2, 14);
  file = insert(file, 'iinf', entry, 12);
  const location = file.indexOf('iloc') - 4;
  // The picture's own place.
  file.writeUInt32BE(file.readUInt32BE(location + 22) + grown, location + 22);
  const data = Buffer.alloc(8);
  data.writeUInt32BE(text.length + 8);
  data.write('mdat', 4);
  file = Buffer.concat([file, data, text]);
  await sniffImage(file);
  const copy = Buffer.from(publicImage(file));
  expect(copy.includes('GPS')).toBe(false);
  expect(copy.subarray(0, -text.length).equals(file.subarray(0, -text.length))).toBe(true);
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
    expect(await isUpright(file)).toBe(isTurned);
  }
});

test('the name of a file with the colour profile of a BMP is overwritten', async () => {
  const name = Buffer.from('C:\\Users\\ann\\profile.icm\0');
  const file = Buffer.concat([Buffer.alloc(14 + 124 + 12), name]);
  file.write('BM');
  file.writeUInt32LE(file.length, 2);
  file.writeUInt32LE(138, 10);
  file.writeUInt32LE(124, 14);
  file.writeInt32LE(3, 18);
  file.writeInt32LE(1, 22);
  file.writeUInt16LE(24, 28);
  file.write('KNIL', 70, 'latin1');
  file.writeUInt32LE(136, 126);
  file.writeUInt32LE(name.length, 130);
  await sniffImage(file);
  const copy = Buffer.from(publicImage(file));
  expect(copy.includes('ann')).toBe(false);
  expect(copy.subarray(150).every((byte) => byte === 0)).toBe(true);
  expect([copy.length, copy.toString('latin1', 70, 74)]).toEqual([file.length, 'BGRs']);
  // One that is inside stays.
  file.write('DEBM', 70, 'latin1');
  expect(Buffer.from(publicImage(file)).equals(file)).toBe(true);
});
