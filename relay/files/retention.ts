import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { eq, lt } from 'drizzle-orm';
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
      const found = await stat(file).catch(() => null);
      const isOld = found && Date.now() - found.mtimeMs > config.KINORA_ATTEMPT_SECONDS * 1000;
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
