import { maxImagePixels } from '../contract';

/** Most scans that are read: encoders write about ten, and a short one can stand for the whole image. */
const maxScans = 100;
/** Most Huffman tables: one of no code takes 17 bytes of a file, and 128 KB here. */
const maxTables = 1000;
/** Precision of a coefficient that no scan has given yet. */
const unknown = 255;

/** A component of the image: luma, or one of the colours. */
interface Component {
  readonly id: number;
  /** Blocks of an interleaved unit. */
  readonly blocksOfUnit: number;
  /** Blocks of a scan that has this component alone. */
  readonly blocks: number;
  /** The lowest bit of each coefficient that was given. */
  readonly precision: Uint8Array;
  /** One bit for each coefficient of each block: whether it is not zero. Only refining scans need it. */
  readonly nonZero: Uint8Array;
}

/**
 * The end of the image data of a JPEG without an end marker. Its scans are read to their last block, without
 * computing a pixel (ITU-T T.81, annexes F and G): nothing else tells a missing marker from missing rows.
 *
 * @returns null where a scan ends too early, or where coefficients are missing
 */
export function endOfScans(bytes: Uint8Array): number | null {
  try {
    return new ScanReader(bytes).read();
  } catch (thrown) {
    if (thrown instanceof RangeError) return null; // Reading behind the end of a view throws it too.
    throw thrown;
  }
}

class ScanReader {
  private readonly view: DataView;
  /** For each 16 bits of the stream, the length and the symbol of the code that they start with. */
  private readonly tables = new Map<number, Uint16Array>();
  private components: readonly Component[] = [];
  /** Interleaved units of the image. */
  private units = 0;
  private tablesRead = 0;
  private progressive = false;
  private restartInterval = 0;
  private at = 2;
  private buffer = 0;
  private bufferedBits = 0;
  /** Blocks without further coefficients (G.1.2.2). */
  private emptyBlocks = 0;
  /** The coefficients of the scan that is read, and whether it gives one more bit of them (G.1.1.1). */
  private scan = { first: 0, last: 63, refines: false };

