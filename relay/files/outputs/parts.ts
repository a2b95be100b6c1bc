import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { ApiError } from '../../../lib/contract/v3';
import { idForm } from '../../jobs/reader';
import { hashFile, isMissing, keyOf, onStorage, tooLarge, writeAll } from '../blobs';
import { bodyOf, invalidField } from '../requests';

/** Identifies an upload of a worker: one video of one lease. */
export interface OutputName {
  readonly jobId: string;
  readonly leaseToken: string;
  /** Hex, as declared by the worker. */
  readonly sha256: string;
}

/** @throws ApiError `NOT_FOUND` for what is no id, `INVALID_PARAMETER` for what is no SHA-256 */
export function outputName(jobId: string, leaseToken: string, sha256: string): OutputName {
  if (!idForm.test(jobId)) throw new ApiError('NOT_FOUND');
  if (!/^[0-9a-f]{64}$/.test(sha256)) {
    throw invalidField('sha256', 'sha256 must be 64 lower-case hex characters.');
  }
  return { jobId, leaseToken, sha256 };
}

/** Blob key of a video, different for each lease and content. */
export function outputKey({ jobId, leaseToken, sha256 }: OutputName): string {
  return keyOf('outputs', jobId, `-${leaseHash(leaseToken)}-${sha256.slice(0, 32)}`);
}

/** A hash of the lease token, for names that may be seen. */
export function leaseHash(leaseToken: string): string {
  return createHash('sha256').update(leaseToken).digest('hex').slice(0, 16);
}

/**
 * Uploads in progress on this node, in local files.
 *
 * @param folder for parts, on this machine
 */
export function outputParts(folder: string) {
  /** Running writes by lease, each with its source and a promise of its end. */
  const writing = new Map<string, { source: Readable; ended: Promise<unknown> }>();
  const leaseOf = ({ jobId, leaseToken }: OutputName) => `${jobId}-${leaseHash(leaseToken)}-`;
  const fileOf = (name: OutputName) => path.join(folder, `${leaseOf(name)}${name.sha256}.part`);
  /** Removes the parts of other videos of a lease, which would fill the disk. */
  const clearOthers = async (name: OutputName) => {
    const [own, lease] = [path.basename(fileOf(name)), leaseOf(name)];
    for (const other of await readdir(folder)) {
      if (!other.startsWith(lease) || !other.endsWith('.part') || other === own) continue;
      await rm(path.join(folder, other), { force: true });
    }
  };

  return {
    /** Number of received bytes. */
    async received(name: OutputName): Promise<number> {
      return await onStorage(() => sizeOf(fileOf(name)));
    },
    /**
     * Writes a piece. A later call for the same lease ends an earlier one, whose broken connection may not
     * have been noticed yet. A lease has one part: another video replaces the one before.
     *
     * @param first offset of the piece
     * @param maxBytes largest video
     * @returns number of received bytes
     * @throws ApiError `CONFLICT` for a gap, `TOO_LARGE`, `STORAGE_DOWN`; what the source throws
     */
    async write(
      name: OutputName,
      source: Readable,
      first: number,
      maxBytes: number,
    ): Promise<number> {
      const file = fileOf(name);
      const lease = leaseOf(name);
      const before = writing.get(lease);
      const work = (async () => {
        before?.source.destroy();
        await before?.ended;
        await onStorage(async () => {
          await mkdir(folder, { recursive: true });
          await clearOthers(name);
        });
        return await append(file, source, first, maxBytes);
      })();
      const entry = { source, ended: work.catch(() => undefined) };
      writing.set(lease, entry);
      try {
        return await work;
      } finally {
        if (writing.get(lease) === entry) writing.delete(lease);
      }
    },
    /**
     * The whole video as a file that now belongs to the caller; its hash is verified.
     *
     * @returns null where another call has taken it
     * @throws ApiError `OUTPUT_REJECTED` for another hash; the file is then removed
     */
    async take(name: OutputName): Promise<string | null> {
      const file = fileOf(name);
      const taken = `${file}.${randomBytes(8).toString('hex')}.whole`;
      try {
        await rename(file, taken);
      } catch (thrown) {
        if (isMissing(thrown)) return null;
        throw new ApiError('STORAGE_DOWN', undefined, { cause: thrown });
      }
      if ((await hashFile(taken)) === name.sha256) return taken;
      await rm(taken, { force: true });
      throw new ApiError('OUTPUT_REJECTED', 'The received bytes have another SHA-256.');
    },
    /** Records that a video was stored, so that the sweep finds it if its lease is lost. */
    async remember(name: OutputName): Promise<void> {
      const text = `${name.jobId} ${leaseHash(name.leaseToken)} ${outputKey(name)}`;
      const file = fileOf(name).replace(/part$/, 'stored');
      await onStorage(async () => {
        await mkdir(folder, { recursive: true });
        await writeFile(file, text);
      });
    },
  };
}

export type OutputParts = ReturnType<typeof outputParts>;

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (thrown) {
    if (isMissing(thrown)) return 0;
    throw thrown;
  }
}

async function append(
  file: string,
  source: Readable,
  first: number,
  maxBytes: number,
): Promise<number> {
  const handle = await onStorage(() => open(file, constants.O_RDWR | constants.O_CREAT));
  try {
    const { size } = await handle.stat();
    if (first > size) {
      throw new ApiError('CONFLICT', `Only ${size} bytes are here; continue from there.`, {
        headers: { 'Upload-Offset': String(size) },
      });
    }
    await onStorage(() => handle.truncate(first));
    let at = first;
    for await (const piece of bodyOf(source)) {
      if (at + piece.length > maxBytes) throw tooLarge(maxBytes);
      await onStorage(() => writeAll(handle, piece, at));
      at += piece.length;
    }
    return at;
  } finally {
    await handle.close();
  }
}
