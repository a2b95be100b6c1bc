import { expect, test } from 'vitest';
import { withEnd, withStart } from './trim-state';

test('start and end stay inside of the video and one frame apart', () => {
  const end = withEnd({ from: 0, to: 121 }, 40, 121);
  expect(end).toEqual({ from: 0, to: 41 });
  expect(withStart(end, 99)).toEqual({ from: 40, to: 41 });
  expect(withStart(end, -3)).toEqual({ from: 0, to: 41 });
  const start = withStart({ from: 0, to: 121 }, 60);
  expect(withEnd(start, 3, 121)).toEqual({ from: 60, to: 61 });
  expect(withEnd(start, 500, 121)).toEqual({ from: 60, to: 121 });
});
