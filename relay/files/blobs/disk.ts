import { constants, createReadStream } from 'node:fs';
import { access, copyFile, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { ApiError } from '../../../lib/contract/v3';
import { checkKey, isMissing, onStorage } from './errors';
import type { BlobStore } from './index';
import { temporaryFile, writeNewFile } from './write';

/** Blobs as files of this machine: each can also be had by its path. */
export interface DiskBlobs extends BlobStore {
  readonly kind: 'disk';
  readonly folder: string;
}

/**
 * Blobs in one folder. A blob is written under a temporary name, synced and renamed, so that
 * a name always stands for a whole blob.
 *
 * @param folder where blobs are kept
 * @param temporary where they are written; on the same file system
 */
export function diskBlobs(folder: string, temporary: string): DiskBlobs {
  const fileOf = (key: string) => path.join(folder, checkKey(key));
  const place = async (file: string, key: string) => {
    const target = fileOf(key);
    await mkdir(path.dirname(target), { recursive: true });
    await moveFile(file, target, temporary);
    await syncFolder(path.dirname(target));
  };
  return {
    kind: 'disk',
    folder,
    async put(key, source, { maxBytes }) {
      checkKey(key);
      const file = temporaryFile(temporary);
      const written = await writeNewFile(file, source, maxBytes);
      await onStorage(() => place(file, key));
      return written;
    },
    async putFile(key, file) {
      checkKey(key);
      await onStorage(async () => {
        await syncFile(file);
        await place(file, key);
      });
    },
    async read(key, range) {
      const handle = await open(fileOf(key), 'r').catch((thrown: unknown) => {
        if (isMissing(thrown)) throw new ApiError('NOT_FOUND', undefined, { cause: thrown });
        throw new ApiError('STORAGE_DOWN', undefined, { cause: thrown });
      });
      const { size } = await handle.stat();
      const first = range?.first ?? 0;
      const last = Math.min(range?.last ?? size - 1, size - 1);
      const body = createReadStream('', { fd: handle, start: first, end: Math.max(last, 0) });
      return { body, bytes: Math.max(last - first + 1, 0) };
    },
    async stat(key) {
      const file = fileOf(key);
      return await onStorage(async () => {
        try {
          return { bytes: (await stat(file)).size };
        } catch (thrown) {
          if (isMissing(thrown)) return null;
          throw thrown;
        }
      });
    },
    async remove(key) {
      const file = fileOf(key);
      await onStorage(() => rm(file, { force: true }));
    },
    async ping() {
      await onStorage(async () => {
        await mkdir(folder, { recursive: true });
        await access(folder, constants.W_OK);
      });
    },
  };
}

/** Renames, or copies and renames where the file comes from another file system. */
async function moveFile(file: string, target: string, temporary: string): Promise<void> {
  try {
    await rename(file, target);
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'EXDEV')) throw thrown;
    const copy = temporaryFile(temporary);
    await copyFile(file, copy);
    await syncFile(copy);
    await rename(copy, target);
    await rm(file, { force: true });
  }
}

async function syncFile(file: string): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes a rename survive a power cut (fsync(2)). Not every system can sync a folder. */
async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open one.
  const handle = await open(folder, 'r').catch(() => null);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}
