/** @module-tag full */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../paths';
import { isCurrent } from './made.js';
import { makePages } from './page-bundle';

let work: string;
beforeAll(async () => {
  work = await mkdtemp(path.join(root, '.commands.part-'));
});
afterAll(() => rm(work, { recursive: true, force: true }));

test('commands and pages that were made are used until one of their sources is another', async () => {
  const folder = path.join(work, 'made');
  expect(await isCurrent(folder, root)).toBe(false);
  await makePages(folder);
  expect(await isCurrent(folder, root)).toBe(true);
  for (const file of [
    'headless.html',
    'engine-worker.js',
    'library-worker.js',
    'cli/generate.js',
  ]) {
    expect((await readFile(path.join(folder, file))).length).toBeGreaterThan(0);
  }
  const helpOf = async (...program: string[]) =>
    (await promisify(execFile)(process.execPath, [...program, '--help'], { cwd: root })).stdout;
  const sourceHelp = await helpOf('--import', 'tsx/esm', 'lib/cli/models.ts');
  expect(await helpOf(path.join(folder, 'cli', 'models.js'))).toBe(sourceHelp);

  const list = JSON.parse(await readFile(path.join(folder, 'sources.json'), 'utf8'));
  const sources = list.map(([file]: [string]) => file);
  const used = [
    'lib/engine/engine.ts',
    'workers/engine.ts',
    'app/headless/main.ts',
    'lib/cli/generate.ts',
  ];
  expect(sources).toEqual(expect.arrayContaining([...used, 'package-lock.json']));
  const checkout = path.join(work, 'checkout');
  for (const file of sources) {
    const copy = path.join(checkout, file);
    await mkdir(path.dirname(copy), { recursive: true });
    await copyFile(path.join(root, file), copy);
  }
  expect(await isCurrent(folder, checkout)).toBe(true);
  for (const file of used) {
    const before = await readFile(path.join(checkout, file));
    await writeFile(path.join(checkout, file), `${before} `);
    expect(await isCurrent(folder, checkout), file).toBe(false);
    await rm(path.join(checkout, file));
    expect(await isCurrent(folder, checkout), file).toBe(false);
    await writeFile(path.join(checkout, file), before);
  }
  expect(await isCurrent(folder, checkout)).toBe(true);
});
