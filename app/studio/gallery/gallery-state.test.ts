import { expect, test } from 'vitest';
import { parseParameters } from '../../../lib/contract';
import { newPrediction, resultOf } from '../../../lib/predictions/testing/prediction';
import {
  advanceGallery,
  countFilters,
  filterPredictions,
  type GalleryEvent,
  initialGallery,
  noFilter,
  type Sort,
  sortPredictions,
} from './gallery-state';

const error = { code: 'CANCELLED', message: 'm', remedy: 'r' } as const;
const ended = { completedAt: 'c' };

const boat = newPrediction({
  id: 'boat',
  ...ended,
  status: 'completed',
  result: resultOf('boat'),
  favourite: true,
  tags: ['Sea', 'for Ada'],
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
  ['words of prompt and tags', { search: 'ada paper' }, ['boat']],
  ['a seed, as a whole', { search: '2' }, ['tall']],
  ['a tag', { tag: 'Sea' }, ['boat']],
  ['all together', { search: 'boat', status: 'completed', model: 'tiny' }, ['boat']],
] as const)('shows %s', (_, filter, ids) => {
  expect(filterPredictions(all, { ...noFilter, ...filter }).map(({ id }) => id)).toEqual(ids);
});

test('shows those of a period', () => {
  const now = new Date(2026, 2, 31, 15).getTime();
  const at = (time: Date) => newPrediction({ ...tall, createdAt: time.toISOString() });
  const rows = [
    at(new Date(2026, 2, 31, 0)),
    at(new Date(2026, 2, 30, 23, 59)),
    at(new Date(2026, 2, 24, 16)),
    at(new Date(2026, 2, 2, 15)),
    at(new Date(2026, 1, 28, 15)),
  ];
  const count = (period: typeof noFilter.period) =>
    filterPredictions(rows, { ...noFilter, period }, now).length;
  expect([count('today'), count('week'), count('month'), count(null)]).toEqual([1, 3, 4, 5]);
});

test('the search is not one of the filters that are counted', () => {
  expect(countFilters({ ...noFilter, search: 'boat' })).toBe(0);
  expect(countFilters({ ...noFilter, tag: 'Sea', period: 'week', favourites: true })).toBe(3);
});

const joined = newPrediction({
  id: 'joined',
  ...ended,
  status: 'completed',
  parameters: boat.parameters,
  result: { ...resultOf('joined'), frames: 241 },
  parts: [{ id: 'boat', prompt: 'a boat', seed: 4, from: 0, to: 120 }],
});

test.each<[Sort, string[]]>([
  ['newest', ['tall', 'joined', 'boat']],
  ['oldest', ['boat', 'joined', 'tall']],
  ['longest', ['joined', 'tall', 'boat']],
  ['prompt', ['tall', 'joined', 'boat']],
])('sorts by %s', (sort, ids) => {
  expect(sortPredictions([tall, joined, boat], sort).map(({ id }) => id)).toEqual(ids);
});

test('another order keeps the selection, and another filter the order', () => {
  const sorted = advanceGallery(
    { ...initialGallery, selected: new Set(['boat']) },
    { type: 'sorted', sort: 'longest' },
  );
  expect(sorted).toMatchObject({ sort: 'longest', selected: new Set(['boat']) });
  const filtered = advanceGallery(sorted, { type: 'filtered', filter: { tag: 'Sea' } });
  expect(filtered).toMatchObject({ sort: 'longest', filter: { tag: 'Sea' }, selected: new Set() });
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
