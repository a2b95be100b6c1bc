import { createHash, randomBytes } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { access, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { ApiError } from '../../../lib/contract/v3';
import type { Config } from '../../config';

/** Large files, on disk or in a bucket. Keys are made by the relay: `outputs/ab/….mp4`. */
export interface BlobStore {
  /** The folder of blobs on this machine; null for a bucket. */
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
    // A TypeError is a fault of ours.
    if (cause instanceof ApiError || cause instanceof TypeError) throw cause;
    throw new ApiError('STORAGE_DOWN', undefined, { cause });
  }
}

/** The error for a body, or an announced size, above its limit. */
export function tooLarge(maxBytes: number, field = 'body'): ApiError {
  const what = field === 'body' ? 'body' : 'file';
  const message = `The ${what} is larger than ${maxBytes.toLocaleString('en')} bytes.`;
  return new ApiError('TOO_LARGE', message, { details: [{ field, message }] });
}

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

/**
 * Blobs in one folder. A file is synced and renamed, so that a name always stands for a whole blob.
 *
 * @param folder where blobs are kept; files that are put lie on the same file system
 */
export function diskBlobs(folder: string): BlobStore {
  const fileOf = (key: string) => path.join(folder, checkKey(key));
  return reportingErrors({
    folder,
    async putFile(key, file) {
      const target = fileOf(key);
      const parent = path.dirname(target);
      await mkdir(parent, { recursive: true });
      await rename(file, target);
      // Makes the rename survive a power cut (fsync(2)). Windows cannot open a folder, nor every system sync one.
      const handle = await open(parent, 'r').catch(() => null);
      await handle?.sync().catch(() => undefined);
      await handle?.close();
    },
    async read(key, range) {
      const handle = await open(fileOf(key), 'r').catch((cause: unknown) => {
        throw isMissing(cause) ? new ApiError('NOT_FOUND') : cause;
      });
      const { size } = await handle.stat();
      const first = range?.first ?? 0;
      const last = Math.min(range?.last ?? size - 1, size - 1);
      const body = createReadStream('', { fd: handle, start: first, end: Math.max(last, 0) });
      return { body, bytes: Math.max(last - first + 1, 0) };
    },
    async stat(key) {
      try {
        return { bytes: (await stat(fileOf(key))).size };
      } catch (thrown) {
        if (isMissing(thrown)) return null;
        throw thrown;
      }
    },
    remove: (key) => rm(fileOf(key), { force: true }),
    async ping() {
      await mkdir(folder, { recursive: true });
      await access(folder, constants.W_OK);
    },
  });
}

/** A store each of whose operations runs under {@link onStorage}. */
export function reportingErrors(blobs: BlobStore): BlobStore {
  return {
    folder: blobs.folder,
    putFile: (...order) => onStorage(async () => blobs.putFile(...order)),
    read: (...order) => onStorage(async () => blobs.read(...order)),
    stat: (key) => onStorage(async () => blobs.stat(key)),
    remove: (key) => onStorage(async () => blobs.remove(key)),
    ping: () => onStorage(async () => blobs.ping()),
  };
}

function isMissing(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
}

/** Folder of this node for parts of uploads and temporary files. */
export function partsFolder(config: Pick<Config, 'KINORA_DATA'>): string {
  return path.join(config.KINORA_DATA, 'parts');
}

export interface Storage {
  readonly blobs: BlobStore;
  readonly temporary: string;
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
