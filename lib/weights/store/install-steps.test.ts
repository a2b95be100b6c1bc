import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { KinoraError } from '../../contract';
import { temporaryFolder } from '../../contract/testing/folder';
import { locateTensors } from '../formats/located';
import { openTensorFile } from '../formats/tensor-file';
import { f32, safetensorsBytes } from '../testing/files';
import { installComponent, installProgress } from './install';
import type { InstallOptions, InstallProgress } from './installation';
import { keepStart } from './kept-start';
import type { ComponentRecipe } from './layout';
import { openStoredComponent } from './stored';
import { diskStore } from './testing/disk';
import { type TestSource, testSource } from './testing/source';
import { verifyComponent } from './verify';

const temporary = temporaryFolder();
let root: string;
beforeEach(() => {
  root = temporary();
});

const [rows, width] = [16, 250];
const names = ['a', 'b', 'c'];
/** A shard with one tensor, [rows, width], of this value. */
const shard = (name: string, value: number) =>
  safetensorsBytes({
    [name]: f32(
      [rows, width],
      Array.from({ length: rows * width }, (_, i) => value + i),
    ),
  });
const recipe: ComponentRecipe = {
  component: 'transformer',
  tensors: names.map((name) => ({
    name,
    source: name,
    shape: [rows, width],
    form: 'f32',
    pack: 'all.bin',
  })),
};
const shards = () => names.map((name, i) => testSource(name, shard(name, i)));

async function install(sources: readonly TestSource[], more: Partial<InstallOptions> = {}) {
  const folder = diskStore(root);
  const kept = await Promise.all(sources.map((source, i) => keepStart(folder, i, source)));
  return installComponent({
    folder,
    component: 'transformer',
    precision: 'int8',
    recipe,
    sources: kept,
    tensors: locateTensors(await Promise.all(kept.map((source) => openTensorFile(source)))),
    signal: new AbortController().signal,
    limit: 1000,
    unitsPerCommit: 1,
    ...more,
  });
}

async function expectValues(...values: number[]) {
  await verifyComponent(diskStore(root));
  const checkpoint = await openStoredComponent(diskStore(root));
  for (const [i, name] of names.entries()) {
    expect((await checkpoint.read(name))[0]).toBe(values[i]);
  }
  expect((await readdir(root)).sort()).toEqual(['all.bin', 'manifest.json']);
}

describe('of several files', () => {
  test('one that changed while the download stood still makes it start over, and says so', async () => {
    const [a, b, c] = shards() as [TestSource, TestSource, TestSource];
    const { signal, onProgress } = stopAt(a.size + 5000);
    await expect(install([a, b, c], { signal, onProgress })).rejects.toThrow();
    const restarts: string[] = [];
    const other = testSource('c', shard('c', 9), { identity: 'second' });
    await install([a, b, other], { onRestart: (reason) => restarts.push(reason) });
    expect(restarts).toEqual(['c was changed at its source.']);
    await expectValues(0, 1, 9);
  });
});

describe('what is converted is safe', () => {
  test('after so many units, or after a second, whichever is sooner', async () => {
    const progress: number[] = [];
    const onProgress = ({ bytesDone }: InstallProgress) => void progress.push(bytesDone);
    await install(shards(), { onProgress, unitsPerCommit: 4, now: () => 0 });
    const quick = progress.splice(0).length;
    await diskStore(root).clear();
    let ms = 0;
    await install(shards(), { onProgress, unitsPerCommit: 4, now: () => (ms += 600) });
    expect(progress.length).toBeGreaterThan(quick + 3);
  });

  test('when it is paused, or the connection is lost: at most one unit is fetched again', async () => {
    const sources = shards();
    const never = { unitsPerCommit: 1000, now: () => 0 };
    const lost = new KinoraError('HUB_UNREACHABLE');
    const [a] = sources as [TestSource];
    const failing: TestSource = {
      ...a,
      async *stream(start, end, signal) {
        yield* a.stream(start, Math.min(end, 6000), signal);
        throw lost;
      },
    };
    await expect(install([failing, ...sources.slice(1)], never)).rejects.toBe(lost);
    const done = (await installProgress(diskStore(root)))?.bytesDone ?? 0;
    expect(done).toBeGreaterThanOrEqual(5000);
    await install(sources);
    expect(Math.max(...a.reads.subarray(200, done))).toBe(1);
    await expectValues(0, 1, 2);
    expect((await readFile(path.join(root, 'all.bin'))).length).toBeGreaterThan(
      3 * rows * width * 4 - 1,
    );
  });
});

/** Stops once so many bytes are safe. */
function stopAt(bytes: number) {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    onProgress: ({ bytesDone }: InstallProgress) => void (bytesDone >= bytes && controller.abort()),
  };
}
