import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { installFiles } from './files';
import { modelFolderOf } from './folder';
import { readStoredComponent } from './stored';
import { diskStore } from './testing/disk';
import { type TestSource, type TestSourceOptions, testSource } from './testing/source';
import { deleteComponent, verifyComponent } from './verify';

const temporary = temporaryFolder();
let root: string;
beforeEach(() => {
  root = temporary();
});

function file(name: string, text: string, options?: TestSourceOptions) {
  return { path: name, source: testSource(name, new TextEncoder().encode(text), options) };
}

function install(files: readonly { path: string; source: TestSource }[]) {
  const { signal } = new AbortController();
  return installFiles({ folder: diskStore(root), component: 'configuration', files, signal });
}

test('files are kept under their paths and found again', async () => {
  const files = [file('model_index.json', '{"a":1}'), file('vae/config.json', '{"b":2}')];
  const stored = await install(files);
  expect(stored).toMatchObject({ component: 'configuration', bytesStored: 14 });
  const folder = modelFolderOf(diskStore(root));
  expect(await folder.json('vae/config.json')).toEqual({ b: 2 });
  expect(await folder.exists('vae/other.json')).toBe(false);
  await expect(folder.text('vae/other.json')).rejects.toMatchObject({ code: 'MODEL_FILE_MISSING' });
  await verifyComponent(diskStore(root));
  await install(files); // Nothing is left to do.
  expect(Math.max(...files.flatMap(({ source }) => [...source.reads]))).toBe(1);

  await writeFile(path.join(root, 'vae/config.json'), '{"b":3}');
  await expect(verifyComponent(diskStore(root))).rejects.toMatchObject({
    code: 'MODEL_FILE_INVALID',
  });
  await deleteComponent(diskStore(root));
  expect(await readStoredComponent(diskStore(root))).toBeNull();
});

test('a file that fails does not cost the ones before it', async () => {
  const good = file('a.json', '[1]');
  await expect(install([good, file('b.json', '[2]', { endsAt: 1 })])).rejects.toMatchObject({
    code: 'DOWNLOAD_CORRUPT',
  });
  const wrong = file('b.json', '[2]', { sha256: '00'.repeat(32) });
  await expect(install([good, wrong])).rejects.toMatchObject({ code: 'DOWNLOAD_CORRUPT' });
  expect(await readStoredComponent(diskStore(root))).toBeNull();
  await install([good, file('b.json', '[2]')]);
  expect([...good.source.reads]).toEqual([1, 1, 1]);
  expect(await readFile(path.join(root, 'b.json'), 'utf8')).toBe('[2]');
});

test('a changed file replaces the old one; the others stay', async () => {
  const kept = file('a.json', '[1]');
  await install([kept, file('b.json', '[2]')]);
  await install([kept, file('b.json', '[33]', { identity: 'second' })]);
  expect(await readFile(path.join(root, 'b.json'), 'utf8')).toBe('[33]');
});

test('a file without a SHA-256 is compared with the hash that git gives it', async () => {
  const gitSha1 = createHash('sha1').update('blob 3\0[1]').digest('hex');
  const { path: name, source } = file('a.json', '[1]', { sha256: null });
  await install([{ path: name, source: { ...source, gitSha1 } }]);
  await diskStore(root).clear();
  const other = file('a.json', '[2]', { sha256: null });
  await expect(
    install([{ path: name, source: { ...other.source, gitSha1 } }]),
  ).rejects.toMatchObject({ code: 'DOWNLOAD_CORRUPT', message: expect.stringContaining(gitSha1) });
});

test('no file takes the place of one of the store', async () => {
  const own = ['manifest.json', 'Manifest.json', 'manifest.json.part', 'a.json.fetched'];
  for (const name of own) {
    await expect(install([file(name, '{}')])).rejects.toMatchObject({ code: 'MODEL_FILE_INVALID' });
  }
  await install([file('scheduler/manifest.json', '{}')]);
});

test('a path never leads out of the folder', async () => {
  await expect(install([file('../a.json', '[1]')])).rejects.toMatchObject({
    code: 'MODEL_FILE_INVALID',
  });
});