  constructor(private readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  read(): number | null {
    for (let scans = 0; scans < maxScans; ) {
      const start = this.at;
      const [mark, marker] = this.bytes.subarray(start, start + 2);
      // A trailer, or nothing, stands where the end marker is missing.
      if (mark !== 0xff || marker === undefined || marker < 0xc0) {
        const isWhole = ({ precision }: Component) => precision.every((bit) => bit === 0);
        return scans > 0 && this.components.every(isWhole) ? start : null;
      }
      const segment = start + 4;
      this.at = start + 2 + this.view.getUint16(start + 2);
      if (marker === 0xc4) this.readTables(segment);
      else if (marker === 0xdd) this.restartInterval = this.view.getUint16(segment);
      else if (marker <= 0xc2) this.readFrame(segment, marker === 0xc2);
      else if (marker < 0xd0)
        return null; // No browser reads these.
      else if (marker === 0xda) {
        this.readScan(segment);
        scans += 1;
      }
    }
    return null;
  }

  private readTables(segment: number): void {
    for (let at = segment; at < this.at; ) {
      this.tablesRead += 1;
      if (this.tablesRead > maxTables) throw new RangeError('Too many tables.');
      const table = new Uint16Array(0x10000);
      this.tables.set(this.view.getUint8(at), table);
      const counts = this.bytes.subarray(at + 1, at + 17);
      at += 17;
      let code = 0;
      for (const [index, count] of counts.entries()) {
        for (const end = at + count; at < end; at += 1) {
          const next = code + (0x8000 >> index);
          table.fill(((index + 1) << 8) | this.view.getUint8(at), code, next);
          code = next;
        }
      }
    }
  }

  private readFrame(segment: number, progressive: boolean): void {
    const listed = Array.from({ length: this.view.getUint8(segment + 5) }, (_, n) => {
      const sampling = this.view.getUint8(segment + 7 + 3 * n);
      return {
        id: this.view.getUint8(segment + 6 + 3 * n),
        factors: [sampling & 15, sampling >> 4],
      };
    });
    // Rows, then columns.
    const axes = [0, 1].map((axis) => {
      const size = this.view.getUint16(segment + 1 + 2 * axis);
      return { size, most: Math.max(...listed.map(({ factors }) => factors[axis] ?? 0)) };
    });
    const product = (of: (axis: { size: number; most: number }, n: number) => number) =>
      axes.map(of).reduce((a, b) => a * b);
    this.progressive = progressive;
    this.units = product(({ size, most }) => Math.ceil(size / (8 * most)));
    const pixels = product(({ size }) => size);
    const isFirst = this.components.length === 0;
    if (!(this.units > 0 && pixels <= maxImagePixels && listed.length <= 4 && isFirst)) {
      throw new RangeError('A frame that no encoder writes.');
    }
    this.components = listed.map(({ id, factors }) => {
      const factor = (axis: number) => factors[axis] ?? 0;
      const blocks = product(({ size, most }, n) =>
        Math.ceil(Math.ceil((size * factor(n)) / most) / 8),
      );
      const nonZero = new Uint8Array(progressive ? blocks * 8 : 0);
      const precision = new Uint8Array(64).fill(unknown);
      return { id, blocksOfUnit: factor(0) * factor(1), blocks, precision, nonZero };
    });
  }

  private readScan(segment: number): void {
    const count = this.view.getUint8(segment);
    const parts = Array.from({ length: count }, (_, n) => {
      const id = this.view.getUint8(segment + 1 + 2 * n);
      const tables = this.view.getUint8(segment + 2 + 2 * n);
      const component = this.components.find((one) => one.id === id);
      if (!component) throw new RangeError('A scan of no component.');
      return {
        component,
        dc: this.tables.get(tables >> 4),
        ac: this.tables.get(16 + (tables & 15)),
      };
    });
    const [first = 0, last = 0, bits = 0] = this.progressive
      ? this.bytes.subarray(segment + 1 + 2 * count, segment + 4 + 2 * count)
      : [0, 63, 0];
    for (const { component } of parts) {
      // A scan that gives what is known already would only cost time.
      const given = component.precision.subarray(first, last + 1);
      if (given.some((bit) => bit !== (bits >> 4 || unknown)))
        throw new RangeError('Out of order.');
      given.fill(bits & 15);
    }
    this.scan = { first, last, refines: bits >> 4 > 0 };
    const [one] = parts;
    const units = one && count === 1 ? one.component.blocks : this.units;
    this.bufferedBits = 0;
    this.emptyBlocks = 0;
    for (let unit = 0; unit < units; unit += 1) {
      if (this.restartInterval > 0 && unit > 0 && unit % this.restartInterval === 0) {
        this.alignToByte();
        if (this.view.getUint16(this.at) >> 3 !== 0xffd0 >> 3) throw new RangeError('No restart.');
        this.at += 2;
        this.emptyBlocks = 0;
      }
      for (const { component, dc, ac } of parts) {
        const blocks = count === 1 ? 1 : component.blocksOfUnit;
        for (let n = 0; n < blocks; n += 1) this.readBlock(component.nonZero, 8 * unit, dc, ac);
      }
    }
    this.alignToByte();
  }

  /** @param block where its bits are in `nonZero`, of a scan of one component */
  private readBlock(nonZero: Uint8Array, block: number, dc?: Uint16Array, ac?: Uint16Array): void {
    const { first, last, refines } = this.scan;
    if (first === 0) this.bits(refines ? 1 : this.symbol(dc));
    let k = Math.max(1, first);
    while (k <= last && this.emptyBlocks === 0) {
      const symbol = this.symbol(ac);
      const size = symbol & 15;
      const zeros = symbol >> 4;
      if (size === 0 && zeros < 15) {
        this.emptyBlocks = (1 << zeros) + this.bits(zeros);
        break;
      }
      this.bits(size);
      k = refines ? this.pass(nonZero, block, k, zeros) : k + zeros;
      if (size > 0 && k <= last && this.progressive) {
        const at = block + (k >> 3);
        nonZero[at] = (nonZero[at] as number) | (1 << (k & 7));
      }
      k += 1;
    }
    if (this.emptyBlocks === 0) return;
    this.emptyBlocks -= 1;
    if (refines) this.pass(nonZero, block, k, 64);
  }

  /** Passes coefficients up to one behind `zeros` zeros: each that was not zero before has a bit (G.1.2.3). */
  private pass(nonZero: Uint8Array, block: number, from: number, zeros: number): number {
    let k = from;
    for (let left = zeros; k <= this.scan.last; k += 1) {
      const known = (nonZero[block + (k >> 3)] as number) >> (k & 7);
      if (known & 1) this.bits(1);
      else if (left === 0) break;
      else if (known === 0 && left > 7 - (k & 7)) {
        // The rest of the byte at once.
        left -= 8 - (k & 7);
        k |= 7;
      } else left -= 1;
    }
    return k;
  }

  private symbol(table: Uint16Array | undefined): number {
    this.fill();
    const entry = table?.[(this.buffer << (32 - this.bufferedBits)) >>> 16] ?? 0;
    if (entry === 0) throw new RangeError('No code.');
    this.bits(entry >> 8);
    return entry & 255;
  }

  private bits(count: number): number {
    if (count > this.bufferedBits) this.fill();
    if (count > this.bufferedBits) throw new RangeError('The scan ends too early.');
    this.bufferedBits -= count;
    return (this.buffer >>> this.bufferedBits) & ((1 << count) - 1);
  }

  /** Buffers bytes up to the next marker; behind a byte 0xff of the data stands a zero (B.1.1.5). */
  private fill(): void {
    while (this.bufferedBits <= 16 && this.at < this.bytes.length) {
      const byte = this.bytes[this.at] as number;
      if (byte === 0xff && this.bytes[this.at + 1] !== 0) return;
      this.at += byte === 0xff ? 2 : 1;
      this.buffer = (this.buffer << 8) | byte;
      this.bufferedBits += 8;
    }
  }

  /** Continues behind the byte of the last bit that was read. */
  private alignToByte(): void {
    for (; this.bufferedBits >= 8; this.bufferedBits -= 8) {
      this.at -= this.view.getUint16(this.at - 2) === 0xff00 ? 2 : 1;
    }
    this.bufferedBits = 0;
  }
}
