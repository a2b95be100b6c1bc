import {
  type ComponentId,
  KinoraError,
  type Precision,
  type StoredComponent,
} from '../../contract';
import { type ByteSource, SourceChanged } from '../byte-source';
import type { LocatedTensor } from '../located';
import { type Checksum, createChecksum } from './checksum';
import { convertRows } from './convert';
import { createSourceHash, type SourceHash } from './digest';
import { readFactors } from './factors';
import type { StoreFolder } from './folder';
import { Journal, type JournalState, type PieceRecord } from './journal';
import { type KeptFile, writeFile } from './kept-file';
import { keptFiles } from './kept-start';
import { checkRecipe, layoutOf, rowRanges } from './layout';
import { deleteManifest, readManifest, writeManifest } from './manifest';
import { PackWriters } from './pack-writers';
import type { ComponentRecipe } from './recipe';
import { StreamReader } from './stream-reader';
import { describe, fingerprint } from './summary';
import { type Plan, planUnits, unitBytes } from './units';

export interface InstallProgress {
  /** Bytes of the sources that are converted and would survive a crash. */
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** Bytes that are written to the packs. */
  readonly bytesStored: number;
}

export interface InstallOptions {
  /** The component's folder in the store. */
  readonly folder: StoreFolder;
  readonly component: ComponentId;
  /** For the manifest: the precision that the recipe was made for. */
  readonly precision: Precision;
  readonly recipe: ComponentRecipe;
  /** Its files, in the order of the shards; see `keepStart`. */
  readonly sources: readonly ByteSource[];
  /** What the manifest calls them: `owner/name/path@revision`; their own names when absent. */
  readonly sourceNames?: readonly string[];
  /** By the source names of the recipe; each `file` is one of `sources`. */
  readonly tensors: ReadonlyMap<string, LocatedTensor>;
  /** Kept and verified with its weights. */
  readonly files?: readonly KeptFile[];
  readonly signal: AbortSignal;
  /** Called after each unit, and once at the beginning. */
  readonly onProgress?: (progress: InstallProgress) => void;
  /** Called when what was there does not fit any more and it starts over. */
  readonly onRestart?: (reason: string) => void;
  /** The hash in another thread, by Comlink; in this one when absent. See `sourceHashService`. */
  readonly hash?: SourceHash;
  /** Source bytes per unit; for tests. */
  readonly limit?: number;
}

/**
 * Installs a component: streams its files, converts each unit and writes it to its place, and notes it in
 * the journal once it is safe. What ends early, by whatever cause, goes on at the unit where it stopped,
 * given the same sources and recipe. Only the manifest, written last, makes the component count.
 *
 * Holds about 5 units of memory (40 MB), or 7 times the largest tensor that is reordered.
 *
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE`, `TENSOR_DTYPE`, `MODEL_FILE_INVALID` when the
 * files are not what the recipe asks for; `STORAGE_FULL` (what is there stays, and it can go on);
 * `DOWNLOAD_CORRUPT` when a file has another SHA-256 than announced (nothing stays)
 * @throws SourceChanged when a file is not the same any more (nothing stays: open it again)
 * @throws the signal's reason, and what the sources throw; it can go on then
 */
export async function installComponent(options: InstallOptions): Promise<StoredComponent> {
  const { folder, recipe, sources, tensors } = options;
  checkRecipe(recipe);
  const layout = layoutOf(recipe, (source) => tensors.get(source)?.entry.dtype ?? '');
  const plan = planUnits(layout, sources, tensors, options.limit ?? unitBytes);
  const checksum = await createChecksum();
  const hash = options.hash ?? (await createSourceHash());
  const files = (options.files ?? []).map((file) => ({
    ...file,
    checksum: checksum([file.bytes]),
  }));
  const print = fingerprint(plan, sources, files, checksum);

  const complete = await readManifest(folder);
  if (complete?.plan === print) {
    await removeTraces(folder);
    return complete.stored;
  }
  const journal = await Journal.open(folder, checksum);
  const installation = { options, plan, print, journal, hash, checksum };
  try {
    await prepare(installation, complete !== null);
    await convertAll(installation);
    for (const { name, bytes } of files) await writeFile(folder, name, bytes);
    const manifest = describe(options, plan, layout, files, print, journal.state);
    await writeManifest(folder, manifest);
    await journal.close();
    await removeTraces(folder);
    return manifest.stored;
  } catch (thrown) {
    await journal.close();
    if (isLost(thrown)) await folder.clear();
    throw thrown;
  }
}

