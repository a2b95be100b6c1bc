import { expect, test } from 'vitest';
import { advance, type JournalRecord, type JournalState } from './journal';

const begin: JournalRecord = {
  type: 'begin',
  plan: 'abc',
  sources: [{ name: 'x', identity: '1', size: 10, print: 'p' }],
};
const unit = (number: number, hash: Extract<JournalRecord, { type: 'units' }>['hash']) =>
  ({
    type: 'units',
    first: number,
    units: [[{ checksum: `${number}`, squaredError: 0, squaredNorm: 1 }]],
    bytesDone: 5 * (number + 1),
    bytesStored: 4 * (number + 1),
    hash,
  }) satisfies JournalRecord;
const middle = unit(0, { at: 'middle', state: 'half' });
const end = unit(1, { at: 'end', sha256: 'digest' });
const after = (...records: JournalRecord[]) =>
  records.reduce<JournalState>(advance, { state: 'none' });

test('records add up to where the installation stands', () => {
  expect(after(begin)).toMatchObject({ state: 'underway', units: [], bytesDone: 0, hash: null });
  expect(after(begin, middle)).toMatchObject({ bytesDone: 5, hash: 'half', digests: [] });
  expect(after(begin, middle, end)).toMatchObject({
    units: [...middle.units, ...end.units],
    bytesDone: 10,
    bytesStored: 8,
    hash: null,
    digests: ['digest'],
  });
});

test('records that do not follow from each other are never taken for progress', () => {
  for (const records of [[middle], [begin, end], [begin, middle, begin], [begin, middle, middle]]) {
    expect(after(...records)).toEqual({ state: 'broken' });
    expect(after(...records, begin)).toEqual({ state: 'broken' });
  }
});

test('between two sources it can go on with others in the place of those that are left', () => {
  const state = after(begin, middle, end, { ...begin, plan: 'other' });
  expect(state).toMatchObject({ plan: 'other', bytesDone: 10, digests: ['digest'] });
});
