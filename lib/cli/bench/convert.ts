import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/umd/node-adapter';
import { elementType } from '../../weights';
import type { ByteSource } from '../../weights/formats/source';
import { type ComponentRecipe, installComponent, type SourceHash } from '../../weights/store';
import { BlockBuffer, convertRows } from '../../weights/store/convert';
import { layoutOf } from '../../weights/store/layout';
import { diskStore } from '../../weights/store/testing/disk';
import { unitBytes } from '../../weights/store/units';
import { measure } from './meter';

/** Widths of the 5B's linear layers. */
const columns = 3072;
/** About so many source bytes per run. */
const sourceBytes = 48 * 2 ** 20;
const runs = 5;

const cases = [
  ['Q8_0', 'int8'],
  ['Q4_0', 'int4'],
  ['Q4_0', 'int8'],
  ['Q4_K', 'int8'],
  ['Q4_K', 'int4'],
  ['Q5_K', 'int8'],
  ['Q5_K', 'int4'],
  ['Q6_K', 'int8'],
  ['Q6_K', 'int4'],
  ['BF16', 'int8'],
  ['BF16', 'int4'],
  ['F16', 'int8'],
  ['F32', 'int8'],
  ['F8_E4M3', 'int8'],
] as const;

/**
 * Measures how fast source files become the store's form: the conversion alone, and a whole installation
 * with SHA-256, checksums, journal and writing to this machine's disk. By the processor's time, which a
 * busy machine does not distort; the installation by the clock as well, for the disk, and with SHA-256 in
 * a thread of its own.
 */
export async function benchConvert(): Promise<void> {
  const print = (text: string) => process.stdout.write(text);
  const row = (cells: readonly string[]) => {
    print(`${cells.map((cell, i) => (i === 0 ? cell.padEnd(18) : cell.padStart(15))).join('')}\n`);
  };
  print('MB/s of source: per second of one core (mean), and by the clock (median)\n');
  row(['source → store', 'conversion', 'installation', 'by the clock', 'SHA-256 apart']);
  const thread = startThread(new URL('./hash-thread.ts', import.meta.url).href);
  const remote = Comlink.wrap<SourceHash>(nodeEndpoint(thread));
  const hash: SourceHash = {
    start: () => remote.start(),
    resume: (state) => remote.resume(state),
    // As the product does it: a copy that is moved.
    update: (bytes) => {
      const own = bytes.slice();
      return remote.update(Comlink.transfer(own, [own.buffer]));
    },
    state: () => remote.state(),
    digest: () => remote.digest(),
  };
  for (const [dtype, form] of cases) {
    const matrix = randomMatrix(dtype);
    const recipe: ComponentRecipe = {
      component: 'transformer',
      tensors: [
        { name: 'weight', source: 'weight', shape: matrix.shape, form, pack: 'block-00.bin' },
      ],
    };
    const size = matrix.bytes.length;
    const conversion = await speed(size, () => convert(recipe, dtype, matrix));
    const installation = await speed(size, () => install(recipe, dtype, matrix));
    const apart = await speed(size, () => install(recipe, dtype, matrix, hash));
    const figures = [conversion.core, installation.core, installation.clock, apart.clock];
    row([`${dtype} → ${form}`, ...figures.map((figure) => figure.toFixed(0))]);
  }
  await thread.terminate();
}

/** A thread that runs a TypeScript module; Node's own threads do not take tsx over. */
function startThread(url: string): Worker {
  const module = JSON.stringify(url);
  const start = `import('tsx/esm/api').then(({ tsImport }) => tsImport(${module}, ${module}))`;
  return new Worker(start, { eval: true });
}

interface Matrix {
  readonly shape: readonly [rows: number, columns: number];
  readonly bytes: Uint8Array;
}

/** Converts unit by unit, as the installation does. */
async function convert(recipe: ComponentRecipe, dtype: string, { shape, bytes }: Matrix) {
  const [place] = layoutOf(recipe, () => dtype).places;
  if (!place) throw new TypeError('there is nothing to convert');
  const rowBytes = bytes.length / shape[0];
  const perUnit = Math.floor(unitBytes / rowBytes);
  const buffer = new BlockBuffer();
  for (let firstRow = 0; firstRow < shape[0]; firstRow += perUnit) {
    const rows = Math.min(perUnit, shape[0] - firstRow);
    const part = bytes.subarray(firstRow * rowBytes, (firstRow + rows) * rowBytes);
    convertRows(place, place.recipe, { bytes: part, dtype, firstRow, rows, factor: 1 }, buffer);
  }
}

async function install(
  recipe: ComponentRecipe,
  dtype: string,
  { shape, bytes }: Matrix,
  hash?: SourceHash,
) {
  const root = await mkdtemp(path.join(tmpdir(), 'kinora-bench-'));
  const source = memorySource(bytes);
  const entry = { dtype, shape, start: 0, end: bytes.length };
  try {
    await installComponent({
      folder: diskStore(root),
      component: 'transformer',
      precision: 'int8',
      recipe,
      sources: [source],
      tensors: new Map([['weight', { file: source, entry, storedName: 'weight' }]]),
      signal: new AbortController().signal,
      ...(hash && { hash }),
    });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** A source in memory, so that only our own work is measured. */
function memorySource(bytes: Uint8Array): ByteSource {
  return {
    name: 'weights',
    size: bytes.length,
    identity: 'memory',
    sha256: null,
    read: async (start, end) => bytes.slice(start, end),
    async *stream(start, end) {
      const piece = 2 ** 20;
      for (let at = start; at < end; at += piece)
        yield bytes.subarray(at, Math.min(end, at + piece));
    },
  };
}

/** Random elements of the size of weights. */
function randomMatrix(dtype: string): Matrix {
  const type = elementType(dtype, 'weight');
  const rowBytes = (columns / type.elements) * type.bytes;
  const rows = Math.floor(sourceBytes / rowBytes);
  const bytes = new Uint8Array(rows * rowBytes);
  const words = new Uint32Array(bytes.buffer, 0, Math.floor(bytes.length / 4));
  let state = 1;
  for (let i = 0; i < words.length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    // The generator's low bits have short periods.
    words[i] = state ^ (state >>> 15);
  }
  const [offsets, keep, set] = exponentBits(dtype);
  for (let at = 0; at < bytes.length; at += type.bytes) {
    for (const offset of offsets) {
      bytes[at + offset] = ((bytes[at + offset] as number) & keep) | set;
    }
  }
  return { shape: [rows, columns], bytes };
}

/**
 * Bytes of a block that hold the upper bits of an exponent; the bits of them that stay, and those that
 * are set: every number is finite, and as large as weights are. Processors take long for smaller ones.
 */
function exponentBits(dtype: string): readonly [offsets: number[], keep: number, set: number] {
  switch (dtype) {
    case 'F32':
      return [[3], 0x87, 0x38];
    case 'BF16':
      return [[1], 0x87, 0x38];
    case 'Q4_K':
    case 'Q5_K':
      return [[1, 3], 0xbf, 0];
    case 'Q6_K':
      return [[209], 0xbf, 0];
    case 'F8_E4M3':
      return [[0], 0xbf, 0];
    default:
      return [[1], 0xbf, 0];
  }
}

/** Million source bytes per second of one core, and by the clock. */
async function speed(
  bytes: number,
  run: () => Promise<void>,
): Promise<{ core: number; clock: number }> {
  await run();
  const { cpuMs, p50Ms } = await measure(runs, 1, run);
  return { core: bytes / cpuMs / 1000, clock: bytes / p50Ms / 1000 };
}
