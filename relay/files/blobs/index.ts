import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import type { Config } from '../../config';
import { type DiskBlobs, diskBlobs } from './disk';
import { checkKey, onStorage } from './errors';
import { s3Blobs } from './s3';
import { temporaryFile, writeNewFile } from './write';

export * from './disk';
export * from './errors';
export * from './write';

/** Large files, on disk or in a bucket. Keys are made by the relay: `outputs/ab/….mp4`. */
export interface BlobStore {
  readonly kind: 'disk' | 's3';
  /** Writes a blob whole or not at all, with its SHA-256 on the way. @throws ApiError `TOO_LARGE` */
  put(
    key: string,
    source: Readable | Uint8Array,
    options: { type: string; maxBytes: number },
  ): Promise<{ bytes: number; sha256: string }>;
  /** Moves a file of this machine into the store. */
  putFile(key: string, file: string, type: string): Promise<void>;
  /** @param range first and last byte, both counted */
  read(
    key: string,
    range?: { first: number; last: number },
  ): Promise<{ body: Readable; bytes: number }>;
  stat(key: string): Promise<{ bytes: number } | null>;
  remove(key: string): Promise<void>;
  /** A readiness check. @throws ApiError `STORAGE_DOWN` */
  ping(): Promise<void>;
}

/** Folder of this node for parts of uploads and temporary files. */
export function partsFolder(config: Pick<Config, 'KINORA_DATA'>): string {
  return path.join(config.KINORA_DATA, 'parts');
}

/** The store that the settings name: a bucket with `S3_BUCKET`, else `{KINORA_DATA}/files`. */
export async function openBlobs(config: Config): Promise<BlobStore> {
  const temporary = partsFolder(config);
  const { S3_BUCKET, S3_ACCESS_KEY_ID = '', S3_SECRET_ACCESS_KEY = '' } = config;
  if (S3_BUCKET !== undefined) {
    return s3Blobs({ ...config, S3_BUCKET, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY }, temporary);
  }
  return diskBlobs(path.join(config.KINORA_DATA, 'files'), temporary);
}

/** Whether blobs are files of this machine. */
export function isDisk(blobs: BlobStore): blobs is DiskBlobs {
  return blobs.kind === 'disk';
}

/**
 * A blob as a file of this machine, for as long as `use` runs: the file itself, or a copy.
 *
 * @throws ApiError `NOT_FOUND`, `STORAGE_DOWN`; what `use` throws
 */
export async function withLocalFile<T>(
  blobs: BlobStore,
  key: string,
  temporary: string,
  use: (file: string) => Promise<T>,
): Promise<T> {
  if (isDisk(blobs)) return await use(path.join(blobs.folder, checkKey(key)));
  const file = temporaryFile(temporary);
  const { body, bytes } = await blobs.read(key);
  await onStorage(() => writeNewFile(file, body, bytes));
  try {
    return await use(file);
  } finally {
    await rm(file, { force: true });
  }
}
