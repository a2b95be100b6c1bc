import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { isBuilt, sourceHash, writeStamp } from './build';

const folder = temporaryFolder();
beforeEach(async () => {
  await put('package-lock.json', '{}');
  await put('app/page.tsx', 'page');
  await put('.next/BUILD_ID', 'first');
});

async function put(name: string, text: string): Promise<void> {
  const file = path.join(folder(), name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
}

it('an unchanged tree counts as built, until something of it changes', async () => {
  const hash = await sourceHash(folder());
  expect(isBuilt(hash, folder())).toBe(false);
  writeStamp(hash, folder());
  expect(isBuilt(await sourceHash(folder()), folder())).toBe(true);

  await put('app/page.tsx', 'page, changed');
  expect(isBuilt(await sourceHash(folder()), folder())).toBe(false);
  await put('app/page.tsx', 'page');
  expect(isBuilt(await sourceHash(folder()), folder())).toBe(true);
  await put('lib/deep/new.ts', 'a new file');
  expect(isBuilt(await sourceHash(folder()), folder())).toBe(false);
});

it('a moved file is another tree, even with the same bytes', async () => {
  const before = await sourceHash(folder());
  await rm(path.join(folder(), 'app/page.tsx'));
  await put('app/other.tsx', 'page');
  expect(await sourceHash(folder())).not.toBe(before);
});

it('tests and prepared files are no part of it', async () => {
  const before = await sourceHash(folder());
  await put('app/page.test.tsx', 'a test');
  await put('lib/x.browser.test.ts', 'a test');
  await put('public/models/tiny/model_index.json', 'a copy');
  expect(await sourceHash(folder())).toBe(before);
});

it('a build by hand after the stamp does not pass for the stamped one', async () => {
  const hash = await sourceHash(folder());
  writeStamp(hash, folder());
  await put('.next/BUILD_ID', 'second');
  expect(isBuilt(hash, folder())).toBe(false);
  await rm(path.join(folder(), '.next/BUILD_ID'));
  expect(isBuilt(hash, folder())).toBe(false);
});
