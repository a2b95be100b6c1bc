import { expect, test } from 'vitest';
import { Ledger } from './ledger';

test('live and peak bytes per category and over all', () => {
  const ledger = new Ledger();
  const weights = ledger.take('weights', 100);
  const cache = ledger.take('caches', 30);
  weights();
  const latents = ledger.take('latents', 50);
  expect(ledger.liveBytes).toBe(80);
  // Not the sum of the categories' peaks: they did not come together.
  expect(ledger.peakBytes).toBe(130);
  const { categories, liveBytes } = ledger.counters();
  expect(liveBytes).toBe(80);
  expect(categories).toEqual({
    weights: { live: 0, peak: 100 },
    activations: { live: 0, peak: 0 },
    caches: { live: 30, peak: 30 },
    latents: { live: 50, peak: 50 },
    lora: { live: 0, peak: 0 },
    runtime: { live: 0, peak: 0 },
  });
  cache();
  latents();
  expect(ledger.liveBytes).toBe(0);
});

test('memory is given back once, however often one says so', () => {
  const ledger = new Ledger();
  const release = ledger.take('weights', 100);
  ledger.take('weights', 1);
  release();
  release();
  expect(ledger.liveBytes).toBe(1);
});

test('resetting the peaks starts from what is live', () => {
  const ledger = new Ledger();
  ledger.take('weights', 10);
  ledger.take('lora', 90)();
  ledger.resetPeaks();
  expect(ledger.peakBytes).toBe(10);
  expect(ledger.counters().categories.lora).toEqual({ live: 0, peak: 0 });
  expect(ledger.counters().categories.weights).toEqual({ live: 10, peak: 10 });
});

test('allocations and readbacks only ever grow', () => {
  const ledger = new Ledger();
  ledger.take('weights', 10)();
  ledger.take('weights', 0);
  ledger.countReadback();
  expect(ledger.counters()).toMatchObject({ allocations: 2, readbacks: 1 });
});
