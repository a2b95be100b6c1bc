import { createSHA1 } from 'hash-wasm';
import { z } from 'zod';
import { type ComponentId, KinoraError, type StoredComponent } from '../../contract';
import { at } from '../../contract/at';
import type { ByteSource } from '../formats/source';
import { checkPath, parseModelJson } from '../formats/source';
import type { StoreFolder } from './folder';
import { writeFile } from './folder';
import { createChecksum, createSourceHash, type SourceHash, sha256Prefix } from './hashes';
import type { InstallProgress } from './installation';
import { deleteManifest, readManifest, writeManifest } from './manifest';
import { corrupt, removePartial, streamFile } from './streamed-file';

/** Which files are kept as they are, and where. */
export interface InstallFilesOptions {
  /** The component's folder in the store. */
  readonly folder: StoreFolder;
  readonly component: ComponentId;
  /** What to keep under which path. */
  readonly files: readonly {
    readonly path: string;
    readonly source: ByteSource;
    /** What the manifest calls it: `owner/name/path@revision`; the source's name when absent. */
    readonly name?: string;
  }[];
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: InstallProgress) => void;
}

const doneSchema = z.object({
  path: z.string(),
  identity: z.string(),
  bytes: z.int().min(0),
  sha256: z.string(),
  checksum: z.string(),
});
type Done = z.output<typeof doneSchema>;

const progressFile = 'progress.json';
/** Names that the store itself uses beside the files; drafts of them end in something more. */
const ownNames = /^(manifest|progress|partial)\.json(\.|$)/i;
/** More than any file of a configuration has: the largest, a tokenizer, has about 17 MB. */
const mostBytes = 64 * 2 ** 20;

/**
 * Installs a component whose files are stored as they are. Complete files are not fetched again. A large file
 * continues at the byte where it stopped.
 *
 * @throws KinoraError `MODEL_FILE_INVALID` for a path that leads out of the folder or is the store's own,
 * and for a file that is too large; `DOWNLOAD_CORRUPT`; `STORAGE_FULL`
 * @throws SourceChanged, the signal's reason, and what the sources throw; it can go on then
 */
export async function installFiles(options: InstallFilesOptions): Promise<StoredComponent> {
  const { folder, component, files, signal, onProgress } = options;
  const [checksum, hash] = [await createChecksum(), await createSourceHash()];
  const identities = JSON.stringify(files.map(({ path, source }) => [path, source.identity]));
  const plan = checksum([new TextEncoder().encode(identities)]);
  for (const { path, source } of files) checkFile(component, path, source);
  const complete = await readManifest(folder);
  if (complete?.plan === plan) return complete.stored;
  if (complete) await deleteManifest(folder);

  const kept = await readDone(folder);
  const done: Done[] = [];
  const bytesTotal = files.reduce((sum, { source }) => sum + source.size, 0);
  for (const { path, source } of files) {
    signal.throwIfAborted();
    const same = kept.find((file) => file.path === path && file.identity === source.identity);
    if (same && (await folder.open(path))?.size === same.bytes) done.push(same);
    else {
      const before = done.reduce((sum, file) => sum + file.bytes, 0);
      const onBytes = (bytes: number) =>
        onProgress?.({ bytesDone: before + bytes, bytesTotal, bytesStored: before + bytes });
      let sums: Pick<Done, 'sha256' | 'checksum'>;
      if (isStreamed(component, source)) {
        const sha256 = await streamFile({ folder, path, source, hash, signal, onBytes });
        sums = { sha256, checksum: `${sha256Prefix}${sha256}` };
      } else {
        const { data, sha256 } = await fetchFile(source, hash, signal, onBytes);
        await writeFile(folder, path, data);
        sums = { sha256, checksum: checksum([data]) };
      }
      done.push({ path, identity: source.identity, bytes: source.size, ...sums });
      await folder.writeText(progressFile, JSON.stringify(done));
      await removePartial(folder);
    }
    const bytesDone = done.reduce((sum, file) => sum + file.bytes, 0);
    onProgress?.({ bytesDone, bytesTotal, bytesStored: bytesDone });
  }
  const now = new Date().toISOString();
  const stored: StoredComponent = {
    component,
    sources: files.map(({ source, name }, i) => ({
      name: name ?? source.name,
      bytes: source.size,
      sha256: at(done, i).sha256,
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
    files: Object.fromEntries(done.map(({ path, bytes }) => [path, bytes])),
    tensors: [],
    fileChecksums: Object.fromEntries(done.map(({ path, checksum: sum }) => [path, sum])),
  });
  await folder.remove(progressFile);
  return stored;
}

/** The files of a configuration, and files that the hub keeps in git, are small: they fit into memory. */
function isStreamed(component: ComponentId, { gitSha1 }: ByteSource): boolean {
  return component !== 'configuration' && !gitSha1;
}

/** @throws KinoraError `MODEL_FILE_INVALID` for what cannot be stored as it is */
function checkFile(component: ComponentId, path: string, source: ByteSource): void {
  const { name, size } = source;
  if (ownNames.test(checkPath(path))) {
    throw new KinoraError('MODEL_FILE_INVALID', `No file of a model may be called ${path}.`);
  }
  if (size <= mostBytes || isStreamed(component, source)) return;
  const sentence = `${name} has ${size} bytes; a file that is stored as it is has ${mostBytes} at most.`;
  throw new KinoraError('MODEL_FILE_INVALID', sentence);
}

/** A whole file, compared with what was announced. */
async function fetchFile(
  source: ByteSource,
  hash: SourceHash,
  signal: AbortSignal,
  onFetched: (bytes: number) => void,
) {
  const data = new Uint8Array(source.size);
  let at = 0;
  await hash.start();
  for await (const piece of source.stream(0, source.size, signal)) {
    await hash.update(piece);
    data.set(piece, at);
    at += piece.length;
    onFetched(at);
  }
  const sha256 = await hash.digest();
  const { name, size } = source;
  if (at !== size) throw corrupt(name, `${at} bytes`, `${size}`);
  if (source.sha256 !== null && source.sha256 !== sha256) {
    throw corrupt(name, `the SHA-256 ${sha256}`, source.sha256);
  }
  const { gitSha1 } = source;
  const actualSha1 = gitSha1 ? await gitHash(data) : null;
  if (gitSha1 && actualSha1 !== gitSha1) throw corrupt(name, `git's SHA-1 ${actualSha1}`, gitSha1);
  return { data, sha256 };
}

/** What git calls the content: SHA-1 of `blob <size>\0` and the bytes. */
async function gitHash(bytes: Uint8Array): Promise<string> {
  const hasher = await createSHA1();
  return hasher.init().update(`blob ${bytes.length}\0`).update(bytes).digest();
}

async function readDone(folder: StoreFolder): Promise<readonly Done[]> {
  const text = await folder.readText(progressFile);
  if (text === null) return [];
  try {
    return z.array(doneSchema).parse(parseModelJson(progressFile, text));
  } catch {
    return []; // Then they are fetched again.
  }
}
