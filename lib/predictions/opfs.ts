import { KinoraError, openSyncAccess, siteStorage, toKinoraError } from '../contract';

/** Replaces the content of a file: wholly or not at all, but in Safari before 26. */
export async function writeBytes(handle: FileSystemFileHandle, blob: Blob): Promise<void> {
  if ('createWritable' in handle) {
    // Closes the file at the end, and discards the changes when a chunk fails.
    await blob.stream().pipeTo(await handle.createWritable());
    return;
  }
  // Safari before 26 can write only in workers, and only with a sync access handle.
  const access = await openSyncAccess(handle as FileSystemFileHandle);
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

/** A folder of the site's private file system; made where it is absent. */
export async function openFolder(name: string): Promise<FileSystemDirectoryHandle> {
  return (await siteStorage()).getDirectoryHandle(name, { create: true });
}

/**
 * Whether a file of this size can be stored: null where the browser does not tell. The estimate of
 * `navigator.storage` does not: Chromium's always has 10 GiB to spare. So a file is made so large, and not kept.
 */
export async function hasRoom(bytes: number): Promise<boolean | null> {
  try {
    const root = await siteStorage();
    const name = 'room';
    const file = await (await root.getFileHandle(name, { create: true })).createWritable();
    const fits = file.truncate(bytes).then(
      () => true,
      (thrown: unknown) => (toKinoraError(thrown).code === 'STORAGE_FULL' ? false : null),
    );
    // The file is not kept.
    await fits.then(() => file.abort()).catch(() => {});
    await removeEntry(root, name);
    return await fits;
  } catch (thrown) {
    return toKinoraError(thrown).code === 'STORAGE_FULL' ? false : null;
  }
}

/** Deletes a file, or a folder with all that is in it; deleting nothing is fine. */
export async function removeEntry(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
  try {
    await folder.removeEntry(name, { recursive: true });
  } catch (thrown) {
    if (!isNotFound(thrown)) throw toKinoraError(thrown);
  }
}

export function isNotFound(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === 'NotFoundError';
}
