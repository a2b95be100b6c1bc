import { describe, expect, test } from 'vitest';
import { detectLanguage } from './lexicon';
import { parsePrompt } from './protect';

function parsed(prompt: string, triggers: string[] = []) {
  const result = parsePrompt(prompt, triggers);
  if ('reason' in result) throw new Error(`left alone: ${result.reason}`);
  return { ...result, negated: result.negated.map(({ text }) => text) };
}

test.each([
  [
    'the woman walks, not smiling, to the big house on the hill',
    'not smiling',
    'the woman walks, to the big house on the hill',
  ],
  [
    "A dog runs. Don't move the camera. It jumps.",
    "Don't move the camera",
    'A dog runs. It jumps.',
  ],
  [
    'a dog runs on the beach, no text, logo, or watermark',
    'no text, logo, or watermark',
    'a dog runs on the beach',
  ],
  ['die Frau geht, ohne zu lächeln, zum Haus', 'ohne zu lächeln, zum Haus', 'die Frau geht'],
  ['die Frau geht zum Haus, kein Text', 'kein Text', 'die Frau geht zum Haus'],
  ['la femme marche dans la rue, sans sourire', 'sans sourire', 'la femme marche dans la rue'],
  [
    "la femme marche dans la rue. Elle n'a pas de sac.",
    "Elle n'a pas de sac",
    'la femme marche dans la rue.',
  ],
  ['la mujer camina por el parque, sin sonreír', 'sin sonreír', 'la mujer camina por el parque'],
  ['la donna cammina nel parco, non sorride', 'non sorride', 'la donna cammina nel parco'],
  ['a mulher caminha no parque, não sorri', 'não sorri', 'a mulher caminha no parque'],
  ['女人慢慢走，不笑，没有文字', '不笑，没有文字', '女人慢慢走'],
])('a negated clause is kept apart: %s', (prompt, negated, source) => {
  expect(parsed(prompt)).toMatchObject({ negated: [negated], source });
});

test('trigger words of three LoRAs: alone in front, else in their sentence, the longest first', () => {
  const result = parsed('ohwx, the Ohwx Woman walks in r0t4tion to the house, style-x', [
    'ohwx',
    'ohwx woman',
    'style-x',
    'r0t4tion',
  ]);
  expect(result).toMatchObject({ front: ['ohwx', 'style-x'], inPlace: ['Ohwx Woman', 'r0t4tion'] });
  expect(result.source).toBe('the Ohwx Woman walks in r0t4tion to the house');
});

test('a trigger word inside another word is none', () => {
  expect(parsed('the starman walks on the moon', ['star']).inPlace).toEqual([]);
});

test.each([
  ['the sign says "open [now] 🙂" and the dog runs', ['"open [now] 🙂"']],
  ['the [dog "Rex"] runs', ['[dog "Rex"]']],
  ['the dog [a [b] c] runs {x} <lora:y>', ['[a [b] c]', '{x}', '<lora:y>']],
  ["the dog's owner says 'come here, boy' and the cats' tails move", ["'come here, boy'"]],
  ["the dog's ball is in the cat's mouth", []],
  ['the page https://a.example/x?y=[1]. is on the screen', ['https://a.example/x?y=[1]']],
  ['女人说「你好」并挥手', ['「你好」']],
  ['die Frau sagt „ja, gern“ und geht', ['„ja, gern“']],
])('protected in its sentence: %s', (prompt, inPlace) => {
  expect(parsed(prompt).inPlace).toEqual(inPlace);
});

describe('left alone', () => {
  test.each([
    ['long', 'the dog runs '.repeat(41)],
    ['long', '狗'.repeat(201)],
    ['long', 'x'.repeat(10_000)],
    ['empty', '[only] "this"'],
    ['empty', 'no text, no logo and the'],
    ['language', 'кошка идёт по улице'],
    ['language', '猫が歩いています'],
    ['language', 'xyzzy plugh'],
    ['weights', 'the (red:1.2) dog runs'],
    ['weights', 'the ((red)) dog runs'],
    ['unbalanced', 'the [dog runs'],
    ['unbalanced', 'the dog] runs'],
    ['unbalanced', 'the "dog runs'],
    ['unbalanced', 'the dog <3 runs'],
    ['characters', 'the dog \uFFFD runs'],
    ['characters', 'the dog \uD83D runs'],
    ['spans', `the dog ${'[a] '.repeat(13)} runs`],
  ])('%s: %s', (reason, prompt) => {
    expect(parsePrompt(prompt, [])).toEqual({ reason });
  });

  test('120 words are not too many', () => {
    expect(parsePrompt('the dog runs '.repeat(40).trim(), [])).not.toHaveProperty('reason');
  });
});

test.each([
  ['a cat runs in the garden', 'en'],
  ['woman dancing, camera zooms in', 'en'],
  ['ein Hund läuft durch den Garten', 'de'],
  ['un chien court dans le jardin', 'fr'],
  ['un perro corre por el jardín', 'es'],
  ['un cane corre nel giardino', 'it'],
  ['um cachorro corre no jardim', 'pt'],
  ['狗在花园里跑', 'zh'],
  ['', null],
  ['hond rent', null],
])('%s is %s', (text, language) => {
  expect(detectLanguage(text)).toBe(language);
});
