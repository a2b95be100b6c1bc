import { toKinoraError } from '../contract';
import { isNotFound, openFolder, removeEntry, writeBytes } from './opfs';
import { ownerOf, servedVideo } from './videos';

/** Folder of the saved runs in the origin private file system (OPFS); each has a folder of its own. */
const folderName = 'runs';

/** The file of the end of a finished video: its last latents. */
export const endFile = 'end';

/** The files of one saved run. */
export interface RunFiles {
  /** Opens a file; bytes are read only when they are used. Null where there is none. */
  read(name: string): Promise<File | null>;
  /**
   * Writes a file, in the place of one of the same name. Where that fails, the earlier one may be damaged
   * in browsers without `createWritable`.
   *
   * @throws KinoraError `STORAGE_FULL`
   */
  write(name: string, data: Blob): Promise<void>;
  /** Deletes a file, if it exists. */
  remove(name: string): Promise<void>;
}

/** Facts of a saved run that are known without reading it. */
export interface SavedRunEntry {
  /** Id of its prediction, or of its API job as {@link servedRun} writes it. */
  readonly id: string;
  readonly bytes: number;
  /** Milliseconds since the epoch. */
  readonly lastModified: number;
  /** Whether it has the final latents of a clip. */
  readonly latents: boolean;
}

/** The files of a run, whose folder comes into being with the first one. */
export function openRunFiles(id: string): RunFiles {
  const folder = async (create: boolean) =>
    (await openFolder(folderName)).getDirectoryHandle(id, { create }).catch(nullIfAbsent);
  return {
    async read(name) {
      const handle = await (await folder(false))?.getFileHandle(name).catch(nullIfAbsent);
      return (await handle?.getFile().catch(nullIfAbsent)) ?? null;
    },
    async write(name, data) {
      const file = await (await folder(true))?.getFileHandle(name, { create: true });
      if (file) await writeBytes(file, data).catch(rethrow);
    },
    async remove(name) {
      const existing = await folder(false);
      if (existing) await removeEntry(existing, name);
    },
  };
}

/** All saved runs. */
export async function listRuns(): Promise<SavedRunEntry[]> {
  const runs: SavedRunEntry[] = [];
  for await (const folder of (await openFolder(folderName)).values()) {
    if (folder.kind !== 'directory') continue;
    let [bytes, lastModified, latents] = [0, 0, false];
    for await (const entry of folder.values()) {
      if (entry.kind !== 'file') continue;
      // It may be replaced or deleted just now.
      const file = await entry.getFile().catch(() => null);
      bytes += file?.size ?? 0;
      lastModified = Math.max(lastModified, file?.lastModified ?? 0);
      latents ||= entry.name.startsWith('clip-');
    }
    runs.push({ id: folder.name, bytes, lastModified, latents });
  }
  return runs;
}

/** Deletes all files of a run. */
export async function removeRun(id: string): Promise<void> {
  await removeEntry(await openFolder(folderName), id);
}

/** Id of the saved run of an API job: only lib/worker and the engine read and delete these. */
export function servedRun(jobId: string): string {
  return ownerOf(servedVideo(jobId));
}

function rethrow(thrown: unknown): never {
  throw toKinoraError(thrown);
}

function nullIfAbsent(thrown: unknown): null {
  if (isNotFound(thrown)) return null;
  throw toKinoraError(thrown);
}
