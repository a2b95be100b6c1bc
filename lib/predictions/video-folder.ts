import { KinoraError, toKinoraError } from '../contract';
import { isNotFound, writeBytes } from './opfs';

/** A folder of the user's disk. TypeScript's library does not declare its permissions yet. */
export interface VideoFolder extends FileSystemDirectoryHandle {
  queryPermission(options: { mode: 'readwrite' }): Promise<PermissionState>;
  /** Asks the user; only shortly after a click, else it throws. */
  requestPermission(options: { mode: 'readwrite' }): Promise<PermissionState>;
}

const access = { mode: 'readwrite' } as const;

/** Whether Kinora may write into the folder now. A new page may have to ask again. */
export async function mayWrite(folder: VideoFolder): Promise<boolean> {
  return (await folder.queryPermission(access)) === 'granted';
}

/** Asks for the permission to write, in a click handler. @returns whether it is there then */
export async function askToWrite(folder: VideoFolder): Promise<boolean> {
  return (await folder.requestPermission(access)) === 'granted';
}

/**
 * Writes a video into a folder, wholly or not at all. Replaces a file of the same name.
 *
 * @throws KinoraError `FILE_UNWRITABLE`, `STORAGE_FULL`
 */
export async function saveInto(folder: VideoFolder, name: string, video: Blob): Promise<void> {
  if (!(await mayWrite(folder))) throw deniedBy(folder);
  const isNew = await folder.getFileHandle(name).then(() => false, isNotFound);
  try {
    await writeBytes(await folder.getFileHandle(name, { create: true }), video);
  } catch (thrown) {
    if (isNew) await discard(folder, name);
    throw folderError(thrown, folder);
  }
}

/** Deletes a file whose writing failed: the browser may hold it for a moment after that. */
async function discard(folder: VideoFolder, name: string): Promise<void> {
  for (let attempt = 0; attempt < 20; attempt++) {
    if (await folder.removeEntry(name).then(() => true, isNotFound)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function deniedBy({ name }: VideoFolder): KinoraError {
  return new KinoraError(
    'FILE_UNWRITABLE',
    `The browser asks again before Kinora may write into the folder “${name}”.`,
    { remedy: 'Allow it, or choose another folder.' },
  );
}

function folderError(thrown: unknown, { name }: VideoFolder): KinoraError {
  if (isNotFound(thrown)) {
    return new KinoraError('FILE_UNWRITABLE', `The folder “${name}” does not exist any more.`, {
      remedy: 'Choose another folder.',
    });
  }
  const error = toKinoraError(thrown);
  if (error.code === 'STORAGE_FULL') {
    return new KinoraError('STORAGE_FULL', `The disk with the folder “${name}” is full.`, {
      remedy: 'Free disk space, or choose another folder.',
    });
  }
  const detail = thrown instanceof Error ? thrown.message : String(thrown);
  return new KinoraError('FILE_UNWRITABLE', `No file can be written into “${name}”: ${detail}`);
}
