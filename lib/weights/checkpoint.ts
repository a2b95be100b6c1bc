import { z } from 'zod';
import { KinoraError } from '../contract';
import { toFloats } from './floats';
import { readSafetensorsHeader, type TensorEntry } from './safetensors';
import { checkPath, type ModelFolder, type WeightFile } from './source';

/** Requests for rows in flight at once. */
const rowRequests = 8;

/** Named tensors, whatever file or files they lie in. Reading is lazy and never cached. */
export interface Checkpoint {
  names(): Iterable<string>;
  has(name: string): boolean;
  /** @throws KinoraError `TENSOR_MISSING` */
  shape(name: string): readonly number[];
  /** Stored size in bytes: what a progress bar counts. @throws KinoraError `TENSOR_MISSING` */
  bytes(name: string): number;
  /** All elements as f32, row-major. @throws KinoraError `TENSOR_MISSING`, `TENSOR_DTYPE` */
  read(name: string): Promise<Float32Array>;
  /**
   * Some rows (slices along the first dimension) as f32, in the order asked for, repeats included.
   * Only these rows are fetched, neighbours in one request.
   *
   * @throws RangeError for a row that the tensor does not have
   */
  readRows(name: string, rows: readonly number[]): Promise<Float32Array>;
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
  const { tensors, metadata } = await readSafetensorsHeader(file);
  const located = new Map([...tensors].map(([name, entry]) => [name, { file, entry }]));
  return { ...checkpointOf(file.name, located), metadata };
}

/** File names a component's weights may have, without ending. */
const defaultBaseNames = ['diffusion_pytorch_model', 'model'] as const;

const indexSchema = z.object({ weight_map: z.record(z.string(), z.string()) });

/**
 * Opens the weights of a component: one safetensors file, or shards with an index beside them.
 *
 * @param dir the component's folder, such as `transformer`
 * @param baseName file name without ending; the usual two are tried when absent
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`, and
 * `TENSOR_MISSING` when a shard lacks a tensor that the index promises
 */
export async function openCheckpoint(
  folder: ModelFolder,
  dir: string,
  baseName?: string,
): Promise<Checkpoint> {
  const baseNames = baseName === undefined ? defaultBaseNames : [baseName];
  for (const base of baseNames) {
    const single = `${dir}/${base}.safetensors`;
    if (await folder.exists(single)) return openSafetensors(await folder.open(single));
    const index = `${single}.index.json`;
    if (await folder.exists(index)) return openShards(folder, dir, index);
  }
  throw new KinoraError(
    'MODEL_FILE_MISSING',
    `${dir} has no weights: there is no ${baseNames.map((base) => `${base}.safetensors`).join(' or ')}.`,
  );
}

async function openShards(folder: ModelFolder, dir: string, index: string): Promise<Checkpoint> {
  const parsed = indexSchema.safeParse(await folder.json(index));
  if (!parsed.success) {
    throw new KinoraError(
      'MODEL_FILE_INVALID',
      `${index} does not say which file has which tensor.`,
    );
  }
  const shardOf = Object.entries(parsed.data.weight_map);
  const shards = new Map<string, { file: WeightFile; tensors: ReadonlyMap<string, TensorEntry> }>();
  await Promise.all(
    [...new Set(shardOf.map(([, shard]) => shard))].map(async (shard) => {
      const file = await folder.open(checkPath(`${dir}/${shard}`));
      shards.set(shard, { file, tensors: (await readSafetensorsHeader(file)).tensors });
    }),
  );
  const located = new Map<string, LocatedTensor>();
  for (const [name, shard] of shardOf) {
    const found = shards.get(shard);
    const entry = found?.tensors.get(name);
    if (!found || !entry) {
      throw new KinoraError('TENSOR_MISSING', `${dir}/${shard} lacks the tensor ${name}.`);
    }
    located.set(name, { file: found.file, entry });
  }
  return checkpointOf(dir, located);
}

interface LocatedTensor {
  readonly file: WeightFile;
  readonly entry: TensorEntry;
}

function checkpointOf(label: string, tensors: ReadonlyMap<string, LocatedTensor>): Checkpoint {
  function find(name: string): LocatedTensor {
    const found = tensors.get(name);
    if (!found) throw missing(label, name);
    return found;
  }
  return {
    names: () => tensors.keys(),
    has: (name) => tensors.has(name),
    shape: (name) => find(name).entry.shape,
    bytes: (name) => find(name).entry.end - find(name).entry.start,
    async read(name) {
      const { file, entry } = find(name);
      return toFloats(await file.read(entry.start, entry.end), entry.dtype, name);
    },
    async readRows(name, rows) {
      const { file, entry } = find(name);
      return readTensorRows(file, entry, name, rows);
    },
  };
}

async function readTensorRows(
  file: WeightFile,
  entry: TensorEntry,
  name: string,
  rows: readonly number[],
): Promise<Float32Array> {
  const [rowCount = 0, ...rest] = entry.shape;
  const width = rest.reduce((product, n) => product * n, 1);
  for (const row of rows) {
    if (!Number.isInteger(row) || row < 0 || row >= rowCount) {
      throw new RangeError(`${name} [${entry.shape}] has no row ${row}.`);
    }
  }
  const rowBytes = rowCount === 0 ? 0 : (entry.end - entry.start) / rowCount;
  const runs = runsOf(rows);
  const floatsOf = new Map<number, Float32Array>();
  let next = 0;
  async function work(): Promise<void> {
    for (let run = runs[next++]; run; run = runs[next++]) {
      const start = entry.start + run.first * rowBytes;
      const bytes = await file.read(start, start + run.count * rowBytes);
      const floats = toFloats(bytes, entry.dtype, name);
      for (let i = 0; i < run.count; i++) {
        floatsOf.set(run.first + i, floats.subarray(i * width, (i + 1) * width));
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(rowRequests, runs.length) }, work));

  const gathered = new Float32Array(rows.length * width); // [rows, width]
  for (const [i, row] of rows.entries()) {
    const floats = floatsOf.get(row);
    if (floats) gathered.set(floats, i * width);
  }
  return gathered;
}

/** Distinct rows as runs of neighbours. */
function runsOf(rows: readonly number[]): { first: number; count: number }[] {
  const runs: { first: number; count: number }[] = [];
  for (const row of [...new Set(rows)].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && last.first + last.count === row) last.count++;
    else runs.push({ first: row, count: 1 });
  }
  return runs;
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
    const found = checkpoint.shape(name);
    if (found.length !== shape.length || found.some((n, axis) => n !== shape[axis])) {
      throw new KinoraError(
        'TENSOR_SHAPE',
        `${name} of the ${componentName} is [${found}], but its configuration needs [${shape}].`,
      );
    }
  }
}

function missing(label: string, name: string, shape?: readonly number[]): KinoraError {
  const detail = shape ? ` [${shape}]` : '';
  return new KinoraError('TENSOR_MISSING', `${label} lacks the tensor ${name}${detail}.`);
}
