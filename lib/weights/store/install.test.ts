import { readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { dequantiseBlocks, quantiseBlocks } from '../convert/quantise';
import { locateTensors } from '../formats/located';
import { openTensorFile } from '../formats/tensor-file';
import { f32, safetensorsBytes } from '../testing/files';
import type { StoreFolder } from './folder';
import { installComponent, installProgress } from './install';
import { keepStart } from './kept-start';
import { openStoredComponent, readStoredComponent } from './stored';
import { bytes, numbers, recipe, swapped, tensors } from './testing/component';
import { diskStore } from './testing/disk';
import { failingFolder, type TestSource, testSource } from './testing/source';
import { verifyComponent } from './verify';

const temporary = temporaryFolder();
let root: string;
beforeEach(() => {
  root = temporary();
});

interface Attempt {
  readonly folder?: StoreFolder;
  readonly source?: TestSource;
  readonly signal?: AbortSignal;
  readonly onUnit?: (unit: number) => void;
  readonly restarts?: string[];
  readonly limit?: number;
}

async function install({ folder = diskStore(root), source, ...attempt }: Attempt = {}) {
  const kept = await keepStart(folder, 0, source ?? testSource('model.safetensors', bytes));
  let unit = 0;
  return installComponent({
    folder,
    component: 'transformer',
    precision: 'int8',
    recipe,
    sources: [kept],
    tensors: locateTensors([await openTensorFile(kept)]),
    signal: attempt.signal ?? new AbortController().signal,
    onProgress: () => attempt.onUnit?.(unit++),
    onRestart: (reason) => attempt.restarts?.push(reason),
    limit: attempt.limit ?? 700,
    unitsPerCommit: 1,
  });
}

/** Every file of the component but the manifest, which has dates in it. */
async function contents(): Promise<Record<string, Buffer>> {
  const names = (await readdir(root)).filter((name) => name !== 'manifest.json').sort();
  const files = names.map(async (name) => [name, await readFile(path.join(root, name))] as const);
  return Object.fromEntries(await Promise.all(files));
}

/** What an installation that nothing disturbs writes. */
async function undisturbed(): Promise<Record<string, Buffer>> {
  await install();
  const result = await contents();
  await diskStore(root).clear();
  return result;
}

describe('an installation', () => {
  test('keeps each tensor as its recipe says', async () => {
    const stored = await install();
    const checkpoint = await openStoredComponent(diskStore(root));
    expect([...checkpoint.names()]).toEqual(recipe.tensors.map(({ name }) => name));
    expect(await checkpoint.read('norm')).toEqual(Float32Array.of(1, -2, 3.5));

    const blocks = quantiseBlocks(tensors.linear.data, 24, 64, 8);
    const read = await checkpoint.readStored(['linear', 'norm']);
    expect(read.get('linear')).toEqual(blocks);
    expect(read.get('norm')).toEqual(Float32Array.of(1, -2, 3.5));
    expect(await checkpoint.read('linear')).toEqual(dequantiseBlocks(blocks, 24, 64));
    expect(await checkpoint.readRows('linear', [5, 4, 5])).toEqual(
      Float32Array.from(
        [5, 4, 5].flatMap((row) => [
          ...dequantiseBlocks(blocks, 24, 64).subarray(row * 64, row * 64 + 64),
        ]),
      ),
    );
    expect(checkpoint.dtype('kernel#')).toBe('F16');
    expect(checkpoint.dtype('table')).toBe('F16');
    expect(await checkpoint.read('x.weight')).toEqual(new Float32Array(64).fill(0.25));
    expect(stored).toMatchObject({ sourceType: 'F32', worst: { tensor: 'linear' } });
    expect(stored.sources[0]).toMatchObject({ bytes: bytes.length });
    expect(await verifyComponent(diskStore(root))).toMatchObject({ worst: stored.worst });
    expect((await readdir(root)).sort()).toEqual(['a.bin', 'b.bin', 'manifest.json']);
  });

  test('moves the halves of a reordered kernel without changing a bit', async () => {
    await install();
    const kernel = new Uint16Array(tensors.kernel.data.slice().buffer);
    const pack = await readFile(path.join(root, 'b.bin'));
    const at = pack.length - 120;
    const words = new Uint16Array(
      pack.buffer.slice(pack.byteOffset + at, pack.byteOffset + at + 120),
    );
    expect([...words]).toEqual([...swapped(Float32Array.from(kernel))]);
  });

  test('gives the same bytes whatever the size of its units', async () => {
    const expected = await undisturbed();
    for (const limit of [100, 1500, 1e6]) {
      await install({ limit });
      expect(await contents()).toEqual(expected);
      await diskStore(root).clear();
    }
  });

  test('is not repeated when it is complete', async () => {
    await install();
    const source = testSource('model.safetensors', bytes);
    await install({ source });
    const { headerBytes } = await openTensorFile(testSource('', bytes));
    expect(Math.max(...source.reads.subarray(headerBytes))).toBe(0);
  });
});

describe('after an interruption', () => {
  test('it goes on at the unit where it stopped, and reads no byte twice', {
    tags: ['full'],
  }, async () => {
    const expected = await undisturbed();
    const source = testSource('model.safetensors', bytes, { chunk: 1 });
    let stops = 0;
    for (let done = false; !done; ) {
      const controller = new AbortController();
      const attempt = { source, signal: controller.signal };
      const stopAfter = 1 + (stops % 4);
      done = await install({
        ...attempt,
        onUnit: (unit) => unit === stopAfter && controller.abort(),
      }).then(
        () => true,
        (error) => {
          expect(error).toMatchObject({ name: 'AbortError' });
          stops++;
          return false;
        },
      );
      if (!done) {
        expect(await readStoredComponent(diskStore(root))).toBeNull();
        expect(await installProgress(diskStore(root))).not.toBeNull();
      }
    }
    expect(stops).toBeGreaterThan(4);
    expect(await contents()).toEqual(expected);
    // But for the scale, which has to be known before the tensor comes.
    const scale = (await openTensorFile(testSource('', bytes))).tensors.get('x.scale_weight');
    const once = [...source.reads].filter((_, i) => i < (scale?.start ?? 0));
    expect(new Set(once)).toEqual(new Set([1]));
  });

  test('a crash in the midst of any write costs one unit at most', { tags: ['full'] }, async () => {
    const expected = await undisturbed();
    const { headerBytes } = await openTensorFile(testSource('', bytes));
    for (let step = 0; step < 24; step++) {
      const failing = failingFolder(diskStore(root), 37 + step * 419, () => new Error('crash'));
      const restarts: string[] = [];
      const crashed = await install({ folder: failing }).then(
        () => false,
        (error) => {
          expect(error.message).toBe('crash');
          return true;
        },
      );
      const before = (await installProgress(diskStore(root)))?.bytesDone ?? 0;
      const source = testSource('model.safetensors', bytes, { chunk: 1 });
      await install({ source, restarts });
      // What the journal counts is not streamed again, and everything after it is.
      if (crashed && before > 0) expect(source.reads.indexOf(1, headerBytes)).toBe(before);
      expect(restarts.filter((reason) => !reason.includes('damaged'))).toEqual([]);
      expect(await contents()).toEqual(expected);
      await diskStore(root).clear();
    }
  });

  test('a body that ends too early is no end', async () => {
    const expected = await undisturbed();
    const source = testSource('model.safetensors', bytes, { endsAt: 6000 });
    await expect(install({ source })).rejects.toMatchObject({ code: 'MODEL_FILE_TRUNCATED' });
    expect(await readStoredComponent(diskStore(root))).toBeNull();
    await install();
    expect(await contents()).toEqual(expected);
  });
});

describe('what does not fit', () => {
  test('another file at the source: it starts over and says so', async () => {
    await stopped();
    const other = safetensorsBytes({ ...tensors, norm: f32([3], [9, 8, 7]) });
    const restarts: string[] = [];
    await install({
      source: testSource('model.safetensors', other, { identity: 'second' }),
      restarts,
    });
    expect(restarts).toEqual(['model.safetensors was changed at its source.']);
    const checkpoint = await openStoredComponent(diskStore(root));
    expect(await checkpoint.read('norm')).toEqual(Float32Array.of(9, 8, 7));
  });

  test('a file that changes in the middle leaves nothing', async () => {
    const source = testSource('model.safetensors', bytes, { changesAt: 6000 });
    await expect(install({ source })).rejects.toMatchObject({ name: 'SourceChanged' });
    expect(await readdir(root).catch(() => [])).toEqual([]);
  });

  test('another SHA-256 than announced leaves nothing', async () => {
    const source = testSource('model.safetensors', bytes, { sha256: 'ab'.repeat(32) });
    await expect(install({ source })).rejects.toMatchObject({ code: 'DOWNLOAD_CORRUPT' });
    expect(await readdir(root).catch(() => [])).toEqual([]);
  });

  test('a pack that lost its bytes', async () => {
    await stopped();
    await truncate(path.join(root, 'a.bin'), 10);
    const restarts: string[] = [];
    await install({ restarts });
    expect(restarts).toEqual(['a.bin is not as it was written.']);
    await verifyComponent(diskStore(root));
  });

  test('a tensor that is missing or has another shape', async () => {
    const without = safetensorsBytes({ linear: tensors.linear });
    const small = safetensorsBytes({ ...tensors, norm: f32([2]) });
    const [first, second] = [testSource('m', without), testSource('m', small)];
    await expect(install({ source: first })).rejects.toMatchObject({ code: 'TENSOR_MISSING' });
    await expect(install({ source: second })).rejects.toMatchObject({ code: 'TENSOR_SHAPE' });
  });

  test('any garbage in place of the journal: it starts over', { tags: ['full'] }, async () => {
    const expected = await undisturbed();
    await stopped();
    const journal = await readFile(path.join(root, 'journal'));
    const random = numbers(4000, 77);
    for (let i = 0; i < 30; i++) {
      const damaged = Buffer.from(
        journal.subarray(0, Math.floor(Math.abs(random[i] ?? 0) * journal.length)),
      );
      for (let k = 0; k < i % 5 && damaged.length > 0; k++) {
        const at = Math.floor(Math.abs(random[100 + i * 5 + k] ?? 0) * damaged.length);
        damaged[at] = Math.floor(Math.abs(random[1000 + i * 5 + k] ?? 0) * 256);
      }
      await writeFile(path.join(root, 'journal'), damaged);
      await install();
      expect(await contents()).toEqual(expected);
      await rm(path.join(root, 'manifest.json'));
    }
  });
});

describe('what was installed', () => {
  test('is found damaged, byte by byte', async () => {
    await install();
    const file = path.join(root, 'b.bin');
    const whole = await readFile(file);
    for (const at of [0, 100, 600, whole.length - 1]) {
      const damaged = Buffer.from(whole);
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      await writeFile(file, damaged);
      await expect(verifyComponent(diskStore(root))).rejects.toMatchObject({
        code: 'MODEL_FILE_INVALID',
      });
    }
    await truncate(file, whole.length - 1);
    const folder = diskStore(root);
    await expect(openStoredComponent(folder)).rejects.toMatchObject({
      code: 'MODEL_FILE_TRUNCATED',
    });
    await rm(file);
    await expect(openStoredComponent(folder)).rejects.toMatchObject({ code: 'MODEL_FILE_MISSING' });
  });

  test('is nothing while its manifest is cut', async () => {
    await install();
    const text = await readFile(path.join(root, 'manifest.json'), 'utf8');
    await writeFile(path.join(root, 'manifest.json'), text.slice(0, -1));
    const opening = openStoredComponent(diskStore(root));
    await expect(opening).rejects.toMatchObject({ code: 'MODEL_NOT_INSTALLED' });
    await install();
    await verifyComponent(diskStore(root));
  });
});

/** Leaves an installation behind that stopped half-way. */
async function stopped(): Promise<void> {
  const controller = new AbortController();
  const onUnit = (unit: number) => unit === 9 && controller.abort();
  await expect(install({ signal: controller.signal, onUnit })).rejects.toThrow();
}
