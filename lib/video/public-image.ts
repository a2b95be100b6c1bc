import { joinBytes } from './bytes';
import { formatOf, type ImageFormat, sniffImage } from './sniff';

/**
 * A copy of an image file for others: the same pixels, without what cameras and programs write beside them (place,
 * time, device, prompts, thumbnails, a video behind the picture). Colour profile, orientation and animation stay,
 * because they decide how the pixels are shown. Bytes behind the image's end are left out.
 *
 * @param bytes that `sniffImage` gives
 */
export function publicImage(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const format = formatOf(bytes);
  if (format === null) throw new TypeError('Not an image of a known format.');
  return writers[format](bytes);
}

const writers: Record<ImageFormat, (bytes: Uint8Array) => Uint8Array<ArrayBuffer>> = {
  png: publicPng,
  jpeg: publicJpeg,
  webp: publicWebp,
  gif: publicGif,
  avif: publicAvif,
  bmp: publicBmp,
};

// The formats' references are in sniff.ts.

const pngChunks: readonly string[] = [
  ...['IHDR', 'PLTE', 'IDAT', 'IEND', 'tRNS', 'gAMA', 'cHRM', 'sRGB', 'iCCP', 'cICP', 'sBIT'],
  ...['bKGD', 'pHYs', 'acTL', 'fcTL', 'fdAT'],
];

function publicPng(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const view = viewOf(bytes);
  const parts = [bytes.subarray(0, 8)];
  for (let at = 8; at + 12 <= bytes.length; ) {
    const type = letters(bytes, at + 4);
    const end = at + 12 + view.getUint32(at);
    if (pngChunks.includes(type)) parts.push(bytes.subarray(at, end));
    if (type === 'IEND') break;
    at = end;
  }
  return joinBytes(parts);
}

/** Whether an image is shown higher than wide, turned as the Exif of a JPEG or an AVIF says. */
export async function isUpright(bytes: Uint8Array): Promise<boolean> {
  const { format, width, height } = await sniffImage(bytes);
  let isTurned = false;
  if (format === 'jpeg') {
    publicJpeg(bytes, (orientation) => {
      isTurned = orientation > 4;
    });
  }
  return isTurned ? width > height : height > width;
}

function publicJpeg(
  bytes: Uint8Array,
  onOrientation: (orientation: number) => void = () => undefined,
): Uint8Array<ArrayBuffer> {
  const view = viewOf(bytes);
  const parts = [bytes.subarray(0, 2)];
  let at = 2;
  while (at + 4 <= bytes.length) {
    const marker = bytes[at] === 0xff ? view.getUint8(at + 1) : 0;
    // Entropy-coded data, fill bytes, and markers without a length.
    const next = bytes.indexOf(0xff, at + 1);
    const isSegment = marker >= 0xc0 && marker !== 0xff && !(marker >= 0xd0 && marker <= 0xd9);
    if (marker === 0xd9) break;
    if (!isSegment) {
      const end = next < 0 ? bytes.length : next;
      parts.push(bytes.subarray(at, end));
      at = end;
      continue;
    }
    const end = at + 2 + Math.max(2, view.getUint16(at + 2));
    const segment = bytes.subarray(at, end);
    const isOther = (marker >= 0xe0 && marker <= 0xef) || marker === 0xfe;
    if (!isOther || jpegHeaders.some(([kind, name]) => kind === marker && names(segment, name))) {
      parts.push(segment);
    } else if (marker === 0xe1 && names(segment, 'Exif\0')) {
      const orientation = orientationOf(segment.subarray(10));
      onOrientation(orientation);
      if (orientation > 1) parts.push(orientationSegment(orientation));
    }
    at = end;
  }
  return joinBytes([...parts, Uint8Array.of(0xff, 0xd9)]);
}

