/** @module-tag full */
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../paths';
import { isCurrent, makePages } from './page-bundle';

let work: string;
beforeAll(async () => {
  work = await mkdtemp(path.join(tmpdir(), 'kinora-made-'));
});
afterAll(() => rm(work, { recursive: true, force: true }));

test('pages that were made are used until one of their sources is another', async () => {
  const folder = path.join(work, 'made');
  expect(await isCurrent(folder)).toBe(false);
  await makePages(folder);
  expect(await isCurrent(folder)).toBe(true);
  for (const file of ['headless.html', 'headless.js', 'engine-worker.js', 'library-worker.js']) {
    expect((await readFile(path.join(folder, file))).length).toBeGreaterThan(0);
  }

  const list = JSON.parse(await readFile(path.join(folder, 'sources.json'), 'utf8'));
  const sources = list.map(([file]: [string]) => file);
  const used = ['lib/engine/engine.ts', 'workers/engine.ts', 'app/headless/main.ts'];
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
