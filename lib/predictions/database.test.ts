import Dexie from 'dexie';
import { expect, test } from 'vitest';
import { KinoraError } from '../contract';
import { databaseError, KinoraDatabase } from './database';
import { PredictionStore } from './store';

test('a full disk is STORAGE_FULL, also as an inner error of Dexie', () => {
  const quota = new Dexie.QuotaExceededError('The quota has been exceeded.');
  const aborted = new Dexie.AbortError('Transaction aborted', quota);
  for (const thrown of [quota, aborted, new DOMException('full', 'QuotaExceededError')]) {
    expect(databaseError(thrown).code).toBe('STORAGE_FULL');
  }
});

test('other errors are INTERNAL, and a KinoraError is unchanged', () => {
  expect(databaseError(new Dexie.AbortError('Transaction aborted')).code).toBe('INTERNAL');
  expect(databaseError(new Dexie.ConstraintError('Key already exists')).code).toBe('INTERNAL');
  const ours = new KinoraError('BUSY');
  expect(databaseError(ours)).toBe(ours);
});

test('a database that cannot be opened is STORAGE_BLOCKED', async () => {
  // Node has no IndexedDB.
  const missing = new PredictionStore(new KinoraDatabase('absent')).list();
  expect(databaseError(await missing.catch((thrown) => thrown)).code).toBe('STORAGE_BLOCKED');
  const closed = new Dexie.DatabaseClosedError('The operation is insecure.');
  expect(databaseError(closed).code).toBe('STORAGE_BLOCKED');
});
