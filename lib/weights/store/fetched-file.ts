import { createSHA1 } from 'hash-wasm';
import { z } from 'zod';
import { KinoraError } from '../../contract';
import { type ByteSource, SourceChanged } from '../formats/source';
import { readRecord, type StoreFolder } from './folder';
import type { SourceHash } from './hashes';

/** A source, and the hash that runs over its bytes. */
export interface Fetching {
  readonly source: ByteSource;
  readonly hash: SourceHash;
  readonly signal: AbortSignal;
}

/** Target of the bytes of a file. */
interface Target {
  readonly write: (at: number, piece: Uint8Array) => unknown;
  /** Called with the bytes that are written and hashed, at the beginning and with each piece. */
  readonly onBytes?: (bytes: number) => unknown;
  /** The bytes that are there; the hash is theirs. */
  readonly from?: number;
}

/**
 * Reads a file to its end and compares it with what was announced.
 *
 * @returns its SHA-256 in hex
 * @throws KinoraError `DOWNLOAD_CORRUPT` when it is not what was announced; what the source throws
 */
export async function readChecked(
  { source, hash, signal }: Fetching,
  { write, onBytes, from = 0 }: Target,
): Promise<string> {
  const { name, size, gitSha1 } = source;
  if (from === 0) await hash.start();
  const git = gitSha1 ? (await createSHA1()).init().update(`blob ${size}\0`) : null;
  let at = from;
  await onBytes?.(at);
  for await (const piece of source.stream(from, size, signal)) {
    await write(at, piece);
    await hash.update(piece);
    git?.update(piece);
    at += piece.length;
    await onBytes?.(at);
  }
  const sha256 = await hash.digest();
  if (at !== size) throw corrupt(name, `${at} bytes`, `${size}`);
  const sha1 = git?.digest();
  if (gitSha1 && sha1 !== gitSha1) throw corrupt(name, `git's SHA-1 ${sha1}`, gitSha1);
  return checkedHash(source, sha256);
}

/** The SHA-256 of a whole file. @throws KinoraError `DOWNLOAD_CORRUPT` when another one was announced */
export function checkedHash(source: ByteSource, sha256: string): string {
  if ((source.sha256 ?? sha256) === sha256) return sha256;
  throw corrupt(source.name, `the SHA-256 ${sha256}`, source.sha256 ?? '');
}

function corrupt(name: string, actual: string, announced: string): KinoraError {
  const sentence = `${name} has ${actual}, but ${announced} was announced.`;
  return new KinoraError('DOWNLOAD_CORRUPT', sentence);
}

/** Whether what was fetched is worth nothing, and another attempt may be. */
export function isLost(thrown: unknown): boolean {
  if (thrown instanceof SourceChanged) return true;
  return thrown instanceof KinoraError && thrown.code === 'DOWNLOAD_CORRUPT';
}

/**
 * Does the work of a download; once more, from the start, where its file was replaced or came damaged.
 *
 * @throws KinoraError `DOWNLOAD_CORRUPT` where that does not help; what the work throws
 */
export async function startingOver<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  onRestart?: (error: KinoraError) => void,
): Promise<T> {
  for (let isSecond = false; ; isSecond = true) {
    try {
      return await work();
    } catch (thrown) {
      if (!isLost(thrown) || signal.aborted) throw thrown;
      const error =
        thrown instanceof KinoraError
          ? thrown
          : new KinoraError('DOWNLOAD_CORRUPT', String(thrown), { cause: thrown });
      if (isSecond) throw error;
      onRestart?.(error);
    }
  }
}

/** How far a file is that is being fetched, or was. */
const recordSchema = z.object({
  name: z.string(),
  identity: z.string(),
  size: z.int().min(0),
  /** Bytes that are written and would survive a crash. */
  bytes: z.int().min(0),
  /** State of the SHA-256 after these bytes; null at the end. */
  state: z.string().nullable(),
  /** In hex, at the end. */
  sha256: z.string().nullable(),
});
export type FetchRecord = z.output<typeof recordSchema>;

/** Ends the names of the records, each beside its file. */
export const recordEnding = '.fetched';
/** After so many bytes or milliseconds what came is made safe: a crash costs no more. A pause costs nothing. */
const safeEvery = { bytes: 32 * 2 ** 20, ms: 1000 };

/** How far a file is; null where its download was not begun, or was forgotten. */
export function readFetched(folder: StoreFolder, path: string): Promise<FetchRecord | null> {
  return readRecord(folder, path + recordEnding, recordSchema.parse);
}

/**
 * Writes a file while it is fetched, from the byte where an earlier attempt stopped. One that is whole is not fetched
 * again, until {@link forgetFetched}.
 *
 * @param onBytes called with the bytes that are there, at the beginning and with each piece
 * @returns its SHA-256 in hex
 * @throws as {@link readChecked}, after which nothing stays of it; KinoraError `STORAGE_FULL`
 */
export async function fetchFile(
  folder: StoreFolder,
  path: string,
  fetching: Fetching,
  onBytes: (bytes: number) => void,
): Promise<string> {
  const { source, hash } = fetching;
  const { name, identity, size } = source;
  const record = await readFetched(folder, path);
  const before = record?.identity === identity && record.size === size ? record : null;
  const kept = before && (await folder.open(path))?.size;
  if (before?.sha256 && kept === size) return before.sha256;
  const writer = await folder.write(path);
  let at = 0;
  let lost = false;
  let safe = { bytes: 0, ms: performance.now() };
  const makeSafe = async (sha256: string | null = null) => {
    await writer.flush();
    const state = sha256 === null ? await hash.state() : null;
    const now: FetchRecord = { name, identity, size, bytes: at, state, sha256 };
    await folder.writeText(path + recordEnding, JSON.stringify(now));
    safe = { bytes: at, ms: performance.now() };
  };
  try {
    // A small file that git hashes is compared as a whole.
    const there = before?.state && !source.gitSha1 && writer.size >= before.bytes ? before : null;
    const from = there?.state && (await hash.resume(there.state)) ? there.bytes : 0;
    await writer.truncate(from);
    safe.bytes = from;
    const sha256 = await readChecked(fetching, {
      from,
      write: (start, piece) => writer.write(start, piece),
      onBytes: async (bytes) => {
        at = bytes;
        const isDue = performance.now() - safe.ms >= safeEvery.ms;
        if (at > safe.bytes && (isDue || at - safe.bytes >= safeEvery.bytes)) await makeSafe();
        onBytes(at);
      },
    });
    await makeSafe(sha256);
    return sha256;
  } catch (thrown) {
    // The reason of the end counts, not that the last pieces could not be kept.
    lost = isLost(thrown);
    if (at > safe.bytes && !lost) await makeSafe().catch(() => undefined);
    throw thrown;
  } finally {
    await writer.close();
    if (lost) await removeFetched(folder, path);
  }
}

/** Deletes a file and what is known of it. */
export async function removeFetched(folder: StoreFolder, path: string): Promise<void> {
  await forgetFetched(folder, path);
  await folder.remove(path);
}

/** Forgets how far a file is; the file stays. */
export function forgetFetched(folder: StoreFolder, path: string): Promise<void> {
  return folder.remove(path + recordEnding);
}
