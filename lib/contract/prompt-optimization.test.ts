import { describe, expect, test } from 'vitest';
import {
  addedSentences,
  type PromptOptimization,
  sentencesOf,
  withoutSentence,
  withSentences,
} from './prompt-optimization';

test.each<[string, string[]]>([
  ['', []],
  ['. It walks. It turns', ['It walks.']],
  [
    ' It walks 3.5 steps … then stops. “Yes.” No!',
    ['It walks 3.5 steps …', 'then stops.', '“Yes.” No!'],
  ],
  ['。双臂摆动。镜头静止！', ['双臂摆动。', '镜头静止！']],
])('the finished sentences of %j', (text, sentences) => {
  expect(sentencesOf(text)).toEqual(sentences);
});

const [first, second, third] = ['It walks slowly.', 'Its tail moves.', 'The camera holds still.'];

function recordOf(original: string, text: string): PromptOptimization {
  const run = { model: 'tiny', sha256: null, seed: 1, milliseconds: 1 };
  return { status: 'used', original, text, reasons: [], ...run };
}

describe.each([
  'a cat',
  'a cat [sks]',
  'A cat.',
  'A cat.  ',
  'a cat,',
  'a cat \n',
  '"Hi," it says!',
])('sentences after %j', (original) => {
  const record = recordOf(original, withSentences(original, [first, second, third]));

  test('are removed one by one, down to the user’s own words', () => {
    expect(addedSentences(record, record.text)).toEqual([first, second, third]);
    const two = withoutSentence(record, record.text, second);
    expect(two).toBe(withSentences(original, [first, third]));
    expect(addedSentences(record, two)).toEqual([first, third]);
    const one = withoutSentence(record, two, first);
    expect(withoutSentence(record, one, third)).toBe(original);
  });

  test('are removed from a text that the user has edited', () => {
    const edited = `Red: ${record.text} Wind blows.`;
    const left = withoutSentence(record, edited, second);
    expect(left).toBe(`Red: ${withSentences(original, [first, third])} Wind blows.`);
    expect(addedSentences(record, edited.replace(first, 'It runs.'))).toEqual([second, third]);
  });
});

test('a record of an earlier version, which rewrote the prompt, has none', () => {
  const rewritten = recordOf('a cat', 'The cat walks slowly. The camera holds still.');
  expect(addedSentences(rewritten, rewritten.text)).toEqual([]);
});
