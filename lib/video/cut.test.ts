import { expect, test } from 'vitest';
import { joinedFrames, piecesOf } from './cut';

const parts = [{ frames: 121 }, { frames: 121 }, { frames: 49 }];

test('a frame that two parts share is taken once, from the later one', () => {
  const total = joinedFrames(parts);
  expect(total).toBe(121 + 120 + 48);
  const pieces = piecesOf(parts, 0, total);
  expect(pieces.map(({ from, to }) => [from, to])).toEqual([
    [0, 120],
    [0, 120],
    [0, 49],
  ]);
});

test.each([
  [0, 1, [[0, 0, 1]]],
  [
    119,
    121,
    [
      [0, 119, 120],
      [1, 0, 1],
    ],
  ],
  [120, 240, [[1, 0, 120]]],
  [
    130,
    241,
    [
      [1, 10, 120],
      [2, 0, 1],
    ],
  ],
  [288, 289, [[2, 48, 49]]],
])('frames %i to %i', (from, to, expected) => {
  const pieces = piecesOf(parts, from, to);
  expect(pieces.map((piece) => [parts.indexOf(piece.part), piece.from, piece.to])).toEqual(
    expected,
  );
});
