import path from 'node:path';
import type { Config } from '../../config';
import { diskBlobs } from './disk';
import { s3Blobs } from './s3';
import { type BlobStore, checkKey, onStorage, type Source, withTemporaryFile } from './store';

export * from './store';

/** Folder of this node for parts of uploads and temporary files. */
export function partsFolder(config: Pick<Config, 'KINORA_DATA'>): string {
  return path.join(config.KINORA_DATA, 'parts');
}

/** The store that the settings name: a bucket with `S3_BUCKET`, else `{KINORA_DATA}/files`. */
export function openBlobs(config: Config): BlobStore {
  const { S3_BUCKET, S3_ACCESS_KEY_ID = '', S3_SECRET_ACCESS_KEY = '' } = config;
  if (S3_BUCKET === undefined) return diskBlobs(path.join(config.KINORA_DATA, 'files'));
  return s3Blobs({ ...config, S3_BUCKET, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY });
}

/** Where files are stored, and where they are written before. */
export interface Storage {
  readonly blobs: BlobStore;
  /** Folder of temporary files. */
  readonly temporary: string;
}

/**
 * Writes a blob whole or not at all, with its SHA-256 on the way.
 *
 * @throws ApiError `TOO_LARGE`, `STORAGE_DOWN`
 */
export async function putBlob(
  { blobs, temporary }: Storage,
  key: string,
  source: Source,
  { type, maxBytes }: { type: string; maxBytes: number },
): Promise<{ bytes: number; sha256: string }> {
  checkKey(key);
  return await withTemporaryFile(temporary, source, maxBytes, async (file, written) => {
    await blobs.putFile(key, file, type);
    return written;
  });
}

/**
 * A blob as a file of this machine, for as long as `use` runs: the file itself, or a copy.
 *
 * @throws ApiError `NOT_FOUND`, `STORAGE_DOWN`; what `use` throws
 */
export async function withLocalFile<T>(
  { blobs, temporary }: Storage,
  key: string,
  use: (file: string) => Promise<T>,
): Promise<T> {
  if (blobs.folder !== null) return await use(path.join(blobs.folder, checkKey(key)));
  const { body, bytes } = await blobs.read(key);
  // A bucket that breaks off is an error of the storage too.
  return await onStorage(() => withTemporaryFile(temporary, body, bytes, use));
}
