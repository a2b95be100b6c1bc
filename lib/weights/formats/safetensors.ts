import { z } from 'zod';
import { elementTypes } from '../convert/element-types';
import { damaged, truncated, type WeightFile } from './source';

/** One tensor as the header lists it. */
export interface TensorEntry {
  /** Element type as the file names it: `F32`, `BF16`, … */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Byte range in the file. */
  readonly start: number;
  readonly end: number;
}

/** The table of contents of a safetensors file. */
export interface SafetensorsHeader {
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  /** `__metadata__`: free text by name. */
  readonly metadata: ReadonlyMap<string, string>;
  /** Where the header ends and the tensors' bytes begin. */
  readonly headerBytes: number;
}

/** Upper bound of the header, as the reference implementation has it. */
const maxHeaderBytes = 100_000_000;
const openingBrace = 0x7b;
/** Far beyond any known tensor, and short enough for a message. */
const maxDimensions = 16;
const maxNameLength = 1024;

const entrySchema = z.strictObject({
  dtype: z.string(),
  shape: z.array(z.int().nonnegative()).max(maxDimensions),
  data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
});
const metadataSchema = z.record(z.string(), z.string());

/**
 * Reads and checks the header of a safetensors file: 8 bytes of length, JSON, then the data, which the
 * tensors must cover from end to end without gap or overlap. A stream of unknown length has the size Infinity.
 *
 * @throws KinoraError `MODEL_FILE_INVALID` for a damaged file, `MODEL_FILE_TRUNCATED` for a short one
 */
export async function readSafetensorsHeader(file: WeightFile): Promise<SafetensorsHeader> {
  if (file.size < 8) throw truncated(file.name, 8, file.size);
  const prefix = await file.read(0, Math.min(9, file.size));
  const headerBytes = new DataView(prefix.buffer, prefix.byteOffset, 8).getBigUint64(0, true);
  if (headerBytes > maxHeaderBytes || headerBytes < 2) {
    throw damaged(file, 'it does not start like a safetensors file');
  }
  const dataStart = 8 + Number(headerBytes);
  if (dataStart > file.size) throw truncated(file.name, dataStart, file.size);
  // Random bytes may announce a header of any length: look before reading it.
  if (prefix[8] !== openingBrace) throw damaged(file, 'its header is not a table of tensors');

  const header = parseHeader(file, await file.read(8, dataStart));
  const tensors = new Map<string, TensorEntry>();
  let metadata: ReadonlyMap<string, string> = new Map();
  for (const [name, value] of Object.entries(header)) {
    if (name === '__metadata__') {
      const parsed = metadataSchema.safeParse(value);
      if (!parsed.success) throw damaged(file, 'its metadata is not a table of texts');
      metadata = new Map(Object.entries(parsed.data));
    } else {
      tensors.set(name, checkEntry(file, name, value, dataStart));
    }
  }
  checkLayout(file, tensors, dataStart);
  return { tensors, metadata, headerBytes: dataStart };
}

function parseHeader(file: WeightFile, bytes: Uint8Array): object {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw damaged(file, 'its header is not valid JSON', cause);
  }
  if (typeof header !== 'object' || header === null || Array.isArray(header)) {
    throw damaged(file, 'its header is not a table of tensors');
  }
  return header;
}

function checkEntry(
  file: WeightFile,
  name: string,
  value: unknown,
  dataStart: number,
): TensorEntry {
  if (name.length > maxNameLength) {
    throw damaged(file, `the name of a tensor has ${name.length} characters`);
  }
  const parsed = entrySchema.safeParse(value);
  if (!parsed.success) throw damaged(file, `its entry for ${name} cannot be read`);
  const { dtype, shape } = parsed.data;
  const [start, end] = parsed.data.data_offsets;
  if (end < start) throw damaged(file, `the bytes of ${name} end before they start`);
  // An unknown type is listed too: it matters only when the tensor is read.
  const type = elementTypes.get(dtype);
  const count = shape.reduce((product, n) => product * n, 1);
  const expected = type && (count / type.elements) * type.bytes;
  if (expected !== undefined && expected !== end - start) {
    throw damaged(
      file,
      `${name} is ${dtype} [${shape}] and needs ${expected} bytes, but has ${end - start}`,
    );
  }
  return { dtype, shape, start: dataStart + start, end: dataStart + end };
}

function checkLayout(
  file: WeightFile,
  tensors: ReadonlyMap<string, TensorEntry>,
  dataStart: number,
): void {
  const byOffset = [...tensors].sort(([, a], [, b]) => a.start - b.start || a.end - b.end);
  let position = dataStart;
  for (const [name, { start, end }] of byOffset) {
    if (start < position) throw damaged(file, `${name} overlaps the tensor before it`);
    if (start > position) throw damaged(file, `there is a gap before ${name}`);
    position = end;
  }
  if (position > file.size) throw truncated(file.name, position, file.size);
  if (position < file.size && file.size !== Number.POSITIVE_INFINITY) {
    throw damaged(file, `${file.size - position} bytes follow after its last tensor`);
  }
}
