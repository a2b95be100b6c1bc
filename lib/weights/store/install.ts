import type { StoredComponent } from '../../contract';
import type { ByteSource } from '../formats/source';
import { convertSources } from './conversion';
import { type FetchRecord, isLost, readFetched, recordEnding } from './fetched-file';
import { type StoreFolder, writeFile } from './folder';
import { createChecksum, createSourceHash } from './hashes';
import type { InstallOptions } from './installation';
import { Journal } from './journal';
import { checkRecipe, layoutOf } from './layout';
import { readManifest, writeManifest } from './manifest';
import { prepare, removeTraces } from './resume';
import { describe, fingerprint } from './summary';
import { locatedTensor, planUnits, unitBytes } from './units';

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

/** An installation that was not brought to its end. */
export interface BegunInstallation {
  readonly sources: readonly Pick<ByteSource, 'name' | 'identity' | 'size'>[];
  readonly bytesDone: number;
  readonly bytesStored: number;
}

/** Where an unfinished installation in this folder stands; null when there is none. */
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
