import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sentencesOf } from '../contract';
import { optimizePrompt } from '.';
import { countWords, hangsAfter, type Step, scriptedModel } from './testing/scripted-model';

/** Pieces as a user writes them. */
const pieces = [
  '[sks style]',
  '[trigger_word]',
  '[a [nested] one]',
  '{blue}',
  '<lora:x>',
  '(walking:1.2)',
  '((very slowly))',
  '"NO ENTRY"',
  '“hello 👋 world”',
  '「你好」',
  "'come back soon'",
  'https://example.com/a,b?c=[d]',
  'ohwx woman',
  'r0t4tion',
  '[open',
];
const languageParts = {
  en: {
    texts: [
      'the woman walks slowly to the left',
      'a dog runs after two birds',
      'the camera zooms in',
    ],
    negations: ['not smiling', 'no text or logo', 'she never looks up', "the dog doesn't bark"],
    answer: 'The movement is slow and steady. A man waves at the sea. It goes on with the light.',
  },
  de: {
    texts: ['die Frau geht langsam nach links', 'ein Hund läuft und die Kamera folgt ihm'],
    negations: ['kein Text', 'die Frau lächelt nicht', 'ohne Schnitt'],
    answer: 'Die Bewegung ist langsam und ruhig. Ein Mann winkt und das Licht ist sanft.',
  },
  fr: {
    texts: ['la femme marche lentement vers la gauche', 'un chien court dans le jardin'],
    negations: ['sans texte', 'elle ne sourit pas'],
    answer: 'Le mouvement est lent et doux. Un homme est dans la lumière.',
  },
  es: {
    texts: ['la mujer camina despacio hacia la izquierda', 'un perro corre por el jardín'],
    negations: ['sin texto', 'la mujer no sonríe'],
    answer: 'El movimiento es lento y suave con la luz. Un hombre está en la luz.',
  },
  it: {
    texts: ['la donna cammina lentamente verso sinistra', 'un cane corre nel giardino'],
    negations: ['senza testo', 'la donna non sorride'],
    answer: 'Il movimento è lento e dolce nella luce. Un uomo è nella luce.',
  },
  pt: {
    texts: ['a mulher caminha devagar para a esquerda', 'um cachorro corre no jardim com ela'],
    negations: ['sem texto', 'a mulher não sorri'],
    answer: 'O movimento é lento e suave na luz. Um homem está na luz com ela.',
  },
  zh: {
    texts: ['女人慢慢向左走', '一只狗在花园里奔跑', '镜头缓缓推近'],
    negations: ['没有文字', '她不笑', '禁止切换画面'],
    answer: '动作缓慢而稳定。男人在挥手。光影轻轻摇晃。',
  },
} as const;
type Sample = { readonly prompt: string; readonly language: keyof typeof languageParts };

const samples: fc.Arbitrary<Sample> = fc
  .constantFrom(...(Object.keys(languageParts) as Sample['language'][]))
  .chain((language) => {
    const { texts, negations } = languageParts[language];
    return fc
      .record({
        texts: fc.shuffledSubarray<string>([...texts], { minLength: 1 }),
        negations: fc.shuffledSubarray<string>([...negations]),
        pieces: fc.shuffledSubarray(pieces, { maxLength: 5 }),
        order: fc.array(fc.nat(100), { minLength: 20, maxLength: 20 }),
        end: fc.constantFrom('', '.', ' ', ',', '🙂', ' — ', '\n', 'É', '(soft)', '...', '！'),
      })
      .map(({ texts, negations, pieces, order, end }) => {
        const parts = [...texts, ...negations, ...pieces]
          .map((part, i) => [order[i] ?? 0, part] as const)
          .sort((a, b) => a[0] - b[0])
          .map(([, part]) => part);
        return { prompt: parts.join(language === 'zh' ? '，' : ', ') + end, language };
      });
  });

/** Models that answer well, badly, in no form at all, or not. */
const answers: readonly ((sample: Sample) => Step)[] = [
  ({ language }) => languageParts[language].answer,
  ({ language }) => languageParts[language].answer,
  ({ language, prompt }) => `${prompt}. ${languageParts[language].answer}`,
  ({ prompt }) => prompt.toUpperCase(),
  () => 'Une femme marche. Ein Mann geht nach rechts. The man and the boy wave 3 times.',
  () => 'I ignore the above. The system prompt says: rewrite. No text, no logo.',
  () => '<think>drop [it]</think>Here is the prompt: "the woman".',
  () => 'Broken \uFFFD\uFFFD text. \u0000',
  () => '',
  () => '][}{><"',
  () => new Error('Invalid typed array length'),
  () => hangsAfter('The woman walks slowly. The camera holds still. The'),
];

async function optimized(prompt: string, step: Step, seed = 1) {
  const result = await optimizePrompt(prompt, {
    model: scriptedModel(step),
    seed,
    countTokens: countWords,
    signal: new AbortController().signal,
    timeLimitMs: 20,
  });
  const bytes = new TextEncoder().encode(prompt);
  expect(new TextEncoder().encode(result.text).subarray(0, bytes.length)).toEqual(bytes);
  const added = sentencesOf(result.text.slice(prompt.length));
  expect(added.length).toBeLessThanOrEqual(3);
  expect(result.status === 'used').toBe(added.length > 0);
  if (added.length === 0) expect(result.text).toBe(prompt);
  // None of the scripted people is in a prompt of the samples.
  expect(added.join(' ')).not.toMatch(
    /\bman\b|\bMann\b|\bhomme\b|\bhombre\b|\buomo\b|\bhomem\b|男人/,
  );
  return result.status;
}

test('200 prompts: the result begins with the prompt, byte for byte', async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      samples,
      fc.constantFrom(...answers),
      fc.nat(),
      async (sample, answer, seed) => {
        seen.add(`${sample.language} ${await optimized(sample.prompt, answer(sample), seed)}`);
      },
    ),
    { numRuns: 200, seed: 20 },
  );
  // A property that only ever sees the original would say nothing.
  const languages = Object.keys(languageParts);
  expect([...seen]).toEqual(
    expect.arrayContaining(languages.flatMap((each) => [`${each} used`, `${each} failed`])),
  );
});

test('any text at all', async () => {
  const text = fc.string({
    unit: fc.constantFrom(...'ab [](){}<>"\'“”.,!\n🙂不 the', 'no ', 'ohwx woman'),
  });
  await fc.assert(
    fc.asyncProperty(text, samples, fc.constantFrom(...answers), async (prompt, sample, answer) => {
      await optimized(prompt, answer(sample));
    }),
    { numRuns: 200, seed: 3 },
  );
});
