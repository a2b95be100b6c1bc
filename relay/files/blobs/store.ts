import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { ApiError } from '../../../lib/contract/v3';

/** Large files, on disk or in a bucket. Keys are made by the relay: `outputs/ab/….mp4`. */
export interface BlobStore {
  readonly kind: 'disk' | 's3';
  /** Where blobs are files of this machine; null for a bucket. */
  readonly folder: string | null;
  /** Takes a file of this machine into the store, which may move it: a blob is there whole or not at all. */
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

/** Keys are made by this server: lower-case parts without a leading dot, so that none leaves the folder. */
const keyPattern = /^[a-z]+(\/[a-z0-9][a-z0-9._-]{0,150}){1,3}$/;

/**
 * The key of a file by what it belongs to: a job's own image (an upload that it uses keeps its own key), its video, the
 * picture that the studio sent with a video, an upload.
 *
 * @param content tells files of one id apart
 */
export function keyOf(
  kind: 'inputs' | 'outputs' | 'posters' | 'uploads',
  id: string,
  content = '',
): string {
  return `${kind}/${id.slice(0, 2)}/${id}${content}`;
}

/** Returns the key. @throws TypeError for one that this server cannot have made */
export function checkKey(key: string): string {
  if (!keyPattern.test(key)) throw new TypeError('Not a key of the blob store.');
  return key;
}

/**
 * Runs one operation on the storage. An error becomes `STORAGE_DOWN`, without its path.
 *
 * @throws ApiError
 */
export async function onStorage<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    throw new ApiError('STORAGE_DOWN', undefined, { cause });
  }
}

/** The error for a body, or an announced size, above its limit. */
export function tooLarge(maxBytes: number, field = 'body'): ApiError {
  const what = field === 'body' ? 'body' : 'file';
  const message = `The ${what} is larger than ${maxBytes.toLocaleString('en')} bytes.`;
  return new ApiError('TOO_LARGE', message, { details: [{ field, message }] });
}

/** What is written: a stream or bytes. */
export type Source = AsyncIterable<Uint8Array> | Uint8Array;

/**
 * Writes a source to a new file, which is there while `use` runs, unless `use` moves it away.
 *
 * @param folder of temporary files, on the file system of the blobs; the sweep removes what is left there
 * @throws ApiError `TOO_LARGE`, `STORAGE_DOWN`; what the source or `use` throws
 */
export async function withTemporaryFile<T>(
  folder: string,
  source: Source,
  maxBytes: number,
  use: (file: string, written: { bytes: number; sha256: string }) => Promise<T>,
): Promise<T> {
  const file = path.join(folder, `tmp-${randomBytes(16).toString('hex')}`);
  const hash = createHash('sha256');
  let bytes = 0;
  const handle = await onStorage(async () => {
    await mkdir(folder, { recursive: true });
    return await open(file, 'wx');
  });
  try {
    try {
      for await (const piece of source instanceof Uint8Array ? [source] : source) {
        bytes += piece.length;
        if (bytes > maxBytes) throw tooLarge(maxBytes);
        hash.update(piece);
        await onStorage(() => handle.writeFile(piece));
      }
      await onStorage(() => handle.sync());
    } finally {
      await handle.close();
    }
    return await use(file, { bytes, sha256: hash.digest('hex') });
  } finally {
    await rm(file, { force: true });
  }
}
