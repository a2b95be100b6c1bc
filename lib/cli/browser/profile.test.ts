import { spawnSync } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { lockProfile } from './profile';

const folder = temporaryFolder();
let home = '';
beforeEach(() => {
  home = path.join(folder(), 'a', 'home');
});

it('is taken and given back', async () => {
  const release = await lockProfile(home);
  expect(await readFile(path.join(home, 'lock'), 'utf8')).toBe(String(process.pid));
  await release();
  expect(await readdir(home)).toEqual([]);
});

it('is refused while another living process has it', async () => {
  const release = await lockProfile(home);
  await writeFile(path.join(home, 'lock'), String(process.ppid));
  await expect(lockProfile(home)).rejects.toMatchObject({
    code: 'BUSY',
    message: expect.stringContaining(`process ${process.ppid}.`),
  });
  await release();
});

it.each(['', 'nonsense'])('is taken over from a lock that says %j', async (text) => {
  await (await lockProfile(home))();
  await writeFile(path.join(home, 'lock'), text);
  await (await lockProfile(home))();
});

it('is taken over from a process that has ended', async () => {
  const { pid } = spawnSync(process.execPath, ['-e', '']);
  await (await lockProfile(home))();
  await writeFile(path.join(home, 'lock'), String(pid));
  await (await lockProfile(home))();
});

it('says so where no folder can be', async () => {
  await writeFile(path.join(folder(), 'a'), 'a file');
  await expect(lockProfile(home)).rejects.toMatchObject({ code: 'FILE_UNWRITABLE' });
});
