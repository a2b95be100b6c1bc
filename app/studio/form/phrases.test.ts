import { expect, test } from 'vitest';
import { cameraMoves, negativePhrases, toggleList, toggleSentence } from './phrases';

test('a sentence is added after the last one, and taken out again', () => {
  expect(toggleSentence('', 'Static camera.')).toBe('Static camera.');
  expect(toggleSentence('A boat sails \n', 'Static camera.')).toBe('A boat sails. Static camera.');
  for (const prompt of ['A boat sails.', '船在航行。', 'Does it sail?']) {
    const both = toggleSentence(toggleSentence(prompt, 'The camera rises.'), 'Static camera.');
    expect(both).toBe(`${prompt} The camera rises. Static camera.`);
    expect(toggleSentence(both, 'The camera rises.')).toBe(`${prompt} Static camera.`);
    expect(toggleSentence(toggleSentence(both, 'Static camera.'), 'The camera rises.')).toBe(
      prompt,
    );
  }
  expect(toggleSentence('Static camera. A boat.', 'Static camera.')).toBe('A boat.');
});

test('a list is added with a comma, and taken out again wherever it is', () => {
  expect(toggleList('', 'text, logo')).toBe('text, logo');
  expect(toggleList('rain, ', 'text, logo')).toBe('rain, text, logo');
  expect(toggleList('rain, text, logo, snow', 'text, logo')).toBe('rain, snow');
  expect(toggleList('text, logo, snow', 'text, logo')).toBe('snow');
  expect(toggleList(toggleList('静止，', 'text'), 'text')).toBe('静止');
});

test('no phrase contains another one: each button would take it for its own', () => {
  for (const list of [cameraMoves, negativePhrases]) {
    const texts = list.map(({ text }) => text);
    for (const text of texts) {
      expect(texts.filter((other) => other.includes(text))).toEqual([text]);
    }
  }
});
