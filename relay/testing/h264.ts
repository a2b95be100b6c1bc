/**
 * The smallest H.264 that decoders play: one grey picture, then pictures that repeat it (ITU-T H.264,
 * Baseline profile, 7.3). Frames are a few bytes, so that tests have real videos without an encoder.
 */

/** Bits of a syntax structure, most significant first. */
class BitWriter {
  readonly #bits: number[] = [];

  /** `u(n)` of the standard. */
  bits(value: number, length: number): this {
    for (let bit = length - 1; bit >= 0; bit -= 1) this.#bits.push((value >>> bit) & 1);
    return this;
  }

  /** `ue(v)`, exponential Golomb; zeros and `se(v)` of 0 are the same bit. */
  unsigned(value: number): this {
    const length = Math.floor(Math.log2(value + 1));
    return this.bits(0, length).bits(value + 1, length + 1);
  }

  /** A NAL unit: header byte, the bits with their trailing one, emulation prevention (7.4.1). */
  toUnit(header: number): Uint8Array {
    const bits = [...this.#bits, 1];
    while (bits.length % 8 !== 0) bits.push(0);
    const bytes = [header];
    let zeros = 0;
    for (let at = 0; at < bits.length; at += 8) {
      const byte = Number.parseInt(bits.slice(at, at + 8).join(''), 2);
      if (zeros >= 2 && byte <= 3) {
        bytes.push(3);
        zeros = 0;
      }
      bytes.push(byte);
      zeros = byte === 0 ? zeros + 1 : 0;
    }
    return new Uint8Array(bytes);
  }
}

const profile = 66; // Baseline
const constraints = 0xc0;
const level = 40;

/** Pictures as macroblocks of 16×16, the rest cut off. */
function macroblocks(width: number, height: number): { across: number; down: number } {
  return { across: Math.ceil(width / 16), down: Math.ceil(height / 16) };
}

function sequenceParameters(width: number, height: number): Uint8Array {
  const { across, down } = macroblocks(width, height);
  const writer = new BitWriter().bits(profile, 8).bits(constraints, 8).bits(level, 8);
  writer.unsigned(0).unsigned(0); // id; frame numbers of 4 bits
  writer.unsigned(2).unsigned(1).bits(0, 1); // output order is decoding order; 1 reference; no gaps
  writer
    .unsigned(across - 1)
    .unsigned(down - 1)
    .bits(1, 1)
    .bits(1, 1);
  const right = (across * 16 - width) / 2;
  const bottom = (down * 16 - height) / 2;
  writer.bits(right + bottom > 0 ? 1 : 0, 1);
  if (right + bottom > 0) writer.unsigned(0).unsigned(right).unsigned(0).unsigned(bottom);
  return writer.bits(0, 1).toUnit(0x67);
}

function pictureParameters(): Uint8Array {
  const writer = new BitWriter().unsigned(0).unsigned(0).bits(0, 2); // ids; CAVLC
  writer.unsigned(0).unsigned(0).unsigned(0).bits(0, 3); // one slice group, one reference
  return writer.unsigned(0).unsigned(0).unsigned(0).bits(0, 3).toUnit(0x68);
}

/** The first picture: every macroblock predicted by its mean (which is grey) and left so. */
export function keyPicture(width: number, height: number): Uint8Array {
  const { across, down } = macroblocks(width, height);
  const writer = new BitWriter().unsigned(0).unsigned(7).unsigned(0).bits(0, 4).unsigned(0);
  writer.bits(0, 2).unsigned(0); // reference marking; quantiser as in the parameters
  // Per macroblock: Intra 16×16 with DC prediction, chroma DC, no quantiser change, no coefficients.
  for (let n = 0; n < across * down; n += 1) writer.unsigned(3).unsigned(0).unsigned(0).bits(1, 1);
  return lengthPrefixed(writer.toUnit(0x65));
}

/** A later picture: all macroblocks skipped. @param index counts from 1 */
export function repeatedPicture(width: number, height: number, index: number): Uint8Array {
  const { across, down } = macroblocks(width, height);
  const writer = new BitWriter()
    .unsigned(0)
    .unsigned(5)
    .unsigned(0)
    .bits(index % 16, 4);
  writer.bits(0, 2).bits(0, 1).unsigned(0); // references as they are; no marking
  return lengthPrefixed(writer.unsigned(across * down).toUnit(0x41));
}

/** A text in a unit that decoders skip (filler data, ITU-T H.264, 7.3.2.7). */
export function filler(text: string): Uint8Array {
  return lengthPrefixed(Buffer.from([0x0c, ...Buffer.from(text), 0x80]));
}

/** `avcC` of ISO/IEC 14496-15, 5.3.3: units carry their length in 4 bytes. */
export function decoderConfiguration(width: number, height: number): Uint8Array {
  const sps = sequenceParameters(width, height);
  const pps = pictureParameters();
  const head = [1, profile, constraints, level, 0xff, 0xe1, 0, sps.length];
  return new Uint8Array([...head, ...sps, 1, 0, pps.length, ...pps]);
}

/** Codec string of these videos. */
export const codecString = `avc1.${[profile, constraints, level]
  .map((value) => value.toString(16).padStart(2, '0'))
  .join('')}`;

function lengthPrefixed(unit: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4 + unit.length);
  new DataView(bytes.buffer).setUint32(0, unit.length);
  bytes.set(unit, 4);
  return bytes;
}
