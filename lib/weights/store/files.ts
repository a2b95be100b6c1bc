import { at, type ComponentId, KinoraError, type StoredComponent } from '../../contract';
import type { ByteSource } from '../formats/source';
import { checkPath } from '../formats/source';
import { fetchFile, forgetFetched, recordEnding } from './fetched-file';
import type { StoreFolder } from './folder';
import { createChecksum, createSourceHash, sha256Prefix } from './hashes';
import type { InstallProgress } from './installation';
import { deleteManifest, readManifest, writeManifest } from './manifest';

/** Which files are kept as they are, and where. */
export interface InstallFilesOptions {
  /** The component's folder in the store. */
  readonly folder: StoreFolder;
  readonly component: ComponentId;
  /** A file and its path in the store. */
  readonly files: readonly { readonly path: string; readonly source: ByteSource }[];
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: InstallProgress) => void;
}

/**
 * Installs a component whose files are stored as they are. Complete files are not fetched again. A large file
 * continues at the byte where it stopped.
 *
 * @throws KinoraError `MODEL_FILE_INVALID` for a path that leads out of the folder or is the store's own;
 * `DOWNLOAD_CORRUPT`; `STORAGE_FULL`
 * @throws SourceChanged, the signal's reason, and what the sources throw; it can go on then
 */
export async function installFiles(options: InstallFilesOptions): Promise<StoredComponent> {
  const { folder, component, files, signal, onProgress } = options;
  const [checksum, hash] = [await createChecksum(), await createSourceHash()];
  const identities = JSON.stringify(files.map(({ path, source }) => [path, source.identity]));
  const plan = checksum([new TextEncoder().encode(identities)]);
  for (const { path } of files) checkName(path);
  const complete = await readManifest(folder);
  if (complete?.plan === plan) return complete.stored;
  if (complete) await deleteManifest(folder);

  const done: string[] = [];
  const bytesTotal = files.reduce((sum, { source }) => sum + source.size, 0);
  let before = 0;
  for (const { path, source } of files) {
    signal.throwIfAborted();
    const report = (bytes: number) => {
      const bytesDone = before + bytes;
      onProgress?.({ bytesDone, bytesTotal, bytesStored: bytesDone });
    };
    done.push(await fetchFile(folder, path, { source, hash, signal }, report));
    report(source.size);
    before += source.size;
  }
  const now = new Date().toISOString();
  const stored: StoredComponent = {
    component,
    sources: files.map(({ source: { name, size } }, i) => ({
      name,
      bytes: size,
      sha256: at(done, i),
    })),
    sourceType: 'files',
    precision: 'f32',
    worst: null,
    bytesStored: bytesTotal,
    completedAt: now,
    verifiedAt: now,
  };
  await writeManifest(folder, {
    version: 1,
    stored,
    plan,
    files: Object.fromEntries(files.map(({ path, source }) => [path, source.size])),
    tensors: [],
    fileChecksums: Object.fromEntries(
      files.map(({ path }, i) => [path, sha256Prefix + at(done, i)]),
    ),
  });
  for (const { path } of files) await forgetFetched(folder, path);
  return stored;
}

/** @throws KinoraError `MODEL_FILE_INVALID` for a name that the store itself uses beside the files */
function checkName(path: string): void {
  // A file that is being written has a further ending.
  const isOwn = /^manifest\.json(\.|$)/i.test(checkPath(path)) || path.includes(recordEnding);
  if (!isOwn) return;
  throw new KinoraError('MODEL_FILE_INVALID', `No file of a model may be called ${path}.`);
}
