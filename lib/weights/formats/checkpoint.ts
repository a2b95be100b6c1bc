import { z } from 'zod';
import { at, KinoraError } from '../../contract';
import { type Blocks, blockSize, type TensorData } from '../convert/blocks';
import { elementTypes } from '../convert/element-types';
import { convertToBlocks, decodeElements, scaled, scaleFactors } from '../convert/elements';
import {
  type LocatedTensor,
  type LocatedTensors,
  locateTensors,
  type TensorLocation,
} from './located';
import { readTensorRows } from './rows';
import { readSafetensorsHeader, type TensorEntry } from './safetensors';
import { checkPath, type ModelFolder, type WeightFile } from './source';
import { openTensorFile, type TensorFile } from './tensor-file';

/** Named tensors, whatever file or files they lie in. Reading is lazy and never cached. */
export interface Checkpoint {
  names(): Iterable<string>;
  has(name: string): boolean;
  /** @throws KinoraError `TENSOR_MISSING` */
  shape(name: string): readonly number[];
  /** Stored size in bytes: what a progress bar counts. @throws KinoraError `TENSOR_MISSING` */
  bytes(name: string): number;
  /** Element type as the file names it: `F16`, `Q8_0`, … @throws KinoraError `TENSOR_MISSING` */
  dtype(name: string): string;
  /** All elements as f32, row-major. @throws KinoraError `TENSOR_MISSING`, `TENSOR_DTYPE` */
  read(name: string): Promise<Float32Array>;
  /**
   * Some rows (slices along the first dimension) as f32, in the order asked for, repeats included.
   * Only these rows are fetched, neighbours in one request.
   *
   * @throws RangeError for a row that the tensor does not have
   */
  readRows(name: string, rows: readonly number[]): Promise<Float32Array>;
  /**
   * Several tensors in the form in which they are stored: a matrix that is kept in blocks comes as
   * blocks, everything else as f32. A store that has them side by side reads them in one go.
   *
   * @throws KinoraError `TENSOR_MISSING`, `TENSOR_DTYPE`
   */
  readStored(names: readonly string[]): Promise<ReadonlyMap<string, TensorData>>;
}

/** A checkpoint of one safetensors file, with the file's own metadata. */
export interface SafetensorsCheckpoint extends Checkpoint {
  readonly metadata: ReadonlyMap<string, string>;
}

/**
 * Opens one safetensors file: a LoRA, a tiny decoder, a single-file component.
 *
 * @throws KinoraError `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`
 */
export async function openSafetensors(file: WeightFile): Promise<SafetensorsCheckpoint> {
  const header = await readSafetensorsHeader(file);
  const { metadata } = header;
  const located = locateTensors([{ file, format: 'safetensors', ...header, gguf: null }]);
  return { ...checkpointOf(file.name, located), metadata };
}

/** File names a component's weights may have, without ending. */
export const defaultBaseNames = ['diffusion_pytorch_model', 'model'] as const;
const singleEndings = ['.safetensors', '.gguf'] as const;

const indexSchema = z.object({ weight_map: z.record(z.string(), z.string()) });

/**
 * The file of each tensor by an index of shards.
 *
 * @throws KinoraError `MODEL_FILE_INVALID`
 */
export function readShardIndex(index: string, json: unknown): ReadonlyMap<string, string> {
  const { data } = indexSchema.safeParse(json);
  const files = new Map(Object.entries(data?.weight_map ?? {}));
  if (files.size > 0) return files;
  throw new KinoraError('MODEL_FILE_INVALID', `${index} does not say which file has which tensor.`);
}

/**
 * The weight files of a component, their headers read.
 *
 * @param dir the component's folder, such as `transformer`
 * @param baseName file name without ending; the usual two are tried when absent
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`, and
 * `TENSOR_MISSING` when a shard lacks a tensor that the index promises
 */
export async function openTensorFiles(
  folder: ModelFolder,
  dir: string,
  baseName?: string,
): Promise<TensorFile[]> {
  const baseNames = baseName === undefined ? defaultBaseNames : [baseName];
  for (const base of baseNames) {
    const index = `${dir}/${base}.safetensors.index.json`;
    if (await folder.exists(index)) return openShards(folder, dir, index);
    for (const ending of singleEndings) {
      const single = `${dir}/${base}${ending}`;
      if (await folder.exists(single)) return [await openTensorFile(await folder.open(single))];
    }
  }
  throw new KinoraError(
    'MODEL_FILE_MISSING',
    `${dir} has no weights: there is no ${baseNames.map((base) => `${base}.safetensors`).join(' or ')}.`,
  );
}

async function openShards(folder: ModelFolder, dir: string, index: string): Promise<TensorFile[]> {
  const shardOf = [...readShardIndex(index, await folder.json(index))];
  const names = [...new Set(shardOf.map(([, shard]) => shard))];
  const opened = await Promise.all(
    names.map(async (shard) => {
      const file = await openTensorFile(await folder.open(checkPath(`${dir}/${shard}`)));
      const promised = shardOf.filter(([, owner]) => owner === shard).map(([name]) => name);
      // A tensor that the index does not give to this shard is none of the model's.
      const tensors = promised.map((name): [string, TensorEntry] => {
        const entry = file.tensors.get(name);
        if (entry) return [name, entry];
        throw new KinoraError('TENSOR_MISSING', `${dir}/${shard} lacks the tensor ${name}.`);
      });
      return { ...file, tensors: new Map(tensors) };
    }),
  );
  return opened;
}

