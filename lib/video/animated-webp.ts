/** Chunks of a still WebP that hold its picture. */
const pictureChunks = new Set(['ALPH', 'VP8 ', 'VP8L']);

/**
 * Still WebP pictures of one size as an animation that repeats for ever (RFC 9649, section 2.7.1).
 *
 * @param stills complete WebP files, lossy or lossless
 * @param options.interval time that each one is shown, in milliseconds
 * @throws TypeError for a file that is not a WebP
 */
export function animatedWebp(
  stills: readonly Uint8Array[],
  options: { readonly width: number; readonly height: number; readonly interval: number },
): Uint8Array<ArrayBuffer> {
  const { width, height, interval } = options;
  const pictures = stills.map(pictureOf);
  const hasAlpha = pictures.some((picture) => picture.some(({ name }) => name !== 'VP8 '));
  const canvas = [...uint24(width - 1), ...uint24(height - 1)];
  const frames = pictures.map((picture) => {
    // At the upper left corner; 2: it replaces what was shown before.
    const head = Uint8Array.from([0, 0, 0, 0, 0, 0, ...canvas, ...uint24(interval), 2]);
    return chunk('ANMF', [head, ...picture.map(({ name, bytes }) => chunk(name, [bytes]))]);
  });
  const body = [
    Uint8Array.from('WEBP', (letter) => letter.charCodeAt(0)),
    chunk('VP8X', [Uint8Array.from([hasAlpha ? 0x12 : 0x02, 0, 0, 0, ...canvas])]),
    // No background, and no end of the repetitions.
    chunk('ANIM', [new Uint8Array(6)]),
    ...frames,
  ];
  return chunk('RIFF', body);
}

/** The chunks of a still WebP that are needed in an animation. */
function pictureOf(still: Uint8Array): { readonly name: string; readonly bytes: Uint8Array }[] {
  const view = new DataView(still.buffer, still.byteOffset, still.byteLength);
  const nameAt = (at: number) => String.fromCharCode(...still.subarray(at, at + 4));
  const isWebp = still.length > 20 && nameAt(0) === 'RIFF' && nameAt(8) === 'WEBP';
  const chunks = [];
  for (let at = 12; isWebp && at + 8 <= still.length; ) {
    const [name, size] = [nameAt(at), view.getUint32(at + 4, true)];
    const bytes = still.subarray(at + 8, at + 8 + size);
    if (pictureChunks.has(name)) chunks.push({ name, bytes });
    at += 8 + size + (size % 2);
  }
  if (chunks.length === 0) throw new TypeError('A frame is not a WebP picture.');
  return chunks;
}

/** A chunk of RIFF: its name, its length, its bytes, and one more where their number is odd. */
function chunk(name: string, parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const size = parts.reduce((sum, { length }) => sum + length, 0);
  const bytes = new Uint8Array(8 + size + (size % 2));
  for (let i = 0; i < 4; i++) bytes[i] = name.charCodeAt(i);
  new DataView(bytes.buffer).setUint32(4, size, true);
  let at = 8;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Three bytes, the lowest first. */
function uint24(value: number): [number, number, number] {
  return [value & 255, (value >> 8) & 255, (value >> 16) & 255];
}
