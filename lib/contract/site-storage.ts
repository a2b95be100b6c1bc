import { KinoraError } from './errors';

/**
 * The root of the origin private file system.
 *
 * @throws KinoraError `STORAGE_BLOCKED` where the browser keeps no files for this page: it is not at https, or
 *   site data is blocked
 */
export async function siteStorage(): Promise<FileSystemDirectoryHandle> {
  try {
    return await navigator.storage.getDirectory();
  } catch (cause) {
    throw new KinoraError('STORAGE_BLOCKED', undefined, { cause });
  }
}
