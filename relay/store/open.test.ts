import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
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
