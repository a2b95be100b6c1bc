import { createHash, randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { onStorage, tooLarge } from './errors';

/** A new name in `folder`. The sweep removes what is left there. */
export function temporaryFile(folder: string): string {
  return path.join(folder, `tmp-${randomBytes(16).toString('hex')}`);
}

/** Writes a whole piece: one `write` may write less. */
async function writeAll(handle: FileHandle, piece: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < piece.length; ) {
    const { bytesWritten } = await handle.write(piece, done, piece.length - done, at + done);
    done += bytesWritten;
  }
}

/**
 * Writes a stream to a new file and syncs it; a file that could not be finished is removed.
 *
 * @throws ApiError `TOO_LARGE`, `STORAGE_DOWN`; what the source throws
 */
export async function writeNewFile(
  file: string,
  source: AsyncIterable<Uint8Array> | Uint8Array,
  maxBytes: number,
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  const handle = await onStorage(async () => {
    await mkdir(path.dirname(file), { recursive: true });
    return await open(file, 'wx');
  });
  try {
    for await (const piece of source instanceof Uint8Array ? [source] : source) {
      if (bytes + piece.length > maxBytes) throw tooLarge(maxBytes);
      hash.update(piece);
      await onStorage(() => writeAll(handle, piece, bytes));
      bytes += piece.length;
    }
    await onStorage(() => handle.sync());
  } catch (thrown) {
    await handle.close();
    await rm(file, { force: true });
    throw thrown;
  }
  await onStorage(() => handle.close());
  return { bytes, sha256: hash.digest('hex') };
}
