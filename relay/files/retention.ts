import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { and, eq, isNotNull, lt, or } from 'drizzle-orm';
import { imageFields } from '../../lib/contract/v3';
import { withStorageErrors } from '../store';
import {
  imageColumns,
  type JobImages,
  type JobRow,
  jobs as jobTable,
  uploads,
} from '../store/schema';
import { keyOf, onStorage } from './blobs';
import { ownImage } from './inputs';
import type { FilesContext } from './requests';

/** One may be there without the other, where that could not be fetched. */
const hasImages = or(...Object.values(imageColumns).map((column) => isNotNull(jobTable[column])));

const batch = 100;
const dayMs = 86_400_000;

/**
 * Removes expired files. Any number of nodes may do it at once: every step may be done twice. Bytes are removed
 * first and the record after, so that an interrupted removal is found again.
 */
export function createRetention(context: FilesContext) {
  const { config, store, blobs, rows } = context;
  const { db } = store;

  async function sweepOutputs(): Promise<void> {
    const expired = await db
      .select({ id: jobTable.id, key: jobTable.outputKey })
      .from(jobTable)
      .where(and(isNotNull(jobTable.outputKey), lt(jobTable.outputExpiresAt, new Date())))
      .limit(batch);
    for (const { id, key } of expired) {
      if (key === null) continue;
      await removeVideo(id, key);
      // Status and nonce stay: the job was completed, and an old link answers that the video has expired.
      await db
        .update(jobTable)
        .set({ outputKey: null })
        .where(and(eq(jobTable.id, id), eq(jobTable.outputKey, key)));
    }
  }

  async function sweepInputs(): Promise<void> {
    const before = new Date(Date.now() - config.KINORA_RETENTION_DAYS * dayMs);
    const isOver = and(hasImages, lt(jobTable.finishedAt, before));
    for (const job of await db.select().from(jobTable).where(isOver).limit(batch)) {
      await removeImages(job);
      const set = { image: null, lastImage: null };
      await db.update(jobTable).set(set).where(eq(jobTable.id, job.id));
    }
  }

  async function sweepUploads(): Promise<void> {
    const isExpired = lt(uploads.expiresAt, new Date());
    for (const upload of await db.select().from(uploads).where(isExpired).limit(batch)) {
      const { id, owner, blobKey } = upload;
      if (blobKey !== null && (await rows.inUse({ id, owner, blobKey }))) {
        // A job still needs it: checked again in a day.
        const expiresAt = new Date(Date.now() + dayMs);
        await db.update(uploads).set({ expiresAt }).where(eq(uploads.id, id));
        continue;
      }
      if (blobKey !== null) await blobs.remove(blobKey);
      await db.delete(uploads).where(eq(uploads.id, id));
    }
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

  async function removeVideo(jobId: string, key: string): Promise<void> {
    await blobs.remove(keyOf('posters', jobId));
    await blobs.remove(key);
  }

  async function removeImages(job: JobImages & Pick<JobRow, 'id' | 'owner'>): Promise<void> {
    for (const field of imageFields) {
      const { key, uploadId: id } = ownImage(job.id, field);
      if (job[imageColumns[field]]?.key !== key) continue;
      // A data URI became an upload, which its owner may have used in another job.
      if (await rows.inUse({ id, owner: job.owner, blobKey: key })) continue;
      await blobs.remove(key);
      await db.delete(uploads).where(eq(uploads.id, id));
    }
  }

  return withStorageErrors({
    /** Removes what has expired: outputs (the record says so), uploads, temporary files. Bounded per call. */
    async sweep(): Promise<void> {
      await sweepOutputs();
      await sweepInputs();
      await sweepUploads();
      await sweepTemporary();
    },
    async removeOf(job: JobImages & Pick<JobRow, 'id' | 'owner' | 'outputKey'>): Promise<void> {
      if (job.outputKey !== null) await removeVideo(job.id, job.outputKey);
      await removeImages(job);
    },
  });
}
