import { KinoraError, type StoredComponent } from '../../contract';
import { rowsOf } from '../formats/rows';
import type { WeightFile } from '../formats/source';
import type { StoreFolder } from './folder';
import { type Checksum, createChecksum, createSourceHash, sha256Prefix } from './hashes';
import { rowRanges } from './layout';
import {
  type ComponentManifest,
  deleteManifest,
  type StoredTensor,
  writeManifest,
} from './manifest';
import { openPacks } from './stored';

/** Bytes of a large file that are read at a time. */
const pieceBytes = 8 * 2 ** 20;

/** Options of a comparison of the stored bytes with their checksums. */
export interface VerifyOptions {
  /** Called with the bytes that were compared so far and those of the component. */
  readonly onProgress?: (bytesDone: number, bytesTotal: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * Compares every byte of a component with its checksum, and notes when.
 *
 * @throws KinoraError `MODEL_NOT_INSTALLED`; `MODEL_FILE_MISSING`, `MODEL_FILE_TRUNCATED`,
 * `MODEL_FILE_INVALID` naming what is damaged
 * @throws the signal's reason
 */
export async function verifyComponent(
  folder: StoreFolder,
  options: VerifyOptions = {},
): Promise<StoredComponent> {
  const { manifest, packs } = await openPacks(folder);
  const checksum = await createChecksum();
  const total = manifest.stored.bytesStored;
  let done = 0;
  for await (const bytes of compared(folder, manifest, packs, checksum)) {
    options.signal?.throwIfAborted();
    done += bytes;
    options.onProgress?.(done, total);
  }
  const stored = { ...manifest.stored, verifiedAt: new Date().toISOString() };
  await writeManifest(folder, { ...manifest, stored });
  return stored;
}

/** Deletes a component, complete or not. */
export async function deleteComponent(folder: StoreFolder): Promise<void> {
  await deleteManifest(folder); // First, so that half of a component never counts.
  await folder.clear();
}

/** Gives the bytes of each part once they are found to be right. */
async function* compared(
  folder: StoreFolder,
  { tensors, fileChecksums }: ComponentManifest,
  packs: ReadonlyMap<string, WeightFile>,
  checksum: Checksum,
): AsyncGenerator<number> {
  for (const [name, expected] of Object.entries(fileChecksums)) {
    const file = packs.get(name);
    if (!file) throw damaged(folder, name);
    if (expected.startsWith(sha256Prefix)) {
      const sha256 = yield* hashed(file);
      if (`${sha256Prefix}${sha256}` !== expected) throw damaged(folder, name);
    } else {
      if (checksum([await file.read(0, file.size)]) !== expected) throw damaged(folder, name);
      yield file.size;
    }
  }
  for (const tensor of tensors) {
    const pack = packs.get(tensor.pack);
    if (!pack) throw damaged(folder, tensor.pack);
    for (const [i, expected] of tensor.checksums.entries()) {
      const parts = await readPart(tensor, pack, i);
      if (checksum(parts) !== expected) throw damaged(folder, `${tensor.pack} (${tensor.name})`);
      yield parts.reduce((sum, part) => sum + part.length, 0);
    }
  }
}

/** Reads a file through SHA-256; gives the bytes of each piece. */
async function* hashed(file: WeightFile): AsyncGenerator<number, string> {
  const hash = await createSourceHash();
  await hash.start();
  for (let at = 0; at < file.size; at += pieceBytes) {
    const piece = await file.read(at, Math.min(file.size, at + pieceBytes));
    await hash.update(piece);
    yield piece.length;
  }
  return hash.digest();
}

/** Reads the piece whose checksum has this index. */
async function readPart(tensor: StoredTensor, pack: WeightFile, index: number) {
  const { rows } = rowsOf(tensor.shape);
  const first = index * tensor.rowsPerChecksum;
  const count = Math.min(tensor.rowsPerChecksum, rows - first);
  const { elements, scales } = rowRanges(tensor, first, count);
  const parts = [await pack.read(...elements)];
  if (scales) parts.push(await pack.read(...scales));
  return parts;
}

function damaged(folder: StoreFolder, what: string): KinoraError {
  return new KinoraError('MODEL_FILE_INVALID', `${what} of ${folder.name} is damaged.`);
}
