import { KinoraError } from './errors';

/**
 * The root of the origin private file system (OPFS).
 *
 * @throws KinoraError `STORAGE_MISSING` where the browser has no such file system; `STORAGE_BLOCKED` where it keeps
 *   no files for this page: it is not at https, or site data is blocked
 */
export async function siteStorage(): Promise<FileSystemDirectoryHandle> {
  // Pages at http have no `storage`; it is then not known what the browser has.
  const { storage } = navigator as Partial<Navigator>;
  if (isSecureContext && !storage?.getDirectory) throw new KinoraError('STORAGE_MISSING');
  try {
    return await navigator.storage.getDirectory();
  } catch (cause) {
    throw new KinoraError('STORAGE_BLOCKED', undefined, { cause });
  }
}

/**
 * Opens a file of the private file system for writing at any place, which only dedicated workers can.
 *
 * @throws KinoraError `STORAGE_MISSING` where the browser, or this thread, has no such handles
 * @throws DOMException `NoModificationAllowedError` while the file is open elsewhere
 */
export async function openSyncAccess(
  file: Partial<Pick<FileSystemFileHandle, 'createSyncAccessHandle'>>,
): Promise<FileSystemSyncAccessHandle> {
  if (!file.createSyncAccessHandle) {
    throw new KinoraError(
      'STORAGE_MISSING',
      'This browser cannot write large files into its private storage (createSyncAccessHandle).',
    );
  }
  return file.createSyncAccessHandle();
}

/** TypeScript's library does not declare `move` yet. */
interface MovableFile extends FileSystemFileHandle {
  move?(folder: FileSystemDirectoryHandle, name: string): Promise<void>;
}

/**
 * Renames a file within its folder, and replaces one of that name.
 *
 * @returns false where the browser cannot; then nothing has changed
 */
export async function renameFile(
  folder: FileSystemDirectoryHandle,
  file: MovableFile,
  name: string,
): Promise<boolean> {
  if (!file.move) return false;
  // WebKit has only this form; a name alone is a TypeError there.
  await file.move(folder, name);
  return true;
}
