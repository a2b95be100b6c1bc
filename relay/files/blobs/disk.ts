import { constants, createReadStream } from 'node:fs';
import { access, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { ApiError } from '../../../lib/contract/v3';
import { type BlobStore, checkKey, onStorage } from './store';

/**
 * Blobs in one folder. A file is synced and renamed, so that a name always stands for a whole blob.
 *
 * @param folder where blobs are kept; files that are put lie on the same file system
 */
export function diskBlobs(folder: string): BlobStore {
  const fileOf = (key: string) => path.join(folder, checkKey(key));
  return {
    kind: 'disk',
    folder,
    async putFile(key, file) {
      const target = fileOf(key);
      const parent = path.dirname(target);
      await onStorage(async () => {
        await mkdir(parent, { recursive: true });
        await rename(file, target);
        // Makes the rename survive a power cut (fsync(2)). Windows cannot open a folder, nor every system sync one.
        const handle = await open(parent, 'r').catch(() => null);
        await handle?.sync().catch(() => undefined);
        await handle?.close();
      });
    },
    async read(key, range) {
      const handle = await open(fileOf(key), 'r').catch((cause: unknown) => {
        throw new ApiError(isMissing(cause) ? 'NOT_FOUND' : 'STORAGE_DOWN', undefined, { cause });
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

/** Whether an error is the file system's "no such file". */
function isMissing(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
}
