import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { addedIds, noteAdded } from './home';

let home = '';
beforeEach(async () => {
  home = await mkdtemp(path.join(tmpdir(), 'kinora-home-'));
});
afterEach(() => rm(home, { recursive: true }));

it('remembers nothing before anything was added', async () => {
  expect(await addedIds(home)).toEqual([]);
  await noteAdded(home, {
    hub: '',
    models: [],
    tools: [],
    loras: [],
    loraDownloads: [],
    storage: { usage: 0, quota: 0, persistent: true },
  });
  expect(await addedIds(home)).toEqual([]);
});

it.each(['{', '{}', '[1, "mine"]'])('reads what it can of %j', async (text) => {
  await writeFile(path.join(home, 'added-models.json'), text);
  expect(await addedIds(home)).toEqual(text.includes('mine') ? ['mine'] : []);
});
