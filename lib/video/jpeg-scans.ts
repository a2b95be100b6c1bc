/** Most scans that are read: encoders write about ten, and a short one can stand for the whole image. */
const maxScans = 100;
/** Precision of a coefficient that no scan has given yet. */
const unknown = 255;

/** A component of the image: luma, or one of the colours. */
interface Component {
  readonly id: number;
  /** Blocks in each direction of an interleaved unit. */
  readonly across: number;
  readonly down: number;
  /** Blocks of a scan that has this component alone. */
  readonly blocks: number;
  /** Of each coefficient, the lowest bit that was given. */
  readonly precision: Uint8Array;
  /** One bit for each coefficient of each block: whether it is not zero. Only refining scans need it. */
  readonly nonZero: Uint8Array;
}

/** One scan: which coefficients it gives, and down to which bit (ITU-T T.81, G.1.1). */
interface Scan {
  readonly first: number;
  readonly last: number;
  readonly refines: boolean;
}

/**
 * Where the image data of a JPEG end that has no end marker. Its scans are read to their last block, without
 * computing a pixel (ITU-T T.81, annexes F and G): nothing else tells a missing marker from missing rows.
 *
 * @returns null where a scan ends too early, or where coefficients are missing
 */
export function endOfScans(bytes: Uint8Array): number | null {
  try {
    return new ScanReader(bytes).read();
  } catch (thrown) {
    if (thrown instanceof RangeError) return null;
    throw thrown;
  }
}

class ScanReader {
  /** For each 16 bits of the stream, the length and the symbol of the code that they start with. */
  private readonly tables = new Map<number, Uint16Array>();
  private components: readonly Component[] = [];
  /** Interleaved units of the image. */
  private units = 0;
  private progressive = false;
  private restartInterval = 0;
  private at = 2;
  private buffer = 0;
  private bufferedBits = 0;
  /** Blocks without further coefficients (G.1.2.2). */
  private emptyBlocks = 0;

  constructor(private readonly bytes: Uint8Array) {}

  read(): number | null {
    let end: number | null = null;
    for (let scans = 0; scans <= maxScans; ) {
      const marker = this.u8(this.at + 1);
      // A trailer, or nothing, stands where the end marker is missing.
      if (this.u8(this.at) !== 0xff || marker < 0xc0) return this.isComplete() ? end : null;
      const segment = this.at + 4;
      this.at = segment - 2 + this.u16(segment - 2);
      if (this.at > this.bytes.length) return null;
      if (marker === 0xc4) this.readTables(segment, this.at);
      else if (marker === 0xdd) this.restartInterval = this.u16(segment);
      else if (marker <= 0xc2) this.readFrame(segment, marker === 0xc2);
      else if (marker === 0xda) {
        this.readScan(segment);
        end = this.at;
        scans += 1;
      } else if (marker < 0xe0 && marker !== 0xdb) return null; // No browser reads these.
    }
    return null;
  }

  private isComplete(): boolean {
    return this.components.every(({ precision }) => precision.every((bit) => bit === 0));
  }

  private readTables(from: number, to: number): void {
    for (let at = from; at < to; ) {
      const table = new Uint16Array(0x10000);
      let symbol = at + 17;
      let code = 0;
      for (let length = 1; length <= 16; length += 1) {
        for (let count = this.u8(at + length); count > 0; count -= 1, symbol += 1) {
          const next = code + (1 << (16 - length));
          table.fill((length << 8) | this.u8(symbol), code, next);
          code = next;
        }
      }
      this.tables.set(this.u8(at), table);
      at = symbol;
    }
  }

  private readFrame(segment: number, progressive: boolean): void {
    if (this.units > 0) throw new RangeError('A second frame.');
    this.progressive = progressive;
    const size = [this.u16(segment + 3), this.u16(segment + 1)] as const;
    const listed = Array.from({ length: this.u8(segment + 5) }, (_, n) => {
      const sampling = this.u8(segment + 7 + 3 * n);
      return { id: this.u8(segment + 6 + 3 * n), across: sampling >> 4, down: sampling & 15 };
    });
    const most = [
      Math.max(...listed.map(({ across }) => across)),
      Math.max(...listed.map(({ down }) => down)),
    ] as const;
    const unitsOf = (axis: 0 | 1) => Math.ceil(size[axis] / (8 * most[axis]));
    this.units = unitsOf(0) * unitsOf(1);
    if (!(this.units > 0)) throw new RangeError('An image of no known size.');
    this.components = listed.map(({ id, across, down }) => {
      const blocksOf = (axis: 0 | 1, factor: number) =>
        Math.ceil(Math.ceil((size[axis] * factor) / most[axis]) / 8);
      const blocks = blocksOf(0, across) * blocksOf(1, down);
      const nonZero = new Uint8Array(progressive ? blocks * 8 : 0);
      const precision = new Uint8Array(64).fill(unknown);
      return { id, across, down, blocks, precision, nonZero };
    });
  }

