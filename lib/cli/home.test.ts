import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { LibrarySnapshot, ModelEntry, StoredComponent } from '../contract';
import { temporaryFolder } from '../contract/testing/folder';
import { addedIds, notedSafetyChecker, noteLibrary } from './home';

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