/** Where an unfinished installation in this folder stands; null when there is none. */
export async function installProgress(
  folder: StoreFolder,
): Promise<Extract<JournalState, { state: 'underway' }> | null> {
  const { state } = await Journal.open(folder, await createChecksum());
  return state.state === 'underway' ? state : null;
}

/** Whether what was written is worth nothing any more. */
export function isLost(thrown: unknown): boolean {
  if (thrown instanceof SourceChanged) return true;
  return thrown instanceof KinoraError && thrown.code === 'DOWNLOAD_CORRUPT';
}

interface Installation {
  readonly options: InstallOptions;
  readonly plan: Plan;
  /** Fingerprint of the plan and its sources. */
  readonly print: string;
  readonly journal: Journal;
  readonly hash: SourceHash;
  readonly checksum: Checksum;
}

/** Brings the folder into the state that the journal tells, or begins anew. */
async function prepare(installation: Installation, replaces: boolean): Promise<void> {
  const { options, print, journal } = installation;
  const { folder, sources, onRestart } = options;
  const obstacle = replaces ? null : await findObstacle(installation);
  if (!replaces && journal.state.state === 'underway' && obstacle === null) return;
  if (obstacle !== null) onRestart?.(obstacle);
  await journal.remove();
  await discard(folder);
  await journal.append({
    type: 'begin',
    plan: print,
    sources: sources.map(({ name, identity, size }) => ({ name, identity, size })),
  });
}

/** Why it cannot go on from what the journal tells; null when it can, or when there is nothing. */
async function findObstacle(installation: Installation): Promise<string | null> {
  const { options, plan, print, hash } = installation;
  const { state } = installation.journal;
  if (state.state === 'none') return null;
  if (state.state === 'broken') return 'The record of what was fetched so far is damaged.';
  const changed = options.sources.find(({ identity, size }, i) => {
    const before = state.sources[i];
    return before !== undefined && (before.identity !== identity || before.size !== size);
  });
  if (changed) return `${changed.name} was changed at its source.`;
  if (state.plan !== print) return 'It was begun from other files or in another form.';
  if (state.hash !== null && !(await hash.resume(state.hash)))
    return 'It was begun by another version.';
  for (const [pack, bytes] of writtenBytes(plan, state.units.length)) {
    const file = await options.folder.open(pack);
    if (!file || file.size < bytes) return `${pack} is not as it was written.`;
  }
  return null;
}

/** How long each pack must be when so many units are done. */
function writtenBytes({ units, conversions }: Plan, done: number): Map<string, number> {
  const bytes = new Map<string, number>();
  for (const { tensor, firstRow, rows } of units.slice(0, done).flatMap((unit) => unit.pieces)) {
    const conversion = conversions[tensor];
    if (!conversion) continue;
    const { place, recipe } = conversion;
    const { elements, scales } = rowRanges(place, firstRow, rows);
    const end = recipe.reorder ? place.offset + place.bytes : (scales ?? elements)[1];
    bytes.set(place.pack, Math.max(bytes.get(place.pack) ?? 0, end));
  }
  return bytes;
}

async function convertAll(installation: Installation): Promise<void> {
  const { options, plan, journal, hash } = installation;
  const { sources, signal, onProgress } = options;
  const bytesTotal = sources.reduce((sum, { size }) => sum + size, 0);
  const report = () => {
    if (journal.state.state !== 'underway') return;
    const { bytesDone, bytesStored } = journal.state;
    onProgress?.({ bytesDone, bytesTotal, bytesStored });
  };
  report();
  signal.throwIfAborted();
  const writers = new PackWriters(options.folder);
  const unit = unitConverter(installation, writers, await readFactors(plan.conversions));
  try {
    for (const [index, source] of sources.entries()) {
      const state = underway(journal);
      const left = [...plan.units.entries()]
        .slice(state.units.length)
        .filter(([, { source: of }]) => of === index);
      const first = left[0]?.[1];
      if (!first) continue;
      // Wherever it stopped, that unit's first byte is the next one of the stream and of the hash.
      if (state.hash === null || !(await hash.resume(state.hash))) await hash.start();
      const stream = new StreamReader(source.stream(first.start, source.size, signal), source.name);
      try {
        for (const [number] of left) {
          await unit(number, stream);
          report();
        }
      } finally {
        await stream.close();
      }
    }
  } finally {
    await writers.close();
  }
}