/**
 * A checkpoint over tensors that were found, by the names they are given here.
 *
 * @param label names the whole in messages, such as `transformer`
 */
export function checkpointOf(label: string, tensors: LocatedTensors): Checkpoint {
  function find(name: string): LocatedTensor {
    const tensor = tensors.get(name);
    if (!tensor) throw missing(label, name);
    return tensor;
  }
  async function read(name: string): Promise<Float32Array> {
    const { file, entry, scale } = find(name);
    const data = decodeElements(await file.read(entry.start, entry.end), entry.dtype, name);
    return scale ? scaled(data, await readScale(scale, name)) : data;
  }
  return {
    names: () => tensors.keys(),
    has: (name) => tensors.has(name),
    shape: (name) => find(name).entry.shape,
    bytes: (name) => find(name).entry.end - find(name).entry.start,
    dtype: (name) => find(name).entry.dtype,
    read,
    readStored: (names) =>
      readEach(names, (name) => {
        const tensor = find(name);
        const bits = storedBits(tensor);
        return bits === null ? read(name) : readBlocks(tensor, bits, name);
      }),
    async readRows(name, rows) {
      const { file, entry, scale } = find(name);
      const gathered = await readTensorRows(file, entry, name, rows);
      if (!scale) return gathered;
      const factors = await readScale(scale, name);
      const ofRows =
        factors.length > 1 ? Float32Array.from(rows, (row) => at(factors, row)) : factors;
      return scaled(gathered, ofRows);
    },
  };
}

/** The width of a matrix's elements where the file has it in blocks of the device; null elsewhere. */
function storedBits({ entry: { dtype, shape }, scale }: LocatedTensor): 8 | 4 | null {
  const [, columns = 0] = shape;
  const fits = shape.length === 2 && columns % blockSize === 0;
  return fits && !scale ? (elementTypes.get(dtype)?.sameBits ?? null) : null;
}

async function readBlocks(
  { file, entry }: LocatedTensor,
  bits: 8 | 4,
  name: string,
): Promise<Blocks> {
  const count = entry.shape.reduce((product, n) => product * n, 1) / blockSize;
  const values = new Uint8Array((count * blockSize * bits) / 8);
  const scales = new Float32Array(count);
  const bytes = await file.read(entry.start, entry.end);
  convertToBlocks(bytes, entry.dtype, bits, { values, scales }, name);
  return { bits, values, scales };
}

/** @throws KinoraError `MODEL_FILE_INVALID` */
async function readScale({ file, entry }: TensorLocation, name: string): Promise<Float32Array> {
  return scaleFactors(await file.read(entry.start, entry.end), entry.dtype, name);
}

/** {@link Checkpoint.readStored} for what reads its tensors one by one. */
export async function readEach(
  names: readonly string[],
  read: (name: string) => Promise<TensorData>,
): Promise<ReadonlyMap<string, TensorData>> {
  const data = new Map<string, TensorData>();
  for (const name of names) data.set(name, await read(name));
  return data;
}

/**
 * A checkpoint in which some tensors may go by another name, such as tied embeddings.
 *
 * @param aliases wanted name → the name to try when the wanted one is absent
 */
export function withAliases(
  checkpoint: Checkpoint,
  aliases: ReadonlyMap<string, string>,
): Checkpoint {
  function stored(name: string): string {
    const alias = aliases.get(name);
    return alias !== undefined && !checkpoint.has(name) && checkpoint.has(alias) ? alias : name;
  }
  return {
    names: () => checkpoint.names(),
    has: (name) => checkpoint.has(stored(name)),
    shape: (name) => checkpoint.shape(stored(name)),
    bytes: (name) => checkpoint.bytes(stored(name)),
    dtype: (name) => checkpoint.dtype(stored(name)),
    async readStored(names) {
      const data = await checkpoint.readStored(names.map(stored));
      return new Map(
        names.map((name) => {
          const tensor = data.get(stored(name));
          if (!tensor) throw new TypeError(`${name} was not read`);
          return [name, tensor];
        }),
      );
    },
    read: (name) => checkpoint.read(stored(name)),
    readRows: (name, rows) => checkpoint.readRows(stored(name), rows),
  };
}

/**
 * Checks that every expected tensor is there in its shape. Further tensors are no fault.
 *
 * @param componentName for the message, such as `transformer`
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export function checkTensors(
  checkpoint: Checkpoint,
  expected: ReadonlyMap<string, readonly number[]>,
  componentName: string,
): void {
  for (const [name, shape] of expected) {
    if (!checkpoint.has(name)) throw missing(componentName, name, shape);
    const actual = checkpoint.shape(name);
    if (actual.length !== shape.length || actual.some((n, axis) => n !== shape[axis])) {
      throw new KinoraError(
        'TENSOR_SHAPE',
        `${name} of the ${componentName} is [${actual}], but its configuration needs [${shape}].`,
      );
    }
  }
}

function missing(label: string, name: string, shape?: readonly number[]): KinoraError {
  const detail = shape ? ` [${shape}]` : '';
  return new KinoraError('TENSOR_MISSING', `${label} lacks the tensor ${name}${detail}.`);
}
