import { readdir, readFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { and, eq, isNotNull, lt } from 'drizzle-orm';
import type { Config } from '../config';
import type { BlobStore, Files, Jobs } from '../relay';
import { type Store, storageErrors } from '../store';
import { type JobRow, jobs as jobTable, uploads } from '../store/schema';
import { onStorage } from './blobs';
import { leaseHash } from './outputs/parts';
import type { UploadRows } from './uploads/rows';

/** Rows of each kind that one call deals with. */
const batch = 100;
const dayMs = 86_400_000;

/** What the sweep works with. */
export interface RetentionRoom {
  readonly config: Config;
  readonly store: Pick<Store, 'db'>;
  readonly blobs: BlobStore;
  readonly rows: UploadRows;
  readonly jobs: Pick<Jobs, 'get'>;
  /** Folder of parts and temporary files. */
  readonly temporary: string;
}

/** Where a job's own image is kept; an upload's is kept as the upload. */
export function inputKey(jobId: string): string {
  return `inputs/${jobId.slice(0, 2)}/${jobId}`;
}

/**
 * Removes what is past its time. Any node, any number at once: every step may be done twice. Bytes go
 * first and the record after, so that what was cut off is found again.
 */
export function createRetention(room: RetentionRoom): Pick<Files, 'sweep' | 'removeOf'> {
  const { config, store, blobs, rows } = room;
  const { db } = store;

  async function sweepOutputs(): Promise<void> {
    const expired = await storageErrors(() =>
      db
        .select({ id: jobTable.id, key: jobTable.outputKey })
        .from(jobTable)
        .where(and(isNotNull(jobTable.outputKey), lt(jobTable.outputExpiresAt, new Date())))
        .limit(batch),
    );
    for (const { id, key } of expired) {
      if (key === null) continue;
      await blobs.remove(key);
      // The status stays: it was completed. So does the nonce: an old link then says what happened.
      await storageErrors(() =>
        db
          .update(jobTable)
          .set({ outputKey: null })
          .where(and(eq(jobTable.id, id), eq(jobTable.outputKey, key))),
      );
    }
  }

  async function sweepInputs(): Promise<void> {
    const before = new Date(Date.now() - config.KINORA_RETENTION_DAYS * dayMs);
    const ended = await storageErrors(() =>
      db
        .select()
        .from(jobTable)
        .where(and(isNotNull(jobTable.image), lt(jobTable.finishedAt, before)))
        .limit(batch),
    );
    for (const job of ended) {
      await removeImage(job);
      await storageErrors(() =>
        db.update(jobTable).set({ image: null }).where(eq(jobTable.id, job.id)),
      );
    }
  }

  async function sweepUploads(): Promise<void> {
    const expired = await storageErrors(() =>
      db.select().from(uploads).where(lt(uploads.expiresAt, new Date())).limit(batch),
    );
    for (const upload of expired) {
      if (upload.blobKey !== null && (await rows.inUse(upload))) {
        // A job still waits for it: looked at again in a day.
        const expiresAt = new Date(Date.now() + dayMs);
        await storageErrors(() =>
          db.update(uploads).set({ expiresAt }).where(eq(uploads.id, upload.id)),
        );
        continue;
      }
      if (upload.blobKey !== null) await blobs.remove(upload.blobKey);
      await storageErrors(() => db.delete(uploads).where(eq(uploads.id, upload.id)));
    }
  }

  async function sweepParts(): Promise<void> {
    const names = await onStorage(() => readdir(room.temporary)).catch(() => []);
    for (const name of names) {
      const file = path.join(room.temporary, name);
      if (name.endsWith('.stored')) await sweepStored(file);
      else await removeOld(file, config.KINORA_ATTEMPT_SECONDS * 1000);
    }
  }

  /** A stored video whose lease was lost before its job was completed belongs to nobody. */
  async function sweepStored(file: string): Promise<void> {
    const [id = '', lease, key = ''] = (await readFile(file, 'utf8').catch(() => '')).split(' ');
    if (key === '') return await removeOld(file, config.KINORA_ATTEMPT_SECONDS * 1000);
    const job = await room.jobs.get(id);
    if (job?.leaseToken && leaseHash(job.leaseToken) === lease && job.status === 'processing')
      return;
    if (job?.outputKey !== key) await blobs.remove(key);
    await rm(file, { force: true });
  }

  async function removeImage(job: Pick<JobRow, 'id' | 'owner' | 'image'>): Promise<void> {
    if (job.image?.key !== inputKey(job.id)) return;
    // A data URI is an upload of the job's own id, which its owner may have used again.
    const upload = { id: job.id, owner: job.owner, blobKey: job.image.key };
    if (await rows.inUse(upload)) return;
    await blobs.remove(job.image.key);
    await storageErrors(() => db.delete(uploads).where(eq(uploads.id, job.id)));
  }

  return {
    async sweep() {
      await sweepOutputs();
      await sweepInputs();
      await sweepUploads();
      await sweepParts();
    },
    async removeOf(job) {
      if (job.outputKey !== null) await blobs.remove(job.outputKey);
      await removeImage(job);
    },
  };
}

async function removeOld(file: string, ageMs: number): Promise<void> {
  const found = await stat(file).catch(() => null);
  if (found && Date.now() - found.mtimeMs > ageMs) await rm(file, { force: true });
}
