import { at } from '../../contract';
import { scaleFactors } from '../convert/elements';
import { neighbours } from '../formats/located';
import { type ByteSource, truncated } from '../formats/source';
import { BlockBuffer, convertRows } from './convert';
import { checkedHash } from './fetched-file';
import type { StoreFolder, StoreWriter } from './folder';
import type { Installation } from './installation';
import type { Journal, PieceRecord } from './journal';
import type { Conversion, Unit } from './units';

/** Making something safe costs nearly the same for one unit and for many. */
const unitsPerCommit = 16;
/** On a slow line these would take long: what is there is made safe at least so often. */
const commitMs = 1000;
/** Units that the hash may lag behind in its thread. */
const mostHashing = 8;

/** Brings all that is left to do from the sources to the packs and the journal. */
export async function convertSources(installation: Installation): Promise<void> {
  const { options, plan, journal } = installation;
  const { sources, signal, onProgress } = options;
  const bytesTotal = sources.reduce((sum, { size }) => sum + size, 0);
  const report = () => {
    const { bytesDone, bytesStored } = underway(journal);
    onProgress?.({ bytesDone, bytesTotal, bytesStored });
  };
  report();
  signal.throwIfAborted();
  const writers = new PackWriters(options.folder);
  try {
    const factors = await readFactors(plan.conversions);
    const batch = new UnitBatch(installation, writers, factors, report);
    for (const [index, source] of sources.entries()) {
      const done = underway(journal).units.length;
      const left = plan.units.filter((unit, number) => number >= done && unit.source === index);
      if (left.length === 0) continue;
      await convertSource(installation, source, left, batch);
    }
  } finally {
    await writers.close();
  }
}

async function convertSource(
  { options: { signal }, journal, hash }: Installation,
  source: ByteSource,
  units: readonly Unit[],
  batch: UnitBatch,
): Promise<void> {
  const state = underway(journal);
  // Wherever it stopped, that unit's first byte is the next one of the stream and of the hash.
  if (state.hash === null || !(await hash.resume(state.hash))) await hash.start();
  const start = units[0]?.start ?? source.size;
  const buffer = new Uint8Array(
    units.reduce((most, unit) => Math.max(most, unit.end - unit.start), 0),
  );
  const stream = source.stream(start, source.size, signal)[Symbol.asyncIterator]();
  let piece: Uint8Array = new Uint8Array();
  /** The next bytes of the stream, whose pieces have any size. */
  const take = async (length: number) => {
    for (let done = 0; done < length; ) {
      if (piece.length === 0) {
        const next = await stream.next();
        if (next.done) throw truncated(source.name, length, done);
        piece = next.value;
      }
      const part = piece.subarray(0, length - done);
      buffer.set(part, done);
      done += part.length;
      piece = piece.subarray(part.length);
    }
    signal.throwIfAborted();
    return buffer.subarray(0, length);
  };
  try {
    for (const unit of units) {
      const bytes = await take(unit.end - unit.start).catch(async (thrown: unknown) => {
        await batch.commit();
        throw thrown;
      });
      await batch.add(unit, bytes);
      if (unit.end === source.size) {
        await batch.commit(checkedHash(source, await hash.digest()));
      } else if (batch.isDue) {
        await batch.commit();
      }
    }
  } finally {
    await stream.return?.();
  }
}

/** Units that are in their packs, but not safe yet. */
class UnitBatch {
  #units: PieceRecord[][] = [];
  #bytesDone = 0;
  #bytesStored = 0;
  #hashed: Promise<unknown>[] = [];
  readonly #buffer = new BlockBuffer();
  #since: number;
  readonly #now: () => number;

  constructor(
    readonly installation: Installation,
    readonly writers: PackWriters,
    /** By tensor. */
    readonly factors: readonly Float32Array[],
    readonly onCommit: () => void,
  ) {
    this.#now = installation.options.now ?? (() => performance.now());
    this.#since = this.#now();
  }

  get isDue(): boolean {
    const most = this.installation.options.unitsPerCommit ?? unitsPerCommit;
    return this.#units.length >= most || this.#now() - this.#since >= commitMs;
  }

