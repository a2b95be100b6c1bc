import { describe, expect, test } from 'vitest';
import { hasSexualTerm, isRefusedPrompt, namesChild } from './prompt-refusal';
import { harmlessSentences, refusedSentences } from './testing/refusal-sentences';

test.each(refusedSentences)('%s: %s is refused', (_, sentence) => {
  expect(isRefusedPrompt(sentence)).toBe(true);
  expect(isRefusedPrompt(`A long street at night. ${sentence}, the camera pans left.`)).toBe(true);
  expect(namesChild(sentence)).toBe(true);
});

test('refused sentences exist in all seven languages', () => {
  const languages = new Set(refusedSentences.map(([language]) => language));
  expect([...languages].sort()).toEqual(['de', 'en', 'es', 'fr', 'it', 'pt', 'zh']);
});

test.each(Object.entries(harmlessSentences))('harmless sentences pass: %s', (_, sentences) => {
  expect(sentences.filter(isRefusedPrompt)).toEqual([]);
});

test('at least 200 harmless sentences are compared, and none is there twice', () => {
  const all = Object.values(harmlessSentences).flat();
  expect(all.length).toBeGreaterThanOrEqual(200);
  expect(new Set(all).size).toBe(all.length);
});

describe('a single term', () => {
  test.each([
    ['a child plays', true],
    ['a 12-year-old plays', true],
    ['ein Kind spielt', true],
    ['十二岁的女孩', true],
    ['an 18-year-old plays', false],
    ['a kind of dance', false],
    ['a 12 year old whisky', false],
    ['23岁的女孩', false],
    ['二十三岁的女孩', false],
    ['a 2.5 year old plan', false],
  ])('%s names a child: %s', (text, expected) => {
    expect(namesChild(text)).toBe(expected);
  });

  test.each([
    ['an erotic film', true],
    ['a naked man', false],
    ['Essex', false],
    ['流行性感冒', false],
  ])('%s has a sexual term: %s', (text, expected) => {
    expect(hasSexualTerm(text)).toBe(expected);
  });
});

test('10,000 characters are compared in less than a second', () => {
  for (const text of ['naked a b c d ', 'child of 12 ', '1 ', '十岁']) {
    const start = performance.now();
    isRefusedPrompt(text.repeat(10_000 / text.length));
    expect(performance.now() - start).toBeLessThan(1000);
  }
});
