import { KinoraError, maxImageBytes, maxImagePixels } from '../contract';
import { joinBytes } from './bytes';
import { endOfScans } from './jpeg-scans';

/** The formats that are read: what is not here is refused. */
export const imageFormats = ['png', 'jpeg', 'webp', 'gif', 'avif', 'bmp'] as const;
export type ImageFormat = (typeof imageFormats)[number];

/** Format and size of an image file, from its header. */
export interface ImageHeader {
  readonly format: ImageFormat;
  /** As stored, before any EXIF rotation. */
  readonly width: number;
  readonly height: number;
}

export interface CheckedImage<T extends Uint8Array> extends ImageHeader {
  /** Whether it is shown higher than wide, turned as the Exif of a JPEG or an AVIF says. */
  readonly isUpright: boolean;
  /** The file, or where it has no end, a copy that has one. */
  readonly bytes: T | Uint8Array<ArrayBuffer>;
}

/** A parsed file: sizes are 0 where they are not known, `complete` says whether the image is whole. */
interface Parsed {
  readonly width: number;
  readonly height: number;
  readonly complete: boolean;
  /** Whether Exif turns it by a right angle. */
  readonly isTurned?: boolean;
  /** The file with an end and nothing behind it, where it has none of its own. */
  readonly mended?: Uint8Array<ArrayBuffer>;
  /** The compressed rows of a PNG without an end: only they tell whether all are there. */
  readonly rows?: readonly Uint8Array<ArrayBuffer>[];
}

/**
 * Checks format, size and completeness of an image file by its bytes. Browsers decode an incomplete JPEG
 * without an error, and decode before they count pixels (README, "Images"). Bytes after the image's end are
 * allowed; so is an end that is missing behind a whole image.
 *
 * @throws KinoraError `IMAGE_EMPTY`, `IMAGE_TOO_LARGE`, `IMAGE_UNREADABLE`, `IMAGE_HEIC`,
 * `IMAGE_TOO_MANY_PIXELS` or `IMAGE_TRUNCATED`
 */
export async function sniffImage<T extends Uint8Array>(bytes: T): Promise<CheckedImage<T>> {
  checkImageBytes(bytes.length);
  const format = formatOf(bytes);
  if (format === null) {
    throw new KinoraError(isHeic(bytes) ? 'IMAGE_HEIC' : 'IMAGE_UNREADABLE');
  }
  const { width, height, complete, mended, rows, isTurned } = parsers[format](bytes);
  if (width * height > maxImagePixels) {
    throw new KinoraError(
      'IMAGE_TOO_MANY_PIXELS',
      `The image has ${width}×${height} pixels, more than ${maxImagePixels / 1e6} megapixels.`,
    );
  }
  if (!complete || (rows && !(await isWhole(rows)))) throw new KinoraError('IMAGE_TRUNCATED');
  if (width === 0 || height === 0) throw new KinoraError('IMAGE_UNREADABLE');
  const isUpright = isTurned ? width > height : height > width;
  return { format, width, height, isUpright, bytes: mended ?? bytes };
}

/**
 * Checks the size of an image file, before it is read.
 *
 * @throws KinoraError `IMAGE_EMPTY` or `IMAGE_TOO_LARGE`
 */
export function checkImageBytes(byteLength: number): void {
  if (byteLength === 0) throw new KinoraError('IMAGE_EMPTY');
  if (byteLength > maxImageBytes) throw new KinoraError('IMAGE_TOO_LARGE');
}

const parsers: Record<ImageFormat, (bytes: Uint8Array) => Parsed> = {
  png: parsePng,
  jpeg: parseJpeg,
  webp: parseWebp,
  gif: parseGif,
  avif: parseAvif,
  bmp: parseBmp,
};

