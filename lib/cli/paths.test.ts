import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, test, vi } from 'vitest';
import type { LibrarySnapshot, ModelEntry, StoredComponent } from '../contract';
import { temporaryFolder } from '../contract/testing/folder';
import {
  addedIds,
  checkWritable,
  filesIn,
  fromUser,
  makeFolders,
  notedSafetyChecker,
  noteLibrary,
} from './paths';

const folder = temporaryFolder();

test('a place that can be written is fine, and looking leaves nothing behind', async () => {
  await checkWritable(path.join(folder(), 'a', 'b', 'v.mp4'));
  expect(await readdir(folder())).toEqual([]);
  expect(await makeFolders(path.join(folder(), 'a', 'b', 'v.mp4'))).toHaveLength(2);
  expect(await readdir(folder(), { recursive: true })).toEqual(['a', path.join('a', 'b')]);
});

test('a folder, and a place below a file, are FILE_UNWRITABLE', async () => {
  await writeFile(path.join(folder(), 'file'), '');
  for (const target of [folder(), path.join(folder(), 'file', 'v.mp4')]) {
    await expect(checkWritable(target)).rejects.toMatchObject({ code: 'FILE_UNWRITABLE' });
  }
  expect(await readdir(folder())).toEqual(['file']);
});

test.runIf(process.platform === 'linux')(
  'a file system that makes no folders is refused at once',
  () =>
    expect(checkWritable('/proc/none/v.mp4')).rejects.toMatchObject({ code: 'FILE_UNWRITABLE' }),
);

test('relative paths start in the working directory of the user', () => {
  vi.stubEnv('INIT_CWD', folder());
  expect(fromUser('v.mp4')).toBe(path.join(folder(), 'v.mp4'));
  vi.unstubAllEnvs();
});

test('a folder of symbolic links, as the cache of the hub has them, gives the files behind them', async () => {
  const [blobs, snapshot] = ['blobs', 'snapshots/abc'].map((name) => path.join(folder(), name));
  if (!blobs || !snapshot) throw new Error('there are two');
  await mkdir(blobs);
  await mkdir(path.join(snapshot, 'vae'), { recursive: true });
  await writeFile(path.join(blobs, '01'), 'x');
  await writeFile(path.join(snapshot, 'b.json'), '{}');
  await symlink('../../../blobs/01', path.join(snapshot, 'vae', 'a.safetensors'));
  await symlink('..', path.join(snapshot, 'vae', 'loop'));
  expect(await filesIn(snapshot)).toEqual([
    { at: path.join(snapshot, 'b.json'), inside: 'abc/b.json' },
    { at: path.join(blobs, '01'), inside: 'abc/vae/a.safetensors' },
  ]);
  const file = path.join(snapshot, 'vae', 'a.safetensors');
  expect(await filesIn(file)).toEqual([{ at: path.join(blobs, '01'), inside: 'a.safetensors' }]);
  await symlink('gone', path.join(snapshot, 'c'));
  await expect(filesIn(snapshot)).rejects.toMatchObject({ code: 'FILE_UNREADABLE' });
});

const home = temporaryFolder();

/** What a command sees of a library with these models. */
function library(...models: readonly Partial<ModelEntry>[]): LibrarySnapshot {
  return { models } as LibrarySnapshot;
}

it('knows of no models and no checker before anything was added', async () => {
  expect(await addedIds(home())).toEqual([]);
  await noteLibrary(home(), library());
  expect(await addedIds(home())).toEqual([]);
  expect(await notedSafetyChecker(home())).toBe(false);
});

it('notes whether there is a safety checker', async () => {
  const stored = [{ component: 'safety_checker' } as StoredComponent];
  await noteLibrary(home(), library({ origin: 'bundled', stored }));
  expect(await notedSafetyChecker(home())).toBe(true);
  await noteLibrary(home(), library({ origin: 'bundled', stored: [] }));
  expect(await notedSafetyChecker(home())).toBe(false);
});

it.each(['{', '{}', '[1, "mine"]'])('reads what it can of %j', async (text) => {
  await writeFile(path.join(home(), 'added-models.json'), text);
  expect(await addedIds(home())).toEqual(text.includes('mine') ? ['mine'] : []);
});