/** Gives a function that takes one unit from the stream to the packs and the journal. */
function unitConverter(
  { options, plan, journal, hash, checksum }: Installation,
  writers: PackWriters,
  factors: readonly number[],
) {
  const largest = plan.units.reduce((most, { start, end }) => Math.max(most, end - start), 0);
  const buffer = new Uint8Array(largest);
  return async (number: number, stream: StreamReader): Promise<void> => {
    const unit = plan.units[number];
    const source = unit && options.sources[unit.source];
    if (!unit || !source) throw new TypeError(`there is no unit ${number}`);
    const bytes = buffer.subarray(0, unit.end - unit.start);
    await stream.fill(bytes);
    options.signal.throwIfAborted();
    // A copy: the hash may be in another thread, and a view would take its whole buffer along.
    const hashed = Promise.resolve(hash.update(bytes.slice()));
    hashed.catch(() => undefined); // It shows below, unless something else fails before.

    let { bytesDone, bytesStored } = underway(journal);
    const pieces: PieceRecord[] = [];
    for (const { tensor, start, end, firstRow, rows } of unit.pieces) {
      const conversion = plan.conversions[tensor];
      if (!conversion) throw new TypeError(`there is no tensor ${tensor}`);
      const { place, recipe, located } = conversion;
      const { regions, squaredError, squaredNorm } = convertRows(place, recipe, {
        bytes: bytes.subarray(start - unit.start, end - unit.start),
        dtype: located.entry.dtype,
        firstRow,
        rows,
        factor: factors[tensor] ?? 1,
      });
      for (const region of regions) {
        await writers.write(place.pack, region.at, region.bytes);
        bytesStored += region.bytes.length;
      }
      const sum = checksum(regions.map((region) => region.bytes));
      pieces.push({ checksum: sum, squaredError, squaredNorm });
    }
    await hashed;
    const end = unit.end === source.size;
    const sha256 = end ? checkedDigest(source, await hash.digest()) : null;
    await writers.flush();
    bytesDone += unit.end - unit.start;
    await journal.append({
      type: 'unit',
      unit: number,
      pieces,
      bytesDone,
      bytesStored,
      hash: sha256 === null ? { at: 'middle', state: await hash.state() } : { at: 'end', sha256 },
    });
  };
}

/** SHA-256 of a source that was read to its end. @throws KinoraError `DOWNLOAD_CORRUPT` */
function checkedDigest(source: ByteSource, digest: string): string {
  if (source.sha256 === null || source.sha256 === digest) return digest;
  throw new KinoraError(
    'DOWNLOAD_CORRUPT',
    `${source.name} has the SHA-256 ${digest}, but ${source.sha256} was announced.`,
  );
}

function underway({ state }: Journal) {
  if (state.state !== 'underway') throw new TypeError('the installation has not begun');
  return state;
}

/** Deletes what an installation wrote, but not the start of a source, which belongs to the next one. */
async function discard(folder: StoreFolder): Promise<void> {
  // The manifest first: a component without one is not there.
  await deleteManifest(folder);
  for (const name of await folder.list()) {
    if (!isKeptStart(name)) await folder.remove(name);
  }
}

/** Deletes what only an installation needs. */
async function removeTraces(folder: StoreFolder): Promise<void> {
  for (const name of await folder.list()) {
    if (name === 'journal' || isKeptStart(name)) await folder.remove(name);
  }
}

function isKeptStart(name: string): boolean {
  const index = Number(/^start-(\d+)\./.exec(name)?.[1] ?? Number.NaN);
  return Object.values(keptFiles(index)).includes(name);
}
