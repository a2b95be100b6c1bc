import { spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from './';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kinora-database-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it('names the setting whose PostgreSQL does not answer, and no password', async () => {
  const DATABASE_URL = 'postgresql://kinora:hush@127.0.0.1:9/none';
  const thrown: unknown = await openDatabase({ KINORA_DATA: folder, DATABASE_URL }).catch(
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(Error);
  expect(String(thrown)).toMatch(/DATABASE_URL names cannot be used \(ECONNREFUSED\)/);
  expect(String(thrown)).not.toContain('hush');
});

it('names the setting whose folder is a file', async () => {
  const KINORA_DATA = path.join(folder, 'file');
  await writeFile(KINORA_DATA, '');
  for (const place of [KINORA_DATA, path.join(KINORA_DATA, 'below')]) {
    const opened = openDatabase({ KINORA_DATA: place, DATABASE_URL: undefined });
    await expect(opened).rejects.toThrow(`KINORA_DATA must be a folder, and ${place} is none`);
  }
});

/** Opens the database of each folder that it is given, and prints the errors. */
const program = `
  import { openDatabase } from './relay/store/index.ts';
  for (const KINORA_DATA of process.argv.slice(1)) {
    await openDatabase({ KINORA_DATA }).then(
      () => console.log('opened'),
      (error) => console.log(error.message),
    );
  }
`;

it.skipIf(process.platform === 'win32')(
  'names a data folder, or a database in one, that is another user’s',
  { tags: ['full'], timeout: 60_000 },
  async () => {
    const [closed, inside] = ['closed', 'inside'].map((name) => path.join(folder, name));
    if (closed === undefined || inside === undefined) throw new Error('There are two.');
    await mkdir(closed);
    await mkdir(path.join(inside, 'db'), { recursive: true });
    await Promise.all([chmod(folder, 0o755), chmod(inside, 0o777)]);
    await Promise.all([chmod(closed, 0o555), chmod(path.join(inside, 'db'), 0o555)]);
    const child = spawn(
      process.execPath,
      ['--import', 'tsx/esm', '--input-type=module', '-e', program, '--', closed, inside],
      {
        cwd: fileURLToPath(new URL('../..', import.meta.url)),
        stdio: ['ignore', 'pipe', 'inherit'],
        // The super-user may write everywhere.
        ...(process.getuid?.() === 0 && { uid: 65_534 }),
      },
    );
    const lines = (await text(child.stdout)).trim().split('\n');
    expect(lines).toEqual(
      [closed, inside].map(
        (place) =>
          `The data folder ${place} cannot be written (EACCES). Give it to the user of the server, or set KINORA_DATA to another folder.`,
      ),
    );
  },
);
