import { expect, test } from 'vitest';
import { maxSeed } from '../../../lib/contract';
import { gridOf, seedVariations } from './variations';

const none = { num_inference_steps: '', guidance_scale: '', flow_shift: '' };

test('four seeds: the next ones after a chosen seed, else random ones', () => {
  expect(seedVariations(maxSeed - 1, 4).map(({ seed }) => seed)).toEqual([
    ...[maxSeed - 1, maxSeed, 0, 1],
  ]);
  const random = seedVariations(-1, 4).map(({ seed = -1 }) => seed);
  expect(new Set(random).size).toBe(4);
  expect(Math.min(...random)).toBeGreaterThanOrEqual(0);
});

test('a grid has every combination once, all with the same seed', () => {
  const { changes, errors } = gridOf(
    { ...none, num_inference_steps: '20, 30 20', flow_shift: '3;5' },
    -1,
  );
  expect(errors).toEqual({});
  const [{ seed } = {}] = changes;
  expect(seed).toBeGreaterThanOrEqual(0);
  expect(changes).toEqual([
    { seed, num_inference_steps: 20, flow_shift: 3 },
    { seed, num_inference_steps: 20, flow_shift: 5 },
    { seed, num_inference_steps: 30, flow_shift: 3 },
    { seed, num_inference_steps: 30, flow_shift: 5 },
  ]);
  expect(gridOf(none, 7)).toEqual({ changes: [], count: 0, errors: {} });
});

test('a grid that is too large has a number of videos, and none of them', () => {
  const many = Array.from({ length: 40 }, (_, index) => index + 1).join(',');
  const grid = gridOf({ ...none, num_inference_steps: many, flow_shift: '3 5' }, 7);
  expect(grid).toEqual({ changes: [], count: 80, errors: {} });
});

test('a value that is no number or out of its range is named, and there is no grid', () => {
  const { changes, errors } = gridOf(
    { num_inference_steps: '20, 41', guidance_scale: 'high', flow_shift: '5' },
    7,
  );
  expect(changes).toEqual([]);
  expect(errors).toEqual({
    num_inference_steps: 'Steps must be a whole number from 1 to 40.',
    guidance_scale: 'Guidance must be a number from 1 to 10.',
  });
});
