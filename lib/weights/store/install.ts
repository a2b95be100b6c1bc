import { at, type StoredComponent } from '../../contract';
import type { ByteSource, WeightFile } from '../formats/source';
import { convertSources } from './conversion';
import { type FetchRecord, isLost, readFetched, recordEnding } from './fetched-file';
import { type KeptFile, type StoreFolder, writeWhole } from './folder';
import { type Checksum, createChecksum, createSourceHash } from './hashes';
import type { Installation, InstallOptions } from './installation';
import { Journal, type JournalState } from './journal';
import { isKeptStart } from './kept-start';
import { checkRecipe, type Layout, layoutOf, rowRanges } from './layout';
import { type ComponentManifest, deleteManifest, readManifest, writeManifest } from './manifest';
import { locatedTensor, type Plan, planUnits, unitBytes } from './units';

/**
 * Installs a component: streams its files, converts each unit and writes it to its place, and notes it in the journal
 * once it is safe, at least every second. An interrupted installation continues at the unit where it stopped, given
 * the same sources and recipe. Only the manifest, written last, makes the component count.
 *
 * Holds about 15 units of memory (15 MB), or 7 times the largest tensor that is reordered.
 *
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE`, `TENSOR_DTYPE`, `MODEL_FILE_INVALID` when the
 * files are not what the recipe asks for; `STORAGE_FULL` (what is there stays, and it can go on);
 * `DOWNLOAD_CORRUPT` when a file has another SHA-256 than announced (nothing stays of it)
 * @throws SourceChanged when a file is not the same any more (nothing stays of it: open it again)
 * @throws the signal's reason, and what the sources throw; it can go on then
 */
