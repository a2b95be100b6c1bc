import { expect, test } from 'vitest';
import { countText } from './count-text';

const completed = { status: 'completed' } as const;
const interrupted = { status: 'interrupted' } as const;
const failed = { status: 'failed' } as const;

test('a run that was interrupted before it had a video is not counted as a video', () => {
  expect(countText([], false)).toBe('0 videos');
  expect(countText([completed], false)).toBe('1 video');
  expect(countText([interrupted], false)).toBe('1 interrupted');
  expect(countText([completed, interrupted, completed], false)).toBe('2 videos, 1 interrupted');
  expect(countText([failed, failed], true)).toBe('2 failed');
});
