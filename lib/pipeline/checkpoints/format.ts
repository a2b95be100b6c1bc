import { sha256 } from '../../contract';

/** Raise it with each change of what is saved or how: a run never continues over such a change. */
const version = 3;
/** "KNRC" */
const magic = 0x4b4e5243;
/** Bytes before the header: magic, size of the header, its SHA-256 in hex. */
const prefixBytes = 8 + 64;

/** Why a saved file cannot be used. */
export type UnusableReason = 'damaged' | 'version' | 'model' | 'request';

/** A saved file cannot be used. */
export class UnusableFile extends Error {
  override readonly name = 'UnusableFile';

  constructor(readonly reason: UnusableReason) {
    super(reason);
  }
}

/** Fingerprints of a run: only the same run of the same model goes on from its files. */
export interface RunIdentity {
  readonly model: string;
  readonly request: string;
}

/** A file: the run that it belongs to, values of its own, and tensors. */
export interface SavedFile<Values> {
  readonly run: RunIdentity;
  readonly values: Values;
  readonly tensors: readonly Float32Array[];
}

interface Header<Values> {
  readonly version: number;
  readonly run: RunIdentity;
  readonly values: Values;
  readonly tensors: readonly { readonly length: number; readonly sha256: string }[];
}

/**
 * Writes a file: magic, size and SHA-256 of the header, the header as JSON (with version, fingerprints and
 * the SHA-256 of each tensor), then the tensors as little-endian float32.
 *
 * @param values as JSON holds them
 */
export async function encodeFile<Values>(file: SavedFile<Values>): Promise<Blob> {
  const { run, values } = file;
  // Values that are read back from a device, or computed, are never in shared memory.
  const data = file.tensors as readonly Float32Array<ArrayBuffer>[];
  const tensors = await Promise.all(
    data.map(async (tensor) => ({ length: tensor.length, sha256: await sha256(tensor) })),
  );
  const header: Header<Values> = { version, run, values, tensors };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const prefix = new DataView(new ArrayBuffer(8));
  prefix.setUint32(0, magic);
  prefix.setUint32(4, text.length);
  return new Blob([prefix, await sha256(text), text, ...data]);
}

/**
 * Reads a file, and checks all of it.
 *
 * @throws UnusableFile
 */
export async function decodeFile<Values>(
  file: Blob,
  identity: RunIdentity,
): Promise<SavedFile<Values>> {
  const { run, values, tensors: entries, start } = await readHeader<Values>(file);
  if (run.model !== identity.model) throw new UnusableFile('model');
  if (run.request !== identity.request) throw new UnusableFile('request');
  const tensors: Float32Array[] = [];
  let at = start;
  for (const { length, sha256: expected } of entries) {
    const bytes = await bytesOf(file.slice(at, at + 4 * length));
    if ((await sha256(bytes)) !== expected) throw new UnusableFile('damaged');
    tensors.push(new Float32Array(bytes));
    at += 4 * length;
  }
  return { run, values, tensors };
}

/**
 * Reads the values of a file, whatever run it belongs to.
 *
 * @throws UnusableFile
 */
export async function readValues<Values>(file: Blob): Promise<Values> {
  return (await readHeader<Values>(file)).values;
}

async function readHeader<Values>(file: Blob): Promise<Header<Values> & { start: number }> {
  const prefix = await bytesOf(file.slice(0, prefixBytes));
  if (prefix.byteLength < prefixBytes) throw new UnusableFile('damaged');
  const view = new DataView(prefix);
  const start = prefixBytes + view.getUint32(4);
  const text = await bytesOf(file.slice(prefixBytes, start));
  const expected = new TextDecoder().decode(prefix.slice(8));
  if (view.getUint32(0) !== magic || (await sha256(text)) !== expected) {
    throw new UnusableFile('damaged');
  }
  // Its checksum proves that this code wrote it, or that of another version.
  const header = JSON.parse(new TextDecoder().decode(text)) as Header<Values>;
  if (header.version !== version) throw new UnusableFile('version');
  return { ...header, start };
}

/** A file that the browser cannot read any more is damaged. */
async function bytesOf(blob: Blob): Promise<ArrayBuffer> {
  return blob.arrayBuffer().catch(() => {
    throw new UnusableFile('damaged');
  });
}