  /** Converts a unit and writes it to its packs. */
  async add(unit: Unit, bytes: Uint8Array): Promise<void> {
    const { plan, hash, checksum } = this.installation;
    const hashed = Promise.resolve(hash.update(bytes));
    hashed.catch(() => undefined); // It shows in the commit, unless something else fails before.
    this.#hashed.push(hashed);
    if (this.#hashed.length > mostHashing) await this.#hashed.shift();
    const records: PieceRecord[] = [];
    for (const { tensor, start, end, firstRow, rows } of unit.pieces) {
      const { place, recipe, located } = at(plan.conversions, tensor);
      const part = bytes.subarray(start - unit.start, end - unit.start);
      const { dtype } = located.entry;
      const source = { bytes: part, dtype, firstRow, rows, factors: at(this.factors, tensor) };
      const { regions, squaredError, squaredNorm } = convertRows(
        place,
        recipe,
        source,
        this.#buffer,
      );
      for (const region of regions) {
        await this.writers.write(place.pack, region.at, region.bytes);
        this.#bytesStored += region.bytes.length;
      }
      const sum = checksum(regions.map((region) => region.bytes));
      records.push({ checksum: sum, squaredError, squaredNorm });
    }
    this.#bytesDone += unit.end - unit.start;
    this.#units.push(records);
  }

  /**
   * Makes everything safe that was added.
   *
   * @param sha256 of the source, where it was added to its end
   */
  async commit(sha256?: string): Promise<void> {
    if (this.#units.length === 0) return;
    const { journal, hash } = this.installation;
    await Promise.all(this.#hashed);
    await this.writers.flush();
    const before = underway(journal);
    await journal.append({
      type: 'units',
      first: before.units.length,
      units: this.#units,
      bytesDone: before.bytesDone + this.#bytesDone,
      bytesStored: before.bytesStored + this.#bytesStored,
      hash:
        sha256 === undefined ? { at: 'middle', state: await hash.state() } : { at: 'end', sha256 },
    });
    this.#units = [];
    this.#hashed = [];
    this.#bytesDone = 0;
    this.#bytesStored = 0;
    this.#since = this.#now();
    this.onCommit();
  }
}

function underway({ state }: Journal) {
  if (state.state !== 'underway') throw new TypeError('the installation has not begun');
  return state;
}

/** The packs of a component that are being written. Each stays open until the end. */
class PackWriters {
  readonly #open = new Map<string, StoreWriter>();
  readonly #dirty = new Set<StoreWriter>();

  constructor(readonly folder: StoreFolder) {}

  /** @throws KinoraError `STORAGE_FULL`, `MODEL_BUSY` */
  async write(pack: string, at: number, bytes: Uint8Array): Promise<void> {
    const writer = this.#open.get(pack) ?? (await this.folder.write(pack));
    this.#open.set(pack, writer);
    this.#dirty.add(writer);
    await writer.write(at, bytes);
  }

  /** Returns when everything written so far would survive a crash. */
  async flush(): Promise<void> {
    for (const writer of this.#dirty) await writer.flush();
    this.#dirty.clear();
  }

  async close(): Promise<void> {
    for (const writer of this.#open.values()) await writer.close();
    this.#open.clear();
    this.#dirty.clear();
  }
}

/**
 * The factors of each tensor, by index: 1 but for scaled fp8, which has one number or one for each row.
 * They may lie anywhere in the files, so they are read beforehand.
 *
 * @throws KinoraError `MODEL_FILE_INVALID`
 */
async function readFactors(conversions: readonly Conversion[]): Promise<readonly Float32Array[]> {
  const factors = conversions.map((): Float32Array => new Float32Array([1]));
  const scales = conversions.flatMap(({ located }, tensor) =>
    located.scale ? [{ tensor, name: located.storedName, ...located.scale }] : [],
  );
  for (const file of new Set(scales.map((scale) => scale.file))) {
    const own = scales.filter((scale) => scale.file === file);
    for (const { items, start, end } of neighbours(own, ({ entry }) => entry)) {
      const bytes = await file.read(start, end);
      for (const { tensor, name, entry } of items) {
        const part = bytes.slice(entry.start - start, entry.end - start);
        factors[tensor] = scaleFactors(part, entry.dtype, name);
      }
    }
  }
  return factors;
}
