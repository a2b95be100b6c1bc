import { ggmlType } from '../../convert/element-types';
import type { TensorEntry } from '../safetensors';
import { damaged, truncated, type WeightFile } from '../source';
import { type GgufValue, HeaderWindow, readName, readValue } from './values';

/** The table of contents of a GGUF file. */
export interface GgufHeader {
  readonly version: 2 | 3;
  /** Dimensions as PyTorch has them, slowest first. */
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  /** Every value, the vocabulary included; arrays of arrays are left out. */
  readonly metadata: ReadonlyMap<string, GgufValue>;
  /** Where the header ends and the tensors' bytes may begin. */
  readonly headerBytes: number;
}

/** The first four bytes of every GGUF file: "GGUF", read as a little-endian number. */
export const ggufMagic = 0x46554747;

const defaultAlignment = 32;
const maxAlignment = 2 ** 20;
/** GGML itself has four; converters add five-dimensional kernels afterwards. */
const maxDimensions = 8;
/** Far beyond any model, and few enough to hold. */
const maxCount = 2 ** 16;
/** Where converters keep the shape of a tensor that they had to reshape. */
const originalShapePrefix = 'comfy.gguf.orig_shape.';

interface TensorInfo {
  readonly name: string;
  /** Fastest first, as the file has them. */
  readonly dimensions: readonly number[];
  readonly type: number;
  /** From the start of the data. */
  readonly offset: number;
}

/**
 * Reads and checks the header of a GGUF file, versions 2 and 3, little-endian. Reads what the header
 * takes and little more, at most 64 MiB, whatever the file says.
 *
 * Ours rather than @huggingface/gguf, which reads URLs instead of files, cuts a text short where its
 * window ends, and starts an array over with each piece fetched; a test compares the two.
 *
 * @throws KinoraError `MODEL_FILE_INVALID` for a damaged file, `MODEL_FILE_TRUNCATED` for a short one
 */
export async function readGgufHeader(file: WeightFile): Promise<GgufHeader> {
  const window = new HeaderWindow(file);
  await window.fetch(24, 'its beginning');
  if (window.u32() !== ggufMagic) throw damaged(window.file, 'it does not start like a GGUF file');
  const version = window.u32();
  if (version !== 2 && version !== 3) {
    const swapped = version >= 2 ** 24 && version % 2 ** 24 === 0;
    throw damaged(
      window.file,
      swapped ? 'it is written for big-endian machines' : `it is of the GGUF version ${version}`,
    );
  }
  const tensorCount = window.length();
  const valueCount = window.length();
  if (valueCount > maxCount || tensorCount > maxCount) {
    throw damaged(window.file, `it announces ${tensorCount} tensors and ${valueCount} values`);
  }

  const metadata = await readMetadata(window, valueCount);
  const infos = await readTensorInfos(window, tensorCount);
  const alignment = alignmentOf(window, metadata);
  const headerBytes = Math.ceil(window.position / alignment) * alignment;
  if (infos.length > 0 && headerBytes > file.size) {
    throw truncated(file.name, headerBytes, file.size);
  }
  const tensors = layOut(window, infos, metadata, { alignment, headerBytes });
  return { version, tensors, metadata, headerBytes: Math.min(headerBytes, file.size) };
}

async function readMetadata(
  window: HeaderWindow,
  count: number,
): Promise<ReadonlyMap<string, GgufValue>> {
  const metadata = new Map<string, GgufValue>();
  const seen = new Set<string>();
  for (let i = 0; i < count; i++) {
    const key = await readName(window, 'a metadata key');
    if (seen.has(key)) throw damaged(window.file, `${key} is there twice`);
    seen.add(key);
    await window.fetch(4, key);
    const value = await readValue(window, window.u32(), key);
    if (value !== null) metadata.set(key, value);
  }
  return metadata;
}

async function readTensorInfos(window: HeaderWindow, count: number): Promise<TensorInfo[]> {
  const infos: TensorInfo[] = [];
  for (let i = 0; i < count; i++) {
    const name = await readName(window, 'a tensor name');
    await window.fetch(4, name);
    const rank = window.u32();
    if (rank > maxDimensions) throw damaged(window.file, `${name} has ${rank} dimensions`);
    await window.fetch(8 * rank + 12, name);
    const dimensions = Array.from({ length: rank }, () => window.length());
    if (!dimensions.every(Number.isSafeInteger)) {
      throw damaged(window.file, `${name} has impossible dimensions`);
    }
    infos.push({ name, dimensions, type: window.u32(), offset: window.length() });
  }
  return infos;
}