export async function installComponent(options: InstallOptions): Promise<StoredComponent> {
  const { folder, recipe, sources, tensors } = options;
  checkRecipe(recipe);
  const layout = layoutOf(recipe, (source) => {
    const { entry, scale } = locatedTensor(source, tensors);
    // Elements that are multiplied are no longer of the file's type.
    return scale ? 'scaled' : entry.dtype;
  });
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
  const installation = { options, plan, layout, print, journal, hash, checksum };
  try {
    await prepare(installation, complete !== null);
    await convertSources(installation);
    for (const { name, bytes } of files) await writeWhole(await folder.write(name), bytes);
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

/** An installation that was not brought to its end. */
export interface BegunInstallation {
  readonly sources: readonly Pick<ByteSource, 'name' | 'identity' | 'size'>[];
  readonly bytesDone: number;
  readonly bytesStored: number;
}

/** The progress of an unfinished installation in this folder; null when there is none. */
export async function installProgress(folder: StoreFolder): Promise<BegunInstallation | null> {
  const { state } = await Journal.open(folder, await createChecksum());
  if (state.state === 'underway') return state;
  const sources: FetchRecord[] = [];
  for (const name of await folder.list()) {
    if (!name.endsWith(recordEnding)) continue;
    const fetched = await readFetched(folder, name.slice(0, -recordEnding.length));
    if (fetched) sources.push(fetched);
  }
  const bytesDone = sources.reduce((sum, { bytes }) => sum + bytes, 0);
  return sources.length > 0 ? { sources, bytesDone, bytesStored: bytesDone } : null;
}

/** Leaves what the journal tells where the installation can go on from there, or else begins anew. */
async function prepare(installation: Installation, replaces: boolean): Promise<void> {
  const { options, print, journal } = installation;
  const obstacle = replaces ? null : await findObstacle(installation);
  if (!replaces && journal.state.state === 'underway' && obstacle === null) return;
  if (obstacle !== null) options.onRestart?.(obstacle);
  await journal.remove();
  await discard(options.folder);
  const sources = options.sources.map(({ name, identity, size }) => ({ name, identity, size }));
  await journal.append({ type: 'begin', plan: print, sources });
}

/** Deletes what only an installation needs. */
async function removeTraces(folder: StoreFolder): Promise<void> {
  for (const name of await folder.list()) {
    if (name === 'journal' || isKeptStart(name)) await folder.remove(name);
  }
}

/** Why the installation cannot go on from the journal's state; null when it can, or when there is no journal. */
async function findObstacle(installation: Installation): Promise<string | null> {
  const { options, plan, print, hash } = installation;
  const { state } = installation.journal;
  if (state.state === 'none') return null;
  if (state.state === 'broken') return 'The record of what was fetched so far is damaged.';
  const changed = options.sources.find(({ identity, size }, i) => {
    const before = state.sources[i];
    return before && (before.identity !== identity || before.size !== size);
  });
  if (changed) return `${changed.name} was changed at its source.`;
  if (state.plan !== print) return 'It was begun from other files or in another form.';
  for (const [pack, bytes] of writtenBytes(plan, state.units.length)) {
    const file = await options.folder.open(pack);
    if (!file || file.size < bytes) return `${pack} is not as it was written.`;
  }
  if (state.hash !== null && !(await hash.resume(state.hash))) {
    return 'It was begun by another version.';
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

/** Deletes what an installation wrote, but not the start of a source, which belongs to the next one. */
async function discard(folder: StoreFolder): Promise<void> {
  // The manifest first: a component without one is not there.
  await deleteManifest(folder);
  for (const name of await folder.list()) {
    if (!isKeptStart(name)) await folder.remove(name);
  }
}

/** A file that is kept as it is, with the checksum of its bytes. */
type SummedFile = KeptFile & { readonly checksum: string };

/** Identifies every byte of a component: what is made of which sources, and the files that are kept with it. */
function fingerprint(
  { conversions, units }: Plan,
  sources: readonly ByteSource[],
  files: readonly SummedFile[],
  checksum: Checksum,
): string {
  const weights: readonly WeightFile[] = sources;
  const converted = conversions.map(({ place, located, rowsPerPiece, recipe }) => [
    place,
    recipe.source,
    weights.indexOf(located.file),
    located.entry,
    located.scale?.entry,
    rowsPerPiece,
  ]);
  const from = sources.map(({ identity, size }) => [identity, size]);
  const kept = files.map(({ name, checksum: sum }) => [name, sum]);
  const all = JSON.stringify([from, converted, units.length, kept]);
  return checksum([new TextEncoder().encode(all)]);
}

/** The manifest of a component of which every unit is done. */
function describe(
  options: InstallOptions,
  { conversions, units }: Plan,
  layout: Layout,
  kept: readonly SummedFile[],
  plan: string,
  journal: JournalState,
): ComponentManifest {
  if (journal.state !== 'underway') throw new TypeError('nothing was installed');
  const sums = conversions.map(() => ({ squaredError: 0, squaredNorm: 0 }));
  const checksums = conversions.map(() => new Map<number, string>()); // first row → checksum
  for (const [u, unit] of units.entries()) {
    for (const [p, piece] of unit.pieces.entries()) {
      const record = at(at(journal.units, u), p);
      const sum = at(sums, piece.tensor);
      sum.squaredError += record.squaredError;
      sum.squaredNorm += record.squaredNorm;
      at(checksums, piece.tensor).set(piece.firstRow, record.checksum);
    }
  }
  const tensors = conversions.map(({ place, located, rowsPerPiece, recipe }, i) => ({
    ...place,
    shape: [...place.shape],
    sourceType: located.entry.dtype,
    relativeError: Math.sqrt(at(sums, i).squaredError / (at(sums, i).squaredNorm || 1)),
    // Reordered tensors have one checksum, whatever their first dimension is now.
    rowsPerChecksum: recipe.reorder ? Math.max(1, place.shape[0] ?? 1) : rowsPerPiece,
    checksums: [...at(checksums, i)].sort(([a], [b]) => a - b).map(([, sum]) => sum),
  }));
  const files = new Map([
    ...layout.packs,
    ...kept.map(({ name, bytes }) => [name, bytes.length] as const),
  ]);
  const stored = componentOf(options, conversions, tensors, files, journal.digests);
  return {
    version: 1,
    stored,
    plan,
    files: Object.fromEntries(files),
    tensors,
    fileChecksums: Object.fromEntries(kept.map(({ name, checksum }) => [name, checksum])),
  };
}

function componentOf(
  { component, precision, sources }: InstallOptions,
  conversions: Plan['conversions'],
  tensors: readonly { readonly name: string; readonly relativeError: number }[],
  files: ReadonlyMap<string, number>,
  digests: readonly string[],
): StoredComponent {
  const bytesOf = new Map<string, number>(); // element type → bytes of source
  for (const { located } of conversions) {
    const { dtype, start, end } = located.entry;
    bytesOf.set(dtype, (bytesOf.get(dtype) ?? 0) + end - start);
  }
  const [sourceType = ''] = [...bytesOf].sort(([, a], [, b]) => b - a)[0] ?? [];
  const worst = tensors.reduce<StoredComponent['worst']>(
    (most, { name, relativeError: error }) =>
      error > (most?.relativeError ?? 0) ? { tensor: name, relativeError: error } : most,
    null,
  );
  const now = new Date().toISOString();
  return {
    component,
    sources: sources.map(({ name, size }, i) => ({ name, bytes: size, sha256: at(digests, i) })),
    sourceType,
    precision,
    worst,
    bytesStored: [...files.values()].reduce((sum, bytes) => sum + bytes, 0),
    completedAt: now,
    verifiedAt: now,
  };
}