  private readScan(segment: number): void {
    const count = this.u8(segment);
    const parts = Array.from({ length: count }, (_, n) => {
      const component = this.components.find(({ id }) => id === this.u8(segment + 1 + 2 * n));
      if (!component) throw new RangeError('A scan of no component.');
      const tables = this.u8(segment + 2 + 2 * n);
      return { component, dc: this.tables.get(tables >> 4), ac: this.tables.get(16 + (tables & 15)) };
    });
    const [one] = parts;
    if (!one) throw new RangeError('A scan of nothing.');
    const [first, last, bits] = this.progressive
      ? ([0, 1, 2].map((n) => this.u8(segment + 1 + 2 * count + n)) as [number, number, number])
      : ([0, 63, 0] as const);
    const [high, low] = [bits >> 4, bits & 15];
    for (const { precision } of parts.map(({ component }) => component)) {
      // A scan that gives what is known already would only cost time.
      if (precision.subarray(first, last + 1).some((bit) => bit !== (high || unknown))) {
        throw new RangeError('A scan out of order.');
      }
      precision.fill(low, first, last + 1);
    }
    const scan = { first, last, refines: high > 0 };
    const units = parts.length === 1 ? one.component.blocks : this.units;
    this.bufferedBits = 0;
    this.emptyBlocks = 0;
    for (let unit = 0; unit < units; unit += 1) {
      if (this.restartInterval > 0 && unit > 0 && unit % this.restartInterval === 0) this.restart();
      for (const { component, dc, ac } of parts) {
        const blocks = parts.length === 1 ? 1 : component.across * component.down;
        for (let n = 0; n < blocks; n += 1) this.readBlock(component, unit, scan, dc, ac);
      }
    }
    this.alignToByte();
  }

  private readBlock(
    { nonZero }: Component,
    block: number,
    { first, last, refines }: Scan,
    dc: Uint16Array | undefined,
    ac: Uint16Array | undefined,
  ): void {
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
      k = refines ? this.pass(nonZero, block, k, last, zeros) : k + zeros;
      if (size > 0 && k <= last && this.progressive) {
        const at = block * 8 + (k >> 3);
        nonZero[at] = (nonZero[at] as number) | (1 << (k & 7));
      }
      k += 1;
    }
    if (this.emptyBlocks === 0) return;
    this.emptyBlocks -= 1;
    if (refines) this.pass(nonZero, block, k, last, 64);
  }

  /** Passes coefficients up to one behind `zeros` zeros: each that was not zero before has a bit (G.1.2.3). */
  private pass(nonZero: Uint8Array, block: number, from: number, last: number, zeros: number) {
    let k = from;
    for (let left = zeros; k <= last; k += 1) {
      const known = (nonZero[block * 8 + (k >> 3)] as number) >> (k & 7);
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

  /** Buffers bytes up to the next marker, of which each has a 0xff of its own (B.1.1.5). */
  private fill(): void {
    while (this.bufferedBits <= 16 && this.at < this.bytes.length) {
      const byte = this.u8(this.at);
      if (byte === 0xff && this.bytes[this.at + 1] !== 0) return;
      this.at += byte === 0xff ? 2 : 1;
      this.buffer = (this.buffer << 8) | byte;
      this.bufferedBits += 8;
    }
  }

  /** Continues behind the byte of the last bit that was read. */
  private alignToByte(): void {
    for (; this.bufferedBits >= 8; this.bufferedBits -= 8) {
      this.at -= this.u8(this.at - 1) === 0 && this.u8(this.at - 2) === 0xff ? 2 : 1;
    }
    this.bufferedBits = 0;
  }

  private restart(): void {
    this.alignToByte();
    const isMarker = this.u8(this.at) === 0xff && (this.u8(this.at + 1) & 0xf8) === 0xd0;
    if (!isMarker) throw new RangeError('A restart marker is missing.');
    this.at += 2;
    this.emptyBlocks = 0;
  }

  private u8(at: number): number {
    return this.bytes[at] ?? 0;
  }

  private u16(at: number): number {
    return this.u8(at) * 256 + this.u8(at + 1);
  }
}
