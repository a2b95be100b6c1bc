import { randomBytes } from 'node:crypto';
import { and, desc, eq, gt, inArray, isNotNull, isNull, or, sql } from 'drizzle-orm';
import type { Caller } from '../../access/caller';
import type { Config } from '../../config';
import { type Store, withStorageErrors } from '../../store';
import { jobs, type UploadRow, uploads } from '../../store/schema';
import type { FilesContext } from '../requests';

/** A row to insert; the database sets its time. */
type NewUpload = Omit<UploadRow, 'createdAt'>;

export function newUpload(
  caller: Pick<Caller, 'owner' | 'keyId'>,
  file: Pick<UploadRow, 'filename' | 'contentType' | 'bytes'>,
  { KINORA_RETENTION_DAYS: days }: Pick<Config, 'KINORA_RETENTION_DAYS'>,
): NewUpload {
  const id = randomBytes(16).toString('hex');
  const expiresAt = new Date(Date.now() + days * 86_400_000);
  const { owner, keyId } = caller;
  return { id, owner, keyId, ...file, sha256: null, blobKey: null, expiresAt };
}

/**
 * Inserts the row of stored bytes. Where that fails the bytes are removed: without a row they would never be
 * found again.
 */
export async function insertStored(
  { rows, blobs }: Pick<FilesContext, 'rows' | 'blobs'>,
  upload: NewUpload & { readonly blobKey: string },
): Promise<UploadRow> {
  return await rows.insert(upload).catch(async (thrown) => {
    // The first error is the one that is reported.
    await blobs.remove(upload.blobKey).catch(() => undefined);
    throw thrown;
  });
}

/**
 * The upload of an owner that one of our own links names.
 *
 * @returns undefined for any other address; null where the upload is another's or gone, or the link has ended
 */
export async function linkedUpload(
  { links, rows }: Pick<FilesContext, 'links' | 'rows'>,
  text: string,
  owner: string,
): Promise<UploadRow | null | undefined> {
  const id = links.uploadOf(text);
  if (id === null) return links.isOwnUpload(text) ? null : undefined;
  const upload = await rows.get(id);
  return upload?.owner === owner ? upload : null;
}

/** The table of uploads. Every method throws ApiError `STORAGE_DOWN` where the database is not there. */
export function uploadRows({ db }: Pick<Store, 'db'>) {
  return withStorageErrors({
    async insert(upload: NewUpload): Promise<UploadRow> {
      const [row] = await db.insert(uploads).values(upload).returning();
      if (!row) throw new Error('The upload was not inserted.');
      return row;
    },
    async get(id: string): Promise<UploadRow | null> {
      const [row] = await db.select().from(uploads).where(eq(uploads.id, id));
      return row ?? null;
    },
    /** Records where the bytes are. @returns null when another request did so before */
    async stored(
      id: string,
      file: Pick<UploadRow, 'sha256' | 'blobKey' | 'contentType'>,
    ): Promise<UploadRow | null> {
      const [row] = await db
        .update(uploads)
        .set(file)
        .where(and(eq(uploads.id, id), isNull(uploads.blobKey)))
        .returning();
      return row ?? null;
    },
    /** The newest complete upload of an owner with this name that has not expired. */
    async newest(owner: string, filename: string): Promise<UploadRow | null> {
      const isThere = and(isNotNull(uploads.blobKey), gt(uploads.expiresAt, new Date()));
      const [row] = await db
        .select()
        .from(uploads)
        .where(and(eq(uploads.owner, owner), eq(uploads.filename, filename), isThere))
        .orderBy(desc(uploads.createdAt))
        .limit(1);
      return row ?? null;
    },
    /** Forgets an upload whose bytes belong to a job now. */
    async forget(owner: string, filename: string, blobKey: string): Promise<void> {
      const name = and(eq(uploads.owner, owner), eq(uploads.filename, filename));
      await db.delete(uploads).where(and(name, eq(uploads.blobKey, blobKey)));
    },
    /** Whether a job of the owner needs an upload's bytes: as its video, or until it ends as an image or adapter. */
    async inUse(upload: Pick<UploadRow, 'id' | 'owner'> & { blobKey: string }): Promise<boolean> {
      const { id, owner, blobKey } = upload;
      const asLora = JSON.stringify([{ uploadId: id }]);
      const asInput = or(
        sql`${jobs.image}->>'key' = ${blobKey}`,
        sql`${jobs.lastImage}->>'key' = ${blobKey}`,
        sql`${jobs.loras} @> ${asLora}::jsonb`,
      );
      const unfinished = inArray(jobs.status, ['created', 'processing']);
      const uses = or(eq(jobs.outputKey, blobKey), and(unfinished, asInput));
      const [found] = await db
        .select({ id: jobs.id })
        .from(jobs)
        .where(and(eq(jobs.owner, owner), uses))
        .limit(1);
      return found !== undefined;
    },
  });
}

export type UploadRows = ReturnType<typeof uploadRows>;