function alignmentOf(window: HeaderWindow, metadata: ReadonlyMap<string, GgufValue>): number {
  const alignment = metadata.get('general.alignment') ?? defaultAlignment;
  const valid = typeof alignment === 'number' && Number.isInteger(Math.log2(alignment));
  if (!valid || alignment < 1 || alignment > maxAlignment) {
    throw damaged(window.file, `its alignment is ${String(alignment).slice(0, 40)}`);
  }
  return alignment;
}

/** Turns the list into entries with byte ranges, and checks that no two of them share a byte. */
function layOut(
  window: HeaderWindow,
  infos: readonly TensorInfo[],
  metadata: ReadonlyMap<string, GgufValue>,
  { alignment, headerBytes }: { readonly alignment: number; readonly headerBytes: number },
): ReadonlyMap<string, TensorEntry> {
  const { file } = window;
  const byOffset = infos.toSorted((a, b) => a.offset - b.offset);
  const entries = new Map<string, TensorEntry>();
  let position = headerBytes;
  let before = '';
  for (const [i, info] of byOffset.entries()) {
    const { name, offset } = info;
    if (entries.has(name)) throw damaged(window.file, `the tensor ${name} is there twice`);
    if (offset % alignment !== 0) {
      throw damaged(window.file, `${name} starts at ${offset}, no multiple of ${alignment}`);
    }
    const type = ggmlType(info.type);
    const start = headerBytes + offset;
    // The size of an unknown type is not known either: it reaches to whatever follows.
    const next = headerBytes + (byOffset[i + 1]?.offset ?? Math.max(0, file.size - headerBytes));
    const end = type ? start + byteLength(window, info, type) : next;
    if (!Number.isSafeInteger(end)) throw damaged(window.file, `${name} has impossible dimensions`);
    if (start < position) throw damaged(window.file, `${name} overlaps ${before}`);
    if (end > file.size || start > end) throw truncated(file.name, Math.max(start, end), file.size);
    entries.set(name, {
      dtype: type?.name ?? `GGML type ${info.type}`,
      shape: shapeOf(window, info, metadata),
      start,
      end,
    });
    position = end;
    before = name;
  }
  // In the order of the file's own list, which is the model's.
  return new Map(infos.map(({ name }) => [name, entryOf(entries, name)]));
}

function entryOf(entries: ReadonlyMap<string, TensorEntry>, name: string): TensorEntry {
  const entry = entries.get(name);
  if (!entry) throw new TypeError(`${name} was not laid out`);
  return entry;
}

function byteLength(
  window: HeaderWindow,
  { name, dimensions }: TensorInfo,
  { elements, bytes, name: type }: NonNullable<ReturnType<typeof ggmlType>>,
): number {
  const [row = 1, ...rest] = dimensions;
  if (row % elements !== 0) {
    throw damaged(
      window.file,
      `${name} has rows of ${row}, which are no whole blocks of ${elements} in ${type}`,
    );
  }
  return rest.reduce((product, n) => product * n, row / elements) * bytes;
}

function shapeOf(
  window: HeaderWindow,
  { name, dimensions }: TensorInfo,
  metadata: ReadonlyMap<string, GgufValue>,
): readonly number[] {
  const shape = dimensions.toReversed();
  const original = metadata.get(originalShapePrefix + name);
  if (original === undefined) return shape;
  const restored = ArrayBuffer.isView(original) ? Array.from(original, Number) : [];
  const count = (dims: readonly number[]) => dims.reduce((product, n) => product * n, 1);
  const valid = restored.length > 0 && restored.length <= maxDimensions;
  if (!valid || restored.some((n) => n < 0) || count(restored) !== count(shape)) {
    const originalText = String(original).slice(0, 60);
    throw damaged(
      window.file,
      `the original shape of ${name}, [${originalText}], is not [${shape}]`,
    );
  }
  return restored;
}
