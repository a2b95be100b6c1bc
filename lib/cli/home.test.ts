import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../contract/testing/folder';
import { addedIds, noteAdded } from './home';

const home = temporaryFolder();

it('has no ids before anything was added', async () => {
  expect(await addedIds(home())).toEqual([]);
  await noteAdded(home(), {
    hub: '',
    models: [],
    tools: [],
    loras: [],
    hasHubToken: false,
    loraDownloads: [],
    storage: { usage: 0, quota: 0, persistent: true },
  });
  expect(await addedIds(home())).toEqual([]);
});

it.each(['{', '{}', '[1, "mine"]'])('reads what it can of %j', async (text) => {
  await writeFile(path.join(home(), 'added-models.json'), text);
  expect(await addedIds(home())).toEqual(text.includes('mine') ? ['mine'] : []);
});
