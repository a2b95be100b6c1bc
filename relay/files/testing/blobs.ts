import { type Source, type Storage, withTemporaryFile } from '../blobs';

/** Puts bytes into a blob store as a file comes there, with their SHA-256 on the way. */
export async function putBlob(
  { blobs, temporary }: Storage,
  key: string,
  source: Source,
  { type, maxBytes }: { type: string; maxBytes: number },
): Promise<{ bytes: number; sha256: string }> {
  return await withTemporaryFile(temporary, source, maxBytes, async (file, written) => {
    await blobs.putFile(key, file, type);
    return written;
  });
}
