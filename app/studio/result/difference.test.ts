import { expect, test } from 'vitest';
import { difference } from './difference';

const marks = { same: '', added: '+', removed: '-' } as const;
const shown = (before: string, after: string) =>
  difference(before, after).map(({ kind, text }) => `${marks[kind]}${text.trim()}`);

test.each([
  ['a cat walks', 'a cat walks', ['a cat walks']],
  ['a cat walks', 'a grey cat walks slowly', ['a', '+grey', 'cat walks', '+slowly']],
  ['a cat, walking', 'a cat walking.', ['a cat', '-,', 'walking', '+.']],
  ['a cat walks left', 'a cat runs left', ['a cat', '-walks', '+runs', 'left']],
  ['', 'a cat', ['+a cat']],
  ['a cat', '', ['-a cat']],
  ['猫走路', '猫慢走路', ['猫', '+慢', '走路']],
])('%j → %j', (before, after, pieces) => {
  expect(shown(before, after)).toEqual(pieces);
});

test('what was not removed is the new text to the letter, what was not added the old one but for spaces', () => {
  const before = 'A [sks] boat, drifts  left.\nNo text.';
  const after = 'A [sks] boat slowly drifts left, and the camera holds still. No text.';
  const pieces = difference(before, after);
  const text = (without: string) =>
    pieces.filter(({ kind }) => kind !== without).map((piece) => piece.text);
  expect(text('removed').join('')).toBe(after);
  expect(text('added').join('').replace(/\s/g, '')).toBe(before.replace(/\s/g, ''));
});

test('very long texts are compared as a whole', () => {
  const long = 'word '.repeat(2000);
  expect(difference(long, `${long}more`).map(({ kind }) => kind)).toEqual(['removed', 'added']);
});
