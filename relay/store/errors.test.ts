import { expect, test } from 'vitest';
import { storageDown } from './store';

const refusedWith = (code: string) =>
  storageDown(new Error('Failed query', { cause: Object.assign(new Error('no'), { code }) }));

test.each([
  ['a deadlock', '40P01'],
  ['a serialisation failure', '40001'],
  ['a lost connection', '08006'],
  ['a server that starts', '57P03'],
])('%s is no fault of the statement: the same again will do', (_, code) => {
  expect(refusedWith(code)?.code).toBe('STORAGE_DOWN');
});

test('a statement that the database refuses is a fault of ours', () => {
  expect(refusedWith('23505')).toBeNull();
});