/** The format of an image file by its first bytes; null for another one. */
export function formatOf(bytes: Uint8Array): ImageFormat | null {
  if (text(bytes, 1, 7) === 'PNG\r\n\x1a\n' && bytes[0] === 0x89) return 'png';
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return 'jpeg';
  if (text(bytes, 0, 4) === 'RIFF' && text(bytes, 8, 4) === 'WEBP') return 'webp';
  if (/^GIF8[79]a$/.test(text(bytes, 0, 6))) return 'gif';
  if (text(bytes, 0, 2) === 'BM' && bmpHeaders.includes(u32le(bytes, 14))) return 'bmp';
  return /^(.{4})*avi[fs]/s.test(brandsOf(bytes)) ? 'avif' : null;
}

/** HEIC has the container of AVIF with brands of its own: ISO/IEC 23008-12, annex B. */
function isHeic(bytes: Uint8Array): boolean {
  return /^(.{4})*(hei[cxms]|hev[cxms])/s.test(brandsOf(bytes));
}

/**
 * The brands of an ISO file, four letters each; empty for another file. The major one, which is the first, may be
 * the generic `mif1`; then the format is one of the compatible brands.
 */
function brandsOf(bytes: Uint8Array): string {
  if (text(bytes, 4, 4) !== 'ftyp') return '';
  return text(bytes, 8, Math.min(u32(bytes, 0), 256) - 8);
}

// PNG, chunks of length · type · data · checksum: https://www.w3.org/TR/png-3/#5Chunk-layout
function parsePng(bytes: Uint8Array): Parsed {
  const known = text(bytes, 12, 4) === 'IHDR' && bytes.length >= 24;
  const width = known ? u32(bytes, 16) : 0;
  const height = known ? u32(bytes, 20) : 0;
  const rows: Uint8Array<ArrayBuffer>[] = [];
  let at = 8;
  for (; at + 12 <= bytes.length; at += 12 + u32(bytes, at)) {
    const type = text(bytes, at + 4, 4);
    if (type === 'IDAT') rows.push(bytes.slice(at + 8, at + 8 + u32(bytes, at)));
    if (type === 'IEND') return { width, height, complete: rows.length > 0 };
  }
  if (at !== bytes.length) return { width, height, complete: false };
  return { width, height, complete: true, rows, mended: joinBytes([bytes, pngEnd]) };
}

/** The chunk IEND with its checksum. */
const pngEnd = Uint8Array.of(0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82);

/** Whether a zlib stream is there to its end. More than any image needs is not unpacked. */
async function isWhole(parts: readonly Uint8Array<ArrayBuffer>[]): Promise<boolean> {
  const unpacked = new Blob([...parts]).stream().pipeThrough(new DecompressionStream('deflate'));
  const reader = unpacked.getReader();
  try {
    for (let left = 16 * maxImagePixels; left > 0; ) {
      const { done, value } = await reader.read();
      if (done) return true;
      left -= value.length;
    }
    await reader.cancel();
  } catch {}
  return false;
}

// JPEG, marker segments with entropy-coded data between them: ITU-T T.81, annex B
function parseJpeg(bytes: Uint8Array): Parsed {
  let width = 0;
  let height = 0;
  let scans = 0;
  let isTurned = false;
  let at = 2;
  while (at + 1 < bytes.length) {
    if (bytes[at] !== 0xff) {
      at = bytes.indexOf(0xff, at); // entropy-coded data, or padding
      if (at < 0) break;
      continue;
    }
    const marker = u8(bytes, at + 1);
    if (marker === 0xff) {
      at += 1; // fill byte
    } else if (marker === 0x00 || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) {
      at += 2; // stuffed 0xff, TEM, restart: no length follows
    } else if (marker === 0xd9) {
      return { width, height, complete: scans > 0, isTurned };
    } else {
      const length = u16(bytes, at + 2);
      const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
      if (isFrame && at + 9 <= bytes.length) {
        height = u16(bytes, at + 5);
        width = u16(bytes, at + 7);
      }
      if (marker === 0xdc && height === 0) height = u16(bytes, at + 4); // DNL: lines known late
      if (marker === 0xda) scans += 1;
      if (marker === 0xe1 && text(bytes, at + 4, 5) === 'Exif\0') {
        const orientation = orientationOf(bytes.subarray(at + 10, at + 2 + length));
        isTurned = orientation >= 5 && orientation <= 8;
      }
      at += 2 + Math.max(2, length);
    }
  }
  const end = endOfScans(bytes);
  if (end === null) return { width, height, complete: false };
  const mended = joinBytes([bytes.subarray(0, end), Uint8Array.of(0xff, 0xd9)]);
  return { width, height, complete: true, mended, isTurned };
}

