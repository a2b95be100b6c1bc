import { expect, test } from 'vitest';
import { parseManifest } from '../contract';
import { testManifest } from '../contract/testing/manifest';
import { modelFamilies } from '../models';
import { twoExpertsFamily } from '../models/testing/two-experts/family';
import { twoExpertsManifest } from '../models/testing/two-experts/files';
import { openModelStore } from '../weights/store';
import { installedAbilities } from './tools';

const families = { ...modelFamilies, 'two-experts': twoExpertsFamily };

test.each([
  ['wan22', ['lora_5b']],
  ['wan14b', ['lora_14b']],
  // It takes LoRAs, which the API does not tell from others.
  ['two-experts', []],
  ['a family of another version', []],
])('a tab with a model of the family %s takes the jobs with LoRAs of %j', async (family, loras) => {
  const id = 'added';
  const { sources, components } = twoExpertsManifest;
  const manifest = parseManifest(testManifest({ id, name: id, family, sources, components }));
  const folder = (await openModelStore()).folder(id);
  await folder.writeText('model.json', JSON.stringify(manifest));
  const { knows } = await installedAbilities(families, id)();
  expect(knows.filter((need) => need.startsWith('lora'))).toEqual(loras);
  expect(knows).toContain('loop');
});
