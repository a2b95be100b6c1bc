import { expect, test } from 'vitest';
import { entry } from '../models/testing/entries';
import { pickModel } from './use-models';

const { manifest } = entry();
const tiny = entry({ manifest: { ...manifest, id: 'tiny' }, origin: 'bundled', ready: true });
const real = entry();

test('the selected model is used, ready or not', () => {
  expect(pickModel([tiny, real], 'wan')).toBe(real);
  expect(pickModel([tiny, real], 'tiny')).toBe(tiny);
});

test('without a selection, a ready model is used, preferably a downloaded one', () => {
  const downloaded = { ...real, ready: true };
  expect(pickModel([tiny, real], '')).toBe(tiny);
  expect(pickModel([tiny, downloaded], '')).toBe(downloaded);
  expect(pickModel([tiny, downloaded], 'of another server')).toBe(downloaded);
  expect(pickModel([real], '')).toBe(real);
  expect(pickModel([], '')).toBeUndefined();
});