/** The orientation in the first directory of Exif (2.32, 4.6.4), 1 to 8; 0 for none. */
function orientationOf(tiff: Uint8Array): number {
  const isLittle = tiff[0] === 0x49;
  const [read16, read32] = isLittle ? [u16le, u32le] : [u16, u32];
  const directory = read32(tiff, 4);
  for (let left = read16(tiff, directory), at = directory + 2; left > 0; left -= 1, at += 12) {
    if (at + 12 > tiff.length) break;
    if (read16(tiff, at) === 0x0112) return read16(tiff, at + 8);
  }
  return 0;
}

// WebP, RIFF chunks: https://developers.google.com/speed/webp/docs/riff_container
function parseWebp(bytes: Uint8Array): Parsed {
  const end = 8 + u32le(bytes, 4);
  let width = 0;
  let height = 0;
  let hasData = false;
  let at = 12;
  while (at + 8 <= Math.min(end, bytes.length)) {
    const type = text(bytes, at, 4);
    const body = at + 8;
    if (type === 'VP8X') {
      width = 1 + u24le(bytes, body + 4);
      height = 1 + u24le(bytes, body + 7);
    } else if (type === 'VP8 ' && width === 0) {
      width = u16le(bytes, body + 6) & 0x3fff; // the two upper bits are a scaling hint
      height = u16le(bytes, body + 8) & 0x3fff;
    } else if (type === 'VP8L' && width === 0) {
      const bits = u32le(bytes, body + 1);
      width = 1 + (bits & 0x3fff);
      height = 1 + ((bits >>> 14) & 0x3fff);
    }
    if (type === 'VP8 ' || type === 'VP8L' || type === 'ANMF') hasData = true;
    const length = u32le(bytes, at + 4);
    at = body + length + (length & 1);
  }
  // The last chunk's padding byte is missing in files of some writers.
  return { width, height, complete: hasData && end <= bytes.length && at <= bytes.length + 1 };
}

// GIF, blocks of sub-blocks: https://www.w3.org/Graphics/GIF/spec-gif89a.txt
function parseGif(bytes: Uint8Array): Parsed {
  let width = u16le(bytes, 6);
  let height = u16le(bytes, 8);
  let hasImage = false;
  let at = 13 + colorTableBytes(u8(bytes, 10));
  while (at < bytes.length) {
    const block = u8(bytes, at);
    if (block === 0x3b) return { width, height, complete: hasImage };
    if (block === 0x2c) {
      // An image may reach beyond the logical screen; browsers then enlarge the screen.
      width = Math.max(width, u16le(bytes, at + 1) + u16le(bytes, at + 5));
      height = Math.max(height, u16le(bytes, at + 3) + u16le(bytes, at + 7));
      hasImage = true;
      at += 11 + colorTableBytes(u8(bytes, at + 9));
    } else if (block === 0x21) {
      at += 2;
    } else {
      break;
    }
    for (let size = u8(bytes, at); size > 0; size = u8(bytes, at)) at += 1 + size;
    at += 1;
  }
  if (!hasImage || at !== bytes.length) return { width, height, complete: false };
  return { width, height, complete: true, mended: joinBytes([bytes, Uint8Array.of(0x3b)]) };
}

function colorTableBytes(flags: number): number {
  return flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0;
}

/** Sizes of the information header, as Windows and OS/2 write it. */
const bmpHeaders = [12, 40, 52, 56, 64, 108, 124];

