import { KinoraError, toKinoraError } from '../contract/errors';

/** Folder of the origin private file system in which the videos lie. */
const folderName = 'videos';
/** Ending of a file that is still being written. */
const partial = '.part';

/** `move` is in every browser that has the file system, but not yet in the type library. */
interface MovableFile extends FileSystemFileHandle {
  move?(name: string): Promise<void>;
}

/**
 * Writes a video so that its name either holds all of it or does not exist: the bytes go to another
 * name first. Works in a worker and in the page. A video of the same name is replaced.
 *
 * @param file name without a path, such as `<id>.mp4`
 * @throws KinoraError `STORAGE_FULL`; then nothing of the file is left
 */
export async function writeVideo(file: string, blob: Blob): Promise<void> {
  const folder = await openFolder();
  const draft: MovableFile = await folder.getFileHandle(file + partial, { create: true });
  try {
    await writeBytes(draft, blob);
    if (draft.move) await draft.move(file);
    else await copyInto(folder, file, draft);
  } catch (thrown) {
    await removeEntry(folder, file + partial);
    throw toKinoraError(thrown);
  }
}

/**
 * Reads a video as a file on disk; its bytes are fetched only where they are used.
 *
 * @throws KinoraError `FILE_UNREADABLE` when there is no such video
 */
export async function readVideo(file: string): Promise<File> {
  try {
    const handle = await (await openFolder()).getFileHandle(file);
    const stored = await handle.getFile();
    return new File([stored], file, { type: 'video/mp4', lastModified: stored.lastModified });
  } catch (thrown) {
    if (!isNotFound(thrown)) throw toKinoraError(thrown);
    throw new KinoraError('FILE_UNREADABLE', `The video ${file} is not in this browser any more.`, {
      remedy: 'Run it again with the same settings.',
    });
  }
}

/** Deletes a video, and what is left of an unfinished one; deleting nothing is fine. */
export async function removeVideo(file: string): Promise<void> {
  const folder = await openFolder();
  await removeEntry(folder, file);
  await removeEntry(folder, file + partial);
}

/** Names of all files in the folder, unfinished ones included. */
export async function listVideos(): Promise<string[]> {
  const names: string[] = [];
  for await (const name of (await openFolder()).keys()) names.push(name);
  return names;
}

/** Id of the prediction that a file belongs to: its name up to the first dot. */
export function ownerOf(file: string): string {
  return file.split('.', 1)[0] ?? file;
}

/** Beginning of the names of videos that were made for others and have no row here. */
const served = 'served-';

/** Name of the video of a served job, until it is uploaded. */
export function servedVideo(jobId: string): string {
  return `${served}${jobId}.mp4`;
}

/** Whether a file is a served job's: lib/worker looks after it, and nobody else. */
export function isServedVideo(file: string): boolean {
  return file.startsWith(served);
}

async function openFolder(): Promise<FileSystemDirectoryHandle> {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(folderName, { create: true });
}

async function writeBytes(handle: FileSystemFileHandle, blob: Blob): Promise<void> {
  if ('createWritable' in handle) {
    // Closes the file at the end, and drops it when a chunk fails.
    await blob.stream().pipeTo(await handle.createWritable());
    return;
  }
  // Safari before 26 writes in workers only, and only like this.
  const access = await (handle as FileSystemFileHandle).createSyncAccessHandle();
  try {
    access.truncate(0);
    const reader = blob.stream().getReader();
    let at = 0;
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      at += access.write(chunk.value, { at });
    }
    if (at !== blob.size) throw new KinoraError('STORAGE_FULL');
    access.flush();
  } finally {
    access.close();
  }
}

async function copyInto(
  folder: FileSystemDirectoryHandle,
  file: string,
  draft: FileSystemFileHandle,
): Promise<void> {
  try {
    await writeBytes(await folder.getFileHandle(file, { create: true }), await draft.getFile());
  } catch (thrown) {
    await removeEntry(folder, file);
    throw thrown;
  }
  await removeEntry(folder, draft.name);
}

async function removeEntry(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
  try {
    await folder.removeEntry(name);
  } catch (thrown) {
    if (!isNotFound(thrown)) throw toKinoraError(thrown);
  }
}

function isNotFound(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === 'NotFoundError';
}
