/**
 * What people have stored opens after an update. `testing/earlier` was written by the code of commit
 * af20ba4: the component of `testing/component.ts`, complete and interrupted, and a configuration.
 */
import { createHash } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { locateTensors } from '../formats/located';
import { openTensorFile } from '../formats/tensor-file';
import { modelFolderOf } from './folder';
import { installComponent, installProgress } from './install';
import { keepStart } from './kept-start';
import { openStoredComponent } from './stored';
import { bytes, recipe } from './testing/component';
import { diskStore } from './testing/disk';
import { testSource } from './testing/source';
import { verifyComponent } from './verify';

const earlier = fileURLToPath(new URL('testing/earlier', import.meta.url));

/** SHA-256 of the f32 elements that commit af20ba4 read. */
const elements = {
  norm: '89e4869f4e44c5ae',
  linear: '2cff56e5f4b89411',
  scaled: '7a5aa742b33f86db',
  table: '29de3f366577e54c',
  'kernel#': 'e3d58683ff438f8f',
  'x.weight': '3afc4fbc010479ae',
};

let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'kinora-earlier-'));
  await cp(earlier, root, { recursive: true });
});
afterEach(() => rm(root, { recursive: true }));

async function install(name: string) {
  const folder = diskStore(path.join(root, name));
  const source = testSource('model.safetensors', bytes, { identity: 'before' });
  const kept = await keepStart(folder, 0, source);
  const restarts: string[] = [];
  await installComponent({
    folder,
    component: 'transformer',
    precision: 'int8',
    recipe,
    sources: [kept],
    tensors: locateTensors([await openTensorFile(kept)]),
    signal: new AbortController().signal,
    onRestart: (reason) => restarts.push(reason),
    limit: 700,
    unitsPerCommit: 1,
    files: [{ name: 'tokenizer.json', bytes: new TextEncoder().encode('{"kept":true}') }],
  });
  return { restarts, bytesRead: source.reads.reduce((sum, count) => sum + count, 0) };
}

test('a component opens with the same elements, and every byte is as it was', async () => {
  const folder = diskStore(path.join(root, 'complete'));
  const checkpoint = await openStoredComponent(folder);
  const found = new Map<string, string>();
  for (const name of checkpoint.names()) {
    const hash = createHash('sha256').update(new Uint8Array((await checkpoint.read(name)).buffer));
    found.set(name, hash.digest('hex').slice(0, 16));
  }
  expect(Object.fromEntries(found)).toEqual(elements);
  expect(checkpoint.stored).toMatchObject({ precision: 'int8', sourceType: 'F32' });
  await verifyComponent(folder);
});

test('a component that is complete is not fetched again', async () => {
  const { restarts, bytesRead } = await install('complete');
  expect(restarts).toEqual([]);
  const { headerBytes } = await openTensorFile(testSource('', bytes));
  expect(bytesRead).toBeLessThanOrEqual(headerBytes + 50); // its beginning is looked at twice
});

test('an interrupted installation goes on where it stopped, to the same packs', async () => {
  const folder = diskStore(path.join(root, 'interrupted'));
  const before = await installProgress(folder);
  expect(before?.bytesDone).toBeGreaterThan(4000);
  const { restarts, bytesRead } = await install('interrupted');
  expect(restarts).toEqual([]);
  // The rest, and the scale of the fp8 weight, which is read before everything else.
  expect(bytesRead).toBe(bytes.length - (before?.bytesDone ?? 0) + 4);
  expect((await readdir(path.join(root, 'interrupted'))).sort()).toEqual(
    (await readdir(path.join(root, 'complete'))).sort(),
  );
  for (const pack of ['a.bin', 'b.bin', 'tokenizer.json']) {
    const read = (name: string) => readFile(path.join(root, name, pack));
    expect((await read('interrupted')).equals(await read('complete'))).toBe(true);
  }
});

test('files of a configuration', async () => {
  const folder = diskStore(path.join(root, 'configuration'));
  expect(await modelFolderOf(folder).json('vae/config.json')).toEqual({ b: 2 });
  await verifyComponent(folder);
});