// BMP: https://learn.microsoft.com/windows/win32/gdi/bitmap-storage
function parseBmp(bytes: Uint8Array): Parsed {
  const headerBytes = u32le(bytes, 14);
  if (bytes.length < 14 + headerBytes) return { width: 0, height: 0, complete: false };
  const isOld = headerBytes === 12;
  const width = isOld ? u16le(bytes, 18) : u32le(bytes, 18);
  // Negative where the rows go from top to bottom.
  const height = isOld ? u16le(bytes, 20) : Math.abs(u32le(bytes, 22) | 0);
  const rowBytes = 4 * Math.ceil((width * u16le(bytes, isOld ? 24 : 28)) / 32);
  const isPacked = !isOld && [1, 2].includes(u32le(bytes, 30));
  const end = u32le(bytes, 10) + (isPacked ? u32le(bytes, 34) : rowBytes * height);
  // A colour profile may follow the pixels, within the size that the file tells.
  const whole = Math.max(end, u32le(bytes, 2));
  const complete = end <= bytes.length;
  return {
    width,
    height,
    complete,
    ...(whole < bytes.length && { mended: bytes.slice(0, whole) }),
  };
}

// AVIF, nested boxes: ISO/IEC 14496-12 and 23008-12
function parseAvif(bytes: Uint8Array): Parsed {
  let width = 0;
  let height = 0;
  let hasMeta = false;
  let hasData = false;
  let isTurned = false;

  // A file with tiles, alpha or thumbnails lists several sizes: the largest is the image's.
  const scan = (from: number, to: number): boolean => {
    let at = from;
    while (at + 8 <= to) {
      const type = text(bytes, at + 4, 4);
      let size = u32(bytes, at);
      let header = 8;
      if (size === 1) {
        size = u32(bytes, at + 8) * 2 ** 32 + u32(bytes, at + 12);
        header = 16;
      } else if (size === 0) {
        size = to - at; // reaches to the end of the file
      }
      const end = at + size;
      if (size < header || end > to) {
        // The children that are complete give the size of a file that is cut inside `meta`.
        if (type === 'meta') scan(at + header + 4, to);
        return false;
      }
      if (type === 'meta') hasMeta = scan(at + header + 4, end);
      else if (type === 'iprp' || type === 'ipco') scan(at + header, end);
      else if (type === 'mdat' || type === 'idat') hasData = true;
      else if (type === 'irot')
        isTurned = u8(bytes, at + header) % 2 === 1; // by quarters
      else if (type === 'ispe') {
        const w = u32(bytes, at + header + 4);
        const h = u32(bytes, at + header + 8);
        if (w * h > width * height) {
          width = w;
          height = h;
        }
      }
      at = end;
    }
    return true;
  };
  const whole = scan(0, bytes.length);
  // `idat` lies inside `meta`, so that `hasData` covers both places where pixels can be. After both were
  // found, a box that does not fit is garbage behind the image.
  const complete = hasMeta && hasData && (whole || tailIsGarbage(bytes));
  return isTurned ? { width: height, height: width, complete } : { width, height, complete };
}

/** Whether the data that ends an ISO file too early is no box at all (its type is not four letters). */
function tailIsGarbage(bytes: Uint8Array): boolean {
  let at = 0;
  while (at + 8 <= bytes.length) {
    const size = u32(bytes, at) === 1 ? u32(bytes, at + 12) : u32(bytes, at);
    if (!/^[\x20-\x7e]{4}$/.test(text(bytes, at + 4, 4))) return true;
    if (size < 8 || at + size > bytes.length) return false;
    at += size;
  }
  return true;
}

// Reads past the end give 0, so that a cut file ends in `complete: false` and not in an exception.
function u8(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}
function u16(bytes: Uint8Array, at: number): number {
  return u8(bytes, at) * 256 + u8(bytes, at + 1);
}
function u32(bytes: Uint8Array, at: number): number {
  return u16(bytes, at) * 65_536 + u16(bytes, at + 2);
}
function u16le(bytes: Uint8Array, at: number): number {
  return u8(bytes, at) + u8(bytes, at + 1) * 256;
}
function u24le(bytes: Uint8Array, at: number): number {
  return u16le(bytes, at) + u8(bytes, at + 2) * 65_536;
}
function u32le(bytes: Uint8Array, at: number): number {
  return u16le(bytes, at) + u16le(bytes, at + 2) * 65_536;
}
function text(bytes: Uint8Array, at: number, length: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + Math.max(0, length)));
}
