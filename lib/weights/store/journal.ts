import { z } from 'zod';
import type { StoreFolder, StoreWriter } from './folder';
import type { Checksum } from './hashes';

/** Facts of a piece that is written. */
const pieceSchema = z.object({
  checksum: z.string(),
  squaredError: z.number(),
  squaredNorm: z.number(),
});
export type PieceRecord = z.output<typeof pieceSchema>;

const sourceSchema = z.object({
  name: z.string(),
  identity: z.string(),
  size: z.int().min(0),
});
export type SourceRecord = z.output<typeof sourceSchema>;

/** One line of the journal. */
const recordSchema = z.discriminatedUnion('type', [
  /** A new installation: of these sources, by this plan. */
  z.object({ type: z.literal('begin'), plan: z.string(), sources: z.array(sourceSchema) }),
  /** Some units, of one source, are in their packs and would survive a crash. */
  z.object({
    type: z.literal('units'),
    first: z.int().min(0),
    units: z.array(z.array(pieceSchema)),
    /** Bytes of all sources that are done, and bytes in the packs, so far. */
    bytesDone: z.int().min(0),
    bytesStored: z.int().min(0),
    /** SHA-256 of the source up to here: in midst of it the hasher's state, at its end the digest. */
    hash: z.discriminatedUnion('at', [
      z.object({ at: z.literal('middle'), state: z.string() }),
      z.object({ at: z.literal('end'), sha256: z.string() }),
    ]),
  }),
]);
export type JournalRecord = z.output<typeof recordSchema>;

/** The state of an installation, by its journal. */
export type JournalState =
  | { readonly state: 'none' }
  | {
      readonly state: 'underway';
      readonly plan: string;
      readonly sources: readonly SourceRecord[];
      /** By unit; as many as are done. */
      readonly units: readonly (readonly PieceRecord[])[];
      readonly bytesDone: number;
      readonly bytesStored: number;
      /** State of the hasher of the source that is half read, base64; null between sources. */
      readonly hash: string | null;
      /** SHA-256 of the sources that are wholly read. */
      readonly digests: readonly string[];
    }
  /** Records that do not follow from each other. */
  | { readonly state: 'broken' };

/** The state after one more record. */
export function advance(journal: JournalState, record: JournalRecord): JournalState {
  if (record.type === 'begin') {
    const { plan, sources } = record;
    if (journal.state !== 'none') return { state: 'broken' };
    const nothing = { units: [], bytesDone: 0, bytesStored: 0, hash: null, digests: [] };
    return { state: 'underway', plan, sources, ...nothing };
  }
  if (journal.state !== 'underway' || record.first !== journal.units.length) {
    return { state: 'broken' };
  }
  const { hash, units, bytesDone, bytesStored } = record;
  return {
    ...journal,
    units: [...journal.units, ...units],
    bytesDone,
    bytesStored,
    hash: hash.at === 'middle' ? hash.state : null,
    digests: hash.at === 'end' ? [...journal.digests, hash.sha256] : journal.digests,
  };
}

const fileName = 'journal';
/** A checksum of 16 digits and a space before each record. */
const prefixBytes = 17;
const newline = 10;

/**
 * The journal of an installation: one line per record, each with its checksum. A line that a crash cut
 * short is not there, nor is anything after it.
 */
export class Journal {
  #writer: StoreWriter | null = null;

  private constructor(
    readonly folder: StoreFolder,
    readonly checksum: Checksum,
    public state: JournalState,
    /** Where the next line goes. */
    private end: number,
  ) {}

  /** Reads what is there. Nothing in it can make this fail. */
  static async open(folder: StoreFolder, checksum: Checksum): Promise<Journal> {
    return new Journal(folder, checksum, ...(await replay(folder, checksum)));
  }

  /** Appends a record; it would survive a crash when this returns. */
  async append(record: JournalRecord): Promise<void> {
    if (!this.#writer) {
      this.#writer = await this.folder.write(fileName);
      await this.#writer.truncate(this.end);
    }
    const json = new TextEncoder().encode(JSON.stringify(record));
    const line = new Uint8Array(prefixBytes + json.length + 1);
    line.set(new TextEncoder().encode(`${this.checksum([json])} `));
    line.set(json, prefixBytes);
    line[line.length - 1] = newline;
    await this.#writer.write(this.end, line);
    await this.#writer.flush();
    this.end += line.length;
    this.state = advance(this.state, record);
  }

  async close(): Promise<void> {
    await this.#writer?.close();
    this.#writer = null;
  }

  /** Deletes it; the component's folder may hold other things. */
  async remove(): Promise<void> {
    await this.close();
    await this.folder.remove(fileName);
    this.state = { state: 'none' };
    this.end = 0;
  }
}

/** The state after all lines. */
async function replay(
  folder: StoreFolder,
  checksum: Checksum,
): Promise<[state: JournalState, end: number]> {
  const file = await folder.open(fileName);
  const bytes = file ? await file.read(0, file.size) : new Uint8Array();
  let state: JournalState = { state: 'none' };
  let end = 0;
  for (;;) {
    const next = bytes.indexOf(newline, end);
    const record = next < 0 ? null : parseLine(bytes.subarray(end, next), checksum);
    if (!record) break;
    state = advance(state, record);
    end = next + 1;
  }
  if (state.state === 'none' && bytes.length > 0) state = { state: 'broken' };
  return [state, end];
}

function parseLine(line: Uint8Array, checksum: Checksum): JournalRecord | null {
  const json = line.subarray(prefixBytes);
  const sum = new TextDecoder().decode(line.subarray(0, prefixBytes));
  if (sum !== `${checksum([json])} `) return null;
  try {
    return recordSchema.parse(JSON.parse(new TextDecoder().decode(json)));
  } catch {
    return null; // Another version's, with a right checksum.
  }
}
