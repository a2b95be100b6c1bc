import { readdir, rm, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { eq, lt } from 'drizzle-orm';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';
import { Kept } from '../kept';
import { type UploadRow, uploads } from '../store/schema';
import { onStorage } from './blobs';
import type { FilesContext } from './requests';
import { removeFile } from './uploads';

const batch = 100;
const dayMs = 86_400_000;

/** Removes expired files. Any number of nodes may do it at once: every step may be done twice. */
export function createRetention(context: FilesContext) {
  const { config, store, rows } = context;
  const { db } = store;

  /** Removes a file, unless a job still needs it: then it is checked again in a day. */
  async function expire(upload: UploadRow): Promise<void> {
    const { id, blobKey } = upload;
    if (blobKey === null || !(await rows.inUse({ ...upload, blobKey }))) {
      await removeFile(context, upload);
      return;
    }
    const expiresAt = new Date(Date.now() + dayMs);
    await db.update(uploads).set({ expiresAt }).where(eq(uploads.id, id));
  }

  async function sweepTemporary(): Promise<void> {
    // Without the folder there are none.
    const names = await onStorage(() => readdir(context.temporary)).catch(() => []);
    for (const name of names) {
      const file = path.join(context.temporary, name);
      // Another node of this folder, or its own request, may have removed it.
      const stats = await stat(file).catch(() => null);
      const isOld = stats && Date.now() - stats.mtimeMs > config.KINORA_ATTEMPT_SECONDS * 1000;
      if (isOld) await rm(file, { force: true });
    }
  }

  return {
    /** Removes what has expired: files, with temporary ones. Bounded per call. */
    async sweep(): Promise<void> {
      const isExpired = lt(uploads.expiresAt, new Date());
      for (const one of await db.select().from(uploads).where(isExpired).limit(batch)) {
        await expire(one);
      }
      await sweepTemporary();
    },
    /** Removes the files of a job that is deleted. Its owner may have used its image in another job. */
    async removeOf(jobId: string): Promise<void> {
      for (const one of await rows.ofJob(jobId)) await expire(one);
    },
  };
}

/** How long one reading of the free space is used, in milliseconds. */
const freshMs = 2000;

/**
 * Watches the free space of the disk, which matters where database or files are in the data folder. When PGlite
 * cannot write its log it never returns and blocks the process, so new work is refused long before the disk is full.
 *
 * @returns to be called before anything large or new is written (heartbeats and the like do not call it: the reserved
 *   space is for them). A running job's result of so many bytes may use half of the reserved space. It throws ApiError
 *   `STORAGE_DOWN` when less is free
 */
export function createSpace(
  config: Pick<Config, 'KINORA_DATA' | 'KINORA_MIN_FREE_BYTES' | 'DATABASE_URL' | 'S3_BUCKET'>,
) {
  const known = new Kept<number>(freshMs, 1);
  return async (bytes = Number.POSITIVE_INFINITY): Promise<void> => {
    const { KINORA_MIN_FREE_BYTES: floor, DATABASE_URL, S3_BUCKET } = config;
    if (floor === 0 || (DATABASE_URL !== undefined && S3_BUCKET !== undefined)) return;
    const free = await known.get('free', () => freeBytes(config.KINORA_DATA));
    if (free >= floor || free - bytes >= floor / 2) return;
    throw new ApiError('STORAGE_DOWN', 'The disk of the server is almost full.', {
      headers: { 'Retry-After': '60' },
      remedy: 'Try again later; the operator has to free disk space.',
    });
  };
}

/** Infinite where it cannot be read: a write then reports what is wrong. */
async function freeBytes(folder: string): Promise<number> {
  const disk = await statfs(folder).catch(() => null);
  return disk ? disk.bavail * disk.bsize : Number.POSITIVE_INFINITY;
}
