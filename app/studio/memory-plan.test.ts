import { expect, test } from 'vitest';
import type { MemoryReport } from '../../lib/contract/progress';
import { memoryFact, planSentence } from './memory-plan';

const full: MemoryReport = {
  budget: 8 * 2 ** 30,
  peak: 6 * 2 ** 30,
  blocks: 30,
  residentBlocks: 30,
  chunkTokens: 1024,
  decodeTiles: 1,
  replans: 0,
};

test('a plan in words', () => {
  expect(planSentence(full)).toBe('All 30 blocks stay in memory (6.0 GiB).');
  expect(planSentence({ ...full, budgetSet: true })).toBe(
    'All 30 blocks stay in memory (6.0 GiB of 8.0 GiB).',
  );
  expect(planSentence({ ...full, residentBlocks: 12 })).toBe(
    '12 of 30 blocks stay in memory; the others are read from disk in every step.',
  );
  expect(planSentence({ ...full, residentBlocks: 1 })).toMatch(/^1 of 30 blocks stays /);
  expect(planSentence({ ...full, residentBlocks: 0 })).toMatch(/^None of 30 blocks stay /);
  expect(planSentence({ ...full, decodeTiles: 4 })).toMatch(/decoded in 4 tiles\.$/);
  expect(planSentence({ ...full, replans: 1 })).toMatch(/ran out once: it was planned smaller/);
});

test('a result tells what it took, and when it was tiled', () => {
  expect(memoryFact(full)).toBe('6.0 GiB');
  expect(memoryFact({ ...full, residentBlocks: 10, decodeTiles: 2 })).toBe(
    '6.0 GiB, 20 of 30 blocks read from disk, decoded in 2 tiles',
  );
});
