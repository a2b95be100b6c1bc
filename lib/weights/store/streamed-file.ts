import { z } from 'zod';
import { KinoraError } from '../../contract';
import type { ByteSource } from '../formats/source';
import type { StoreFolder } from './folder';
import type { SourceHash } from './hashes';

/** What is to be written where. */
export interface StreamedFile {
  readonly folder: StoreFolder;
  readonly path: string;
  readonly source: ByteSource;
  readonly hash: SourceHash;
  readonly signal: AbortSignal;
  /** Called with the bytes that are there, at the beginning and with each piece. */
  readonly onBytes: (bytes: number) => void;
}

/** How far a file is that was not fetched to its end. */
const partialSchema = z.object({
  path: z.string(),
  name: z.string(),
  identity: z.string(),
  size: z.int().min(0),
  /** Bytes that are written and would survive a crash. */
  bytes: z.int().min(0),
  /** State of the SHA-256 after these bytes. */
  hash: z.string(),
});
export type PartialFile = z.output<typeof partialSchema>;

const partialFile = 'partial.json';
/** After so many bytes or milliseconds what came is made safe: a crash costs no more. A pause costs nothing. */
const safeEvery = { bytes: 32 * 2 ** 20, ms: 1000 };

/** The file of a folder that was not fetched to its end; null without one. */
export async function readPartial(folder: StoreFolder): Promise<PartialFile | null> {
  try {
    return partialSchema.parse(JSON.parse((await folder.readText(partialFile)) ?? 'null'));
  } catch {
    return null; // Then it is fetched again.
  }
}

/** Forgets what {@link readPartial} tells. */
export async function removePartial(folder: StoreFolder): Promise<void> {
  await folder.remove(partialFile);
}

/**
 * Writes a file while it is fetched, from the byte where an earlier attempt stopped.
 *
 * @returns its SHA-256 in hex
 * @throws KinoraError `DOWNLOAD_CORRUPT` when it is not what was announced (nothing stays of it),
 * `STORAGE_FULL`; what the source throws
 */
export async function streamFile(streamed: StreamedFile): Promise<string> {
  const { folder, path, source, hash, signal, onBytes } = streamed;
  const { name, identity, size } = source;
  const before = await readPartial(folder);
  const writer = await folder.write(path);
  let at = 0;
  let safe = 0;
  let safeAt = performance.now();
  const makeSafe = async () => {
    if (at === safe) return;
    await writer.flush();
    const record = { path, name, identity, size, bytes: at, hash: await hash.state() };
    await folder.writeText(partialFile, JSON.stringify(record));
    safe = at;
    safeAt = performance.now();
  };
  try {
    const same = before?.path === path && before.identity === identity && before.size === size;
    if (same && writer.size >= before.bytes && (await hash.resume(before.hash))) {
      at = before.bytes;
      safe = at;
    } else await hash.start();
    await writer.truncate(at);
    onBytes(at);
    try {
      for await (const piece of source.stream(at, size, signal)) {
        const { length } = piece;
        await writer.write(at, piece);
        await hash.update(piece);
        at += length;
        const isDue = performance.now() - safeAt >= safeEvery.ms;
        if (isDue || at - safe >= safeEvery.bytes) await makeSafe();
        onBytes(at);
      }
    } catch (thrown) {
      // The reason of the end counts, not that the last pieces could not be kept.
      await makeSafe().catch(() => undefined);
      throw thrown;
    }
    await writer.flush();
  } finally {
    await writer.close();
  }
  const sha256 = await hash.digest();
  if (at === size && (source.sha256 ?? sha256) === sha256) return sha256;
  await removePartial(folder);
  await folder.remove(path);
  if (at !== size) throw corrupt(name, `${at} bytes`, `${size}`);
  throw corrupt(name, `the SHA-256 ${sha256}`, source.sha256 ?? '');
}

/** The error for a file that is not what was announced. */
export function corrupt(name: string, actual: string, announced: string): KinoraError {
  const sentence = `${name} has ${actual}, but ${announced} was announced.`;
  return new KinoraError('DOWNLOAD_CORRUPT', sentence);
}
