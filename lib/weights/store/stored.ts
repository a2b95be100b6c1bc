import { KinoraError, type StoredComponent } from '../../contract';
import type { TensorData } from '../convert/blocks';
import { decodeElements } from '../convert/elements';
import { dequantiseBlocks } from '../convert/quantise';
import type { Checkpoint } from '../formats/checkpoint';
import { neighbours } from '../formats/located';
import { clocked } from '../formats/read-clock';
import { gatherRows, rowsOf } from '../formats/rows';
import { truncated, type WeightFile } from '../formats/source';
import type { StoreFolder } from './folder';
import { rowBytes, rowRanges } from './layout';
import { readManifest, type StoredTensor } from './manifest';

/** A component of the store. The names come in the order of the packs. */
export interface StoredCheckpoint extends Checkpoint {
  readonly stored: StoredComponent;
}

/** The facts of a component; null when it is not complete. */
export async function readStoredComponent(folder: StoreFolder): Promise<StoredComponent | null> {
  return (await readManifest(folder))?.stored ?? null;
}

/**
 * The manifest of a component and its files.
 *
 * @throws KinoraError `MODEL_NOT_INSTALLED` when it is not complete; `MODEL_FILE_MISSING`,
 * `MODEL_FILE_TRUNCATED` when a file is not as long as it was written
 */
export async function openPacks(folder: StoreFolder) {
  const manifest = await readManifest(folder);
  if (!manifest) {
    throw new KinoraError('MODEL_NOT_INSTALLED', `${folder.name} is not in this browser yet.`);
  }
  const packs = new Map<string, WeightFile>();
  for (const [name, bytes] of Object.entries(manifest.files)) {
    const file = await folder.open(name);
    const place = `${folder.name}/${name}`;
    if (!file) throw new KinoraError('MODEL_FILE_MISSING', `${place} is missing.`);
    if (file.size !== bytes) throw truncated(place, bytes, file.size);
    packs.set(name, file);
  }
  return { manifest, packs };
}

/**
 * Opens a component that was installed. No weight is read.
 *
 * @throws KinoraError as {@link openPacks}
 */
export async function openStoredComponent(folder: StoreFolder): Promise<StoredCheckpoint> {
  const { manifest, packs } = await openPacks(folder);
  const tensors = new Map(manifest.tensors.map((tensor) => [tensor.name, tensor]));

  function find(name: string): StoredTensor {
    const tensor = tensors.get(name);
    if (tensor) return tensor;
    throw new KinoraError('TENSOR_MISSING', `${folder.name} lacks the tensor ${name}.`);
  }
  function packOf({ pack }: StoredTensor): WeightFile {
    const file = packs.get(pack);
    if (file) return file;
    throw new KinoraError('MODEL_FILE_INVALID', `${folder.name} has no pack ${pack}.`);
  }
  async function readStored(names: readonly string[]) {
    const data = new Map<string, TensorData>();
    const wanted = names.map(find);
    for (const pack of new Set(wanted.map(packOf))) {
      const own = wanted.filter((tensor) => packOf(tensor) === pack);
      for (const { items, start, end } of neighbours(own, placeOf)) {
        const bytes = await pack.read(start, end);
        for (const tensor of items) {
          const place = placeOf(tensor);
          const part = bytes.subarray(place.start - start, place.end - start);
          data.set(tensor.name, decode(tensor, part));
        }
      }
    }
    return data;
  }
  return clocked(manifest.stored.component, {
    stored: manifest.stored,
    names: () => tensors.keys(),
    has: (name) => tensors.has(name),
    shape: (name) => find(name).shape,
    bytes: (name) => find(name).bytes,
    dtype: (name) => find(name).encoding,
    readStored,
    async read(name) {
      const data = (await readStored([name])).get(name);
      if (!data) throw new TypeError(`${name} was not read`);
      return floatsOf(find(name), data);
    },
    readRows: (name, rows) => readRows(find(name), packOf(find(name)), rows),
  });
}

/** Where the bytes of a tensor lie in its pack. */
function placeOf({ offset, bytes }: StoredTensor): { start: number; end: number } {
  return { start: offset, end: offset + bytes };
}

/** A tensor's bytes as what they stand for; views, where that is possible. */
function decode({ name, encoding, shape }: StoredTensor, bytes: Uint8Array): TensorData {
  if (encoding !== 'int8' && encoding !== 'int4') return decodeElements(bytes, encoding, name);
  const { rows, width } = rowsOf(shape);
  const valueBytes = rows * rowBytes(encoding, width).element;
  return blocksOf(encoding, bytes.subarray(0, valueBytes), bytes.subarray(valueBytes));
}

function blocksOf(encoding: 'int8' | 'int4', values: Uint8Array, scales: Uint8Array): TensorData {
  const own = scales.byteOffset % 4 === 0 ? scales : scales.slice();
  return {
    bits: encoding === 'int8' ? 8 : 4,
    values: values as Uint8Array<ArrayBuffer>,
    scales: new Float32Array(own.buffer as ArrayBuffer, own.byteOffset, own.byteLength / 4),
  };
}

function floatsOf({ shape }: Pick<StoredTensor, 'shape'>, data: TensorData): Float32Array {
  if (data instanceof Float32Array) return data;
  const { rows, width } = rowsOf(shape);
  return dequantiseBlocks(data, rows, width);
}

/** Some rows of a tensor: of blocks their values and their scales are two reads. */
async function readRows(
  tensor: StoredTensor,
  pack: WeightFile,
  rows: readonly number[],
): Promise<Float32Array> {
  const { name, encoding, shape } = tensor;
  const { width } = rowsOf(shape);
  return gatherRows(name, shape, rows, async (first, count) => {
    const { elements, scales } = rowRanges(tensor, first, count);
    const bytes = await pack.read(...elements);
    if (encoding !== 'int8' && encoding !== 'int4') return decodeElements(bytes, encoding, name);
    const scaleBytes = scales ? await pack.read(...scales) : new Uint8Array();
    return floatsOf({ shape: [count, width] }, blocksOf(encoding, bytes, scaleBytes));
  });
}
