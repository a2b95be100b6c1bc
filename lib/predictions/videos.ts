import { KinoraError, renameFile, toKinoraError } from '../contract';
import { isNotFound, openFolder, removeEntry, writeBytes } from './opfs';

/** Folder of the videos in the origin private file system (OPFS). */
const folderName = 'videos';
/** Suffix of a file that is not complete. */
const partialSuffix = '.part';

/**
 * Writes a video atomically: the bytes go to a temporary file, which is then renamed. Replaces a video
 * of the same name. Works in workers and in the page.
 *
 * @param file name without a path, such as `<id>.mp4`
 * @throws KinoraError `STORAGE_FULL`, after deleting the temporary file
 */
export async function writeVideo(file: string, blob: Blob): Promise<void> {
  const folder = await openFolder(folderName);
  const temporary = await folder.getFileHandle(file + partialSuffix, { create: true });
  try {
    await writeBytes(temporary, blob);
    if (!(await renameFile(folder, temporary, file))) await copyInto(folder, file, temporary);
  } catch (thrown) {
    await removeEntry(folder, file + partialSuffix);
    throw toKinoraError(thrown);
  }
}

/**
 * Opens a video as a file on disk; bytes are read only when they are used.
 *
 * @throws KinoraError `FILE_UNREADABLE` if there is no such video
 */
export async function readVideo(file: string): Promise<File> {
  try {
    const handle = await (await openFolder(folderName)).getFileHandle(file);
    const stored = await handle.getFile();
    return new File([stored], file, { type: 'video/mp4', lastModified: stored.lastModified });
  } catch (thrown) {
    if (!isNotFound(thrown)) throw toKinoraError(thrown);
    throw new KinoraError('FILE_UNREADABLE', `The video ${file} is not in this browser any more.`, {
      remedy: 'Run it again with the same settings.',
    });
  }
}

/** Deletes a video and its unfinished file, if they exist. */
export async function removeVideo(file: string): Promise<void> {
  const folder = await openFolder(folderName);
  await removeEntry(folder, file);
  await removeEntry(folder, file + partialSuffix);
}

/** Names of all files in the folder, including unfinished ones. */
export async function listVideos(): Promise<string[]> {
  const names: string[] = [];
  for await (const name of (await openFolder(folderName)).keys()) names.push(name);
  return names;
}

/** Id of a file's prediction: its name up to the first dot. */
export function ownerOf(file: string): string {
  return file.split('.', 1)[0] ?? file;
}

/** Prefix of the videos of API jobs, which have no row. */
const servedPrefix = 'served-';

/** Name of the video of an API job, which exists until it is uploaded. */
export function servedVideo(jobId: string): string {
  return `${servedPrefix}${jobId}.mp4`;
}

/** Whether a video, or a saved run by its id, is that of an API job: only lib/worker and the engine read and delete these. */
export function isServed(name: string): boolean {
  return name.startsWith(servedPrefix);
}

async function copyInto(
  folder: FileSystemDirectoryHandle,
  file: string,
  temporary: FileSystemFileHandle,
): Promise<void> {
  try {
    await writeBytes(await folder.getFileHandle(file, { create: true }), await temporary.getFile());
  } catch (thrown) {
    await removeEntry(folder, file);
    throw thrown;
  }
  await removeEntry(folder, temporary.name);
}
