import Dexie from 'dexie';
import { expect, test } from 'vitest';
import { KinoraError } from '../contract/errors';
import { databaseError } from './database';

test('a full disk is STORAGE_FULL, however deep Dexie buries it', () => {
  const quota = new Dexie.QuotaExceededError('The quota has been exceeded.');
  const aborted = new Dexie.AbortError('Transaction aborted', quota);
  for (const thrown of [quota, aborted, new DOMException('full', 'QuotaExceededError')]) {
    expect(databaseError(thrown).code).toBe('STORAGE_FULL');
  }
});

test('other failures stay what they are', () => {
  expect(databaseError(new Dexie.AbortError('Transaction aborted')).code).toBe('INTERNAL');
  expect(databaseError(new Dexie.ConstraintError('Key already exists')).code).toBe('INTERNAL');
  const ours = new KinoraError('BUSY');
  expect(databaseError(ours)).toBe(ours);
});
