import { expect, test } from 'vitest';
import { KinoraError } from '../../../lib/contract';
import { newPrediction } from '../../../lib/predictions/testing/prediction';
import { countText } from './count-text';

const completed = newPrediction({ status: 'completed' });
const interrupted = newPrediction({ status: 'interrupted' });
const ended = (code: 'INTERNAL' | 'CANCELLED') =>
  newPrediction({ status: 'failed', completedAt: 'b', error: new KinoraError(code).toRecord() });

test('a run that was interrupted before it had a video is not counted as a video', () => {
  expect(countText([], false)).toBe('0 videos');
  expect(countText([completed], false)).toBe('1 video');
  expect(countText([interrupted], false)).toBe('1 interrupted');
  expect(countText([completed, interrupted, completed], false)).toBe('2 videos, 1 interrupted');
});

test('what a person has cancelled has not failed', () => {
  expect(countText([], true)).toBe('0 failed');
  expect(countText([ended('CANCELLED')], true)).toBe('1 cancelled');
  const both = [ended('INTERNAL'), ended('CANCELLED'), ended('INTERNAL')];
  expect(countText(both, true)).toBe('2 failed, 1 cancelled');
});
