import Dexie from 'dexie';
import { expect, test } from 'vitest';
import { KinoraError } from '../contract/errors';
import { databaseError } from './database';

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
