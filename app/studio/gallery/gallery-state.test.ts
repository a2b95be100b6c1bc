import { expect, test } from 'vitest';
import { parseParameters } from '../../../lib/contract/request';
import { newPrediction, resultOf } from '../../../lib/predictions/testing/prediction';
import {
  advanceGallery,
  filterPredictions,
  type GalleryEvent,
  initialGallery,
  noFilter,
} from './gallery-state';

const error = { code: 'CANCELLED', message: 'm', remedy: 'r' } as const;
const ended = { startedAt: 's', completedAt: 'c' };

const boat = newPrediction({
  id: 'boat',
  ...ended,
  status: 'completed',
  result: resultOf('boat'),
  favourite: true,
  parameters: parseParameters({ prompt: 'A paper Boat drifts', seed: 1 }),
});
const tall = newPrediction({
  id: 'tall',
  ...ended,
  status: 'completed',
  result: resultOf('tall'),
  model: 'other',
  parameters: parseParameters({ prompt: 'a boat drifts in fog', seed: 2, size: '720*1280' }),
});
const halted = newPrediction({
  id: 'halted',
  startedAt: 's',
  interruptedAt: 'i',
  status: 'interrupted',
  error,
  checkpoint: { clip: 0, clips: 1, step: 2, steps: 6 },
});
const broken = newPrediction({ id: 'broken', status: 'failed', completedAt: 'c', error });
const all = [boat, tall, halted, broken];

test.each([
  ['failed ones are folded away', {}, ['boat', 'tall', 'halted']],
  ['failed ones', { status: 'failed' }, ['broken']],
  ['interrupted ones', { status: 'interrupted' }, ['halted']],
  ['every word, in any case and order', { search: ' DRIFTS  boat' }, ['boat', 'tall']],
  ['size', { size: '720*1280' }, ['tall']],
  ['model', { model: 'other' }, ['tall']],
  ['favourites', { favourites: true }, ['boat']],
  ['all together', { search: 'boat', status: 'completed', model: 'tiny' }, ['boat']],
] as const)('shows %s', (_, filter, ids) => {
  expect(filterPredictions(all, { ...noFilter, ...filter }).map(({ id }) => id)).toEqual(ids);
});

function selectedAfter(...events: readonly GalleryEvent[]): string[] {
  return [...events.reduce(advanceGallery, initialGallery).selected].sort();
}

test('a selection is toggled, extended to a range either way, and ended by another filter', () => {
  const shown = ['a', 'b', 'c', 'd', 'e'];
  const toggle = (id: string): GalleryEvent => ({ type: 'toggled', id });
  const extend = (id: string): GalleryEvent => ({ type: 'extended', id, shown });
  expect(selectedAfter(toggle('a'), toggle('b'), toggle('a'))).toEqual(['b']);
  expect(selectedAfter(toggle('d'), extend('b'))).toEqual(['b', 'c', 'd']);
  expect(selectedAfter(toggle('b'), extend('c'), extend('e'))).toEqual(['b', 'c', 'd', 'e']);
  expect(selectedAfter(extend('c'))).toEqual(['c']);
  // The anchor was deleted in the meantime.
  expect(selectedAfter(toggle('gone'), extend('c'))).toEqual(['c', 'gone']);
  expect(selectedAfter(toggle('a'), { type: 'filtered', filter: { search: 'x' } })).toEqual([]);
});