/** Segments for programs that decide about the colours. */
const jpegHeaders: readonly (readonly [marker: number, name: string])[] = [
  [0xe0, 'JFIF\0'],
  [0xe2, 'ICC_PROFILE\0'],
  [0xee, 'Adobe'],
];

function names(segment: Uint8Array, name: string): boolean {
  return String.fromCharCode(...segment.subarray(4, 4 + name.length)) === name;
}

/** The orientation in the first directory of Exif (2.32, 4.6.4), 1 for none. */
function orientationOf(tiff: Uint8Array): number {
  const view = viewOf(tiff);
  const little = tiff[0] === 0x49;
  if (tiff.length < 8) return 1;
  const directory = view.getUint32(4, little);
  if (directory + 2 > tiff.length) return 1;
  const count = view.getUint16(directory, little);
  for (
    let at = directory + 2;
    at < directory + 2 + 12 * count && at + 12 <= tiff.length;
    at += 12
  ) {
    if (view.getUint16(at, little) !== 0x0112) continue;
    const value = view.getUint16(at + 8, little);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

/** Exif with nothing but an orientation. */
function orientationSegment(orientation: number): Uint8Array {
  const directory = [0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0];
  const text = [...'Exif\0\0MM'].map((character) => character.charCodeAt(0));
  return Uint8Array.of(0xff, 0xe1, 0, 34, ...text, 0, 42, 0, 0, 0, 8, ...directory);
}

const webpChunks: readonly string[] = ['VP8X', 'ICCP', 'ANIM', 'ANMF', 'ALPH', 'VP8 ', 'VP8L'];

function publicWebp(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const view = viewOf(bytes);
  const whole = Math.min(bytes.length, 8 + view.getUint32(4, true));
  const parts: Uint8Array[] = [];
  for (let at = 12; at + 8 <= whole; ) {
    const length = view.getUint32(at + 4, true);
    const end = at + 8 + length + (length & 1);
    const type = letters(bytes, at);
    const chunk = bytes.slice(at, end);
    // The flags that there is Exif and XMP.
    if (type === 'VP8X') chunk[8] = (chunk[8] ?? 0) & ~0x0c;
    if (webpChunks.includes(type)) parts.push(chunk);
    at = end;
  }
  const head = bytes.slice(0, 12);
  const size = parts.reduce((sum, part) => sum + part.length, 4);
  viewOf(head).setUint32(4, size, true);
  return joinBytes([head, ...parts]);
}

function publicGif(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const tableBytes = (flags = 0) => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);
  let at = 13 + tableBytes(bytes[10]);
  const parts = [bytes.subarray(0, at)];
  while (at < bytes.length) {
    const start = at;
    const block = bytes[at];
    if (block !== 0x21 && block !== 0x2c) break;
    const label = block === 0x21 ? bytes[at + 1] : undefined;
    at += block === 0x21 ? 2 : 11 + tableBytes(bytes[at + 9]);
    const name = String.fromCharCode(...bytes.subarray(at + 1, at + 12));
    for (let size = bytes[at] ?? 0; size > 0; size = bytes[at] ?? 0) at += 1 + size;
    at += 1;
    // Comments, texts and data of programs: of these only the number of repetitions is shown.
    const isShown =
      label === undefined || label === 0xf9 || (label === 0xff && name === 'NETSCAPE2.0');
    if (isShown) parts.push(bytes.subarray(start, at));
  }
  return joinBytes([...parts, Uint8Array.of(0x3b)]);
}

/** A profile in another file is named by its place on the sender's computer. */
function publicBmp(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = bytes.slice();
  const view = viewOf(copy);
  const hasProfile = view.getUint32(14, true) === 124;
  if (!hasProfile || letters(copy, 70) !== 'KNIL') return copy;
  const at = 14 + view.getUint32(126, true);
  copy.fill(0, at, at + view.getUint32(130, true)).fill(0, 126, 134);
  view.setUint32(70, 0x73524742, true); // sRGB
  return copy;
}

/** Items of Exif and XMP, and boxes that hold no picture, are overwritten with zeros: offsets stay as they are. */
function publicAvif(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = bytes.slice();
  const view = viewOf(copy);
  const outer = boxesOf(view, 0, copy.length);
  for (const { type, start, end } of outer) {
    if (!['ftyp', 'meta', 'moov', 'mdat'].includes(type)) copy.fill(0, start, end);
    if (type !== 'meta') continue;
    const inner = boxesOf(view, start + 4, end);
    const hidden = hiddenItems(view, inner);
    const data = inner.find((box) => box.type === 'idat');
    for (const { item, inData, from, to } of extentsOf(view, inner)) {
      const origin = inData ? (data?.start ?? Number.POSITIVE_INFINITY) : 0;
      if (hidden.has(item) && origin + to <= copy.length) copy.fill(0, origin + from, origin + to);
    }
  }
  return copy;
}

interface Box {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

function boxesOf(view: DataView, from: number, to: number): Box[] {
  const boxes: Box[] = [];
  for (let at = from; at + 8 <= to; ) {
    const short = view.getUint32(at);
    const header = short === 1 ? 16 : 8;
    if (at + header > to) break;
    const size = short === 1 ? Number(view.getBigUint64(at + 8)) : short === 0 ? to - at : short;
    if (size < header || at + size > to) break;
    const type = String.fromCharCode(...[4, 5, 6, 7].map((offset) => view.getUint8(at + offset)));
    boxes.push({ type, start: at + header, end: at + size });
    at += size;
  }
  return boxes;
}

/** Ids of the items that are no picture (ISO/IEC 14496-12, 8.11.6). */
function hiddenItems(view: DataView, meta: readonly Box[]): Set<number> {
  const info = meta.find(({ type }) => type === 'iinf');
  if (!info) return new Set();
  const entries = boxesOf(view, info.start + (view.getUint8(info.start) === 0 ? 6 : 8), info.end);
  const hidden = entries.flatMap(({ start }) => {
    const isLong = view.getUint8(start) === 3;
    const item = isLong ? view.getUint32(start + 4) : view.getUint16(start + 4);
    const kind = letters(bytesOf(view), start + (isLong ? 10 : 8));
    return kind === 'Exif' || kind === 'mime' || kind === 'uri ' ? [item] : [];
  });
  return new Set(hidden);
}

interface Extent {
  readonly item: number;
  /** Whether it counts from the start of `idat`, and not of the file. */
  readonly inData: boolean;
  readonly from: number;
  readonly to: number;
}

/** Where the bytes of the items are (ISO/IEC 14496-12, 8.11.3). */
function extentsOf(view: DataView, meta: readonly Box[]): Extent[] {
  const places = meta.find(({ type }) => type === 'iloc');
  if (!places) return [];
  let at = places.start;
  const read = (size: number): number => {
    if (at + size > places.end) throw new RangeError('The places of an image end too early.');
    let value = 0;
    for (const end = at + size; at < end; at += 1) value = value * 256 + view.getUint8(at);
    return value;
  };
  const version = read(1);
  read(3);
  const sizes = read(2);
  const [offsetSize, lengthSize, baseSize] = [sizes >> 12, (sizes >> 8) & 15, (sizes >> 4) & 15];
  const indexSize = version === 0 ? 0 : sizes & 15;
  const wide = version === 2 ? 4 : 2;
  const extents: Extent[] = [];
  for (let count = read(wide); count > 0; count -= 1) {
    const item = read(wide);
    const inData = version > 0 && (read(2) & 15) === 1;
    read(2);
    const base = read(baseSize);
    for (let parts = read(2); parts > 0; parts -= 1) {
      read(indexSize);
      const from = base + read(offsetSize);
      extents.push({ item, inData, from, to: from + read(lengthSize) });
    }
  }
  return extents;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function bytesOf(view: DataView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

function letters(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}
