import { KinoraError } from '../../contract';
import type { RgbaImage } from '../preprocess';

/** Eight bytes at the start of every PNG file. */
const signature = [137, 80, 78, 71, 13, 10, 26, 10];

/**
 * Decodes a PNG of 8 bits, RGB, without interlacing: the kind of the reference images. The browser's own
 * decoder has no counterpart in Node, and the comparison shall be the same in both.
 *
 * Format: https://www.w3.org/TR/png-3/.
 *
 * @throws KinoraError `IMAGE_UNREADABLE` for any other file
 */
export async function decodePng(bytes: Uint8Array): Promise<RgbaImage> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (signature.some((byte, i) => bytes[i] !== byte)) throw unreadable();
  let width = 0;
  let height = 0;
  const parts: Uint8Array<ArrayBuffer>[] = [];
  // A chunk: length, type, data, checksum.
  for (let at = signature.length; at + 12 <= bytes.length; at += 12 + view.getUint32(at)) {
    const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    const data = bytes.slice(at + 8, at + 8 + view.getUint32(at));
    if (type === 'IHDR') {
      const [depth, colours, , , interlaced] = data.subarray(8);
      if (depth !== 8 || colours !== 2 || interlaced !== 0) throw unreadable();
      width = view.getUint32(at + 8);
      height = view.getUint32(at + 12);
    }
    if (type === 'IDAT') parts.push(data);
  }
  const packed = new Blob(parts).stream().pipeThrough(new DecompressionStream('deflate'));
  const lines = new Uint8Array(await new Response(packed).arrayBuffer());
  const stride = 3 * width;
  if (width === 0 || lines.length !== height * (1 + stride)) throw unreadable();

  const pixels = new Uint8Array(height * stride);
  const data = new Uint8ClampedArray(4 * width * height).fill(255);
  for (let y = 0; y < height; y++) {
    const filter = lines[y * (1 + stride)] as number;
    for (let x = 0; x < stride; x++) {
      const i = y * stride + x;
      const left = x < 3 ? 0 : (pixels[i - 3] as number);
      const up = y === 0 ? 0 : (pixels[i - stride] as number);
      const corner = x < 3 || y === 0 ? 0 : (pixels[i - stride - 3] as number);
      const value = lines[y * (1 + stride) + 1 + x] as number;
      pixels[i] = value + predict(filter, left, up, corner);
      data[4 * Math.floor(i / 3) + (i % 3)] = pixels[i] as number;
    }
  }
  return { data, width, height };
}

/** What a line's filter adds to each byte. */
function predict(filter: number, left: number, up: number, corner: number): number {
  switch (filter) {
    case 0:
      return 0;
    case 1:
      return left;
    case 2:
      return up;
    case 3:
      return (left + up) >> 1;
    case 4: {
      const estimate = left + up - corner;
      const [a, b, c] = [left, up, corner].map((value) => Math.abs(estimate - value));
      if ((a as number) <= (b as number) && (a as number) <= (c as number)) return left;
      return (b as number) <= (c as number) ? up : corner;
    }
    default:
      throw unreadable();
  }
}

function unreadable(): KinoraError {
  return new KinoraError('IMAGE_UNREADABLE', 'The image is not a plain PNG of 8 bits per colour.');
}
