import { expect, test } from 'vitest';
import { Signal } from './signal';

test('a wait ends when it is raised, or by its time', async () => {
  const signal = new Signal();
  const raised = signal.wait(Number.POSITIVE_INFINITY);
  signal.raise();
  expect(await raised).toBe(true);
  expect(await signal.wait(1)).toBe(false);
  expect(await signal.wait(0)).toBe(false);
});

test('raised before a wait, it ends the next one only; cleared, none', async () => {
  const signal = new Signal();
  signal.raise();
  signal.raise();
  expect(await signal.wait(60_000)).toBe(true);
  expect(await signal.wait(1)).toBe(false);
  signal.raise();
  signal.clear();
  expect(await signal.wait(1)).toBe(false);
});
