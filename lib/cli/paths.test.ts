import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { temporaryFolder } from '../contract/testing/folder';
import { checkWritable, fromUser, makeFolders } from './paths';

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
