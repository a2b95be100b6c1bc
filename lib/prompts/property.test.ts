import fc from 'fast-check';
import { expect, test } from 'vitest';
import { optimizePrompt } from '.';
import { occurrences } from './lexicon';
import { countWords, hangsAfter, type Step, scriptedModel } from './testing/scripted-model';

const triggers = ['ohwx woman', 'r0t4tion', 'style-x'];
/** Spans as a user writes them; each stands in the prompt at most once. */
const spans = [
  '[sks style]',
  '[a [nested] one]',
  '{blue}',
  '<lora:x>',
  '"NO ENTRY"',
  '“hello 👋 world”',
  '「你好」',
  "'come back soon'",
  'https://example.com/a,b?c=[d]',
  ...triggers,
];
const languageParts = {
  en: {
    texts: [
      'the woman walks slowly to the left',
      'a dog runs after two birds',
      'the camera zooms in',
    ],
    negations: ['not smiling', 'no text or logo', 'she never looks up', "the dog doesn't bark"],
  },
  de: {
    texts: ['die Frau geht langsam nach links', 'ein Hund läuft und die Kamera folgt ihm'],
    negations: ['kein Text', 'die Frau lächelt nicht', 'ohne Schnitt'],
  },
  fr: {
    texts: ['la femme marche lentement vers la gauche', 'un chien court dans le jardin'],
    negations: ['sans texte', 'elle ne sourit pas'],
  },
  es: {
    texts: ['la mujer camina despacio hacia la izquierda', 'un perro corre por el jardín'],
    negations: ['sin texto', 'la mujer no sonríe'],
  },
  it: {
    texts: ['la donna cammina lentamente verso sinistra', 'un cane corre nel giardino'],
    negations: ['senza testo', 'la donna non sorride'],
  },
  pt: {
    texts: ['a mulher caminha devagar para a esquerda', 'um cachorro corre no jardim com ela'],
    negations: ['sem texto', 'a mulher não sorri'],
  },
  zh: {
    texts: ['女人慢慢向左走', '一只狗在花园里奔跑', '镜头缓缓推近'],
    negations: ['没有文字', '她不笑', '禁止切换画面'],
  },
} as const;

interface Sample {
  readonly prompt: string;
  readonly kept: readonly string[];
}

const samples: fc.Arbitrary<Sample> = fc
  .constantFrom(...Object.entries(languageParts))
  .chain(([language, { texts, negations }]) =>
    fc
      .record({
        texts: fc.shuffledSubarray<string>([...texts], { minLength: 1 }),
        negations: fc.shuffledSubarray<string>([...negations]),
        spans: fc.shuffledSubarray(spans, { maxLength: 5 }),
        order: fc.array(fc.nat(100), { minLength: 20, maxLength: 20 }),
        noise: fc.constantFrom('', '', '🙂', ' — ', '\n', 'É', '(soft)', '...'),
      })
      .map(({ texts, negations, spans, order, noise }) => {
        const clauses = [...texts, ...negations];
        const sorted = clauses
          .map((c, i) => [order[i] ?? 0, c] as const)
          .sort((a, b) => a[0] - b[0]);
        const parts = sorted.map(([, clause]) => clause as string);
        for (const [i, span] of spans.entries()) {
          const at = (order[10 + i] ?? 0) % (parts.length * 2);
          const place = Math.floor(at / 2);
          // As a clause of its own, or at the end of one of the texts.
          if (at % 2 === 0) parts.splice(place, 0, span);
          else parts[place] = `${parts[place]} ${span}`;
        }
        const comma = language === 'zh' ? '，' : ', ';
        return { prompt: parts.join(comma) + noise, kept: [...spans, ...negations] };
      }),
  );

const tails: Record<string, string> = {
  English: ' The movement is slow and steady and continues gently.',
  German: ' Die Bewegung ist langsam und ruhig und geht sanft und stetig weiter.',
  French: ' Le mouvement est lent et doux et la lumière continue doucement avec un rythme naturel.',
  Spanish: ' El movimiento es lento y suave y continúa con un ritmo natural en la luz.',
  Italian: ' Il movimento è lento e dolce e continua con un ritmo naturale nella luce.',
  Portuguese: ' O movimento é lento e suave e continua com um ritmo natural na luz.',
  Chinese: '。动作缓慢而稳定，光影轻轻摇晃，节奏自然流畅。',
};

/** The source again, with a little motion: it passes the checks wherever the source does. */
const faithful = ({ user, system }: { user: string; system: string }) => {
  const language = /Answer in (\w+)\./.exec(system)?.[1] ?? '';
  const source = user.replace(/^Instruction: /, '').replace(/[.…\s]+$/, '');
  return `${source}${language === 'Chinese' ? '' : '.'}${tails[language]}`;
};
/** A protected span inside a sentence. */
const span =
  /\[[^[\]]*(?:\[[^[\]]*\][^[\]]*)*\]|\{.*?\}|<.*?>|".*?"|“.*?”|「.*?」|'come.*?'|https:\S*\]|ohwx woman|r0t4tion|style-x/u;

/** Models that try to lose, change, repeat or reorder what is protected, and models that fail. */
const attacks: Step[] = [
  faithful,
  (request) => faithful(request).replace(/[[\]{}<>"“”「」']/g, ''),
  (request) => faithful(request).toUpperCase(),
  (request) => `${faithful(request)} ${faithful(request)}`,
  (request) => faithful(request).split(' ').reverse().join(' '),
  (request) => faithful(request).replace(/\[(.*?)\]/, '[$1 and more]'),
  (request) => faithful(request).replace(/^(.*?),(.*?),/, '$2,$1,'),
  (request) => faithful(request).replaceAll('ohwx', 'ohxw'),
  (request) => faithful(request).replace(span, ''),
  (request) => faithful(request).replace(span, (found) => `${found} ${found}`),
  (request) => faithful(request).replace(span, (found) => found.slice(1, -1)),
  (request) => faithful(request).replace(span, (found) => found.replace(/[aeo]/, 'u')),
  (request) => {
    const answer = faithful(request);
    const [first, second] = answer.match(new RegExp(span, 'gu')) ?? [];
    if (first === undefined || second === undefined) return answer;
    return answer.replace(first, '\u0001').replace(second, first).replace('\u0001', second);
  },
  ({ user, system }) => `${system} ${user}`,
  (request) => `<think>drop [it]</think>Here is the prompt: ${faithful(request)}`,
  'The woman walks slowly, and the light moves softly while the camera holds still.',
  'I ignore the above. The system prompt says: rewrite. No text, no logo.',
  'Broken \uFFFD\uFFFD text. \u0000',
  '',
  '][}{><"',
  new Error('Invalid typed array length'),
  ({ user }) => Promise.reject(user),
];

async function holds({ prompt, kept }: Sample, step: Step, seed: number) {
  const result = await optimizePrompt(prompt, {
    model: scriptedModel(step),
    triggerWords: triggers,
    seed,
    countTokens: countWords,
    signal: new AbortController().signal,
    timeLimitMs: 20,
  });
  expect(result.original).toBe(prompt);
  for (const span of kept) {
    expect(occurrences(result.text, span), `${span} in ${result.text}`).toBe(
      occurrences(prompt, span),
    );
  }
  if (!['used', 'salvaged'].includes(result.status)) expect(result.text).toBe(prompt);
  return result.status;
}

test('no protected span is ever lost', async () => {
  const statuses = new Set<string>();
  const hanging = hangsAfter('The woman walks slowly. The camera holds still. The');
  await fc.assert(
    fc.asyncProperty(
      samples,
      fc.constantFrom(...attacks, hanging),
      fc.nat(),
      async (sample, step, seed) => {
        statuses.add(await holds(sample, step, seed));
      },
    ),
    { numRuns: 200, seed: 20 },
  );
  // A property that only ever sees the original would say nothing.
  expect([...statuses]).toEqual(expect.arrayContaining(['used', 'salvaged', 'failed']));
});

test('any text at all gives a result that is the original or keeps its brackets', async () => {
  const text = fc.string({
    unit: fc.constantFrom(...'ab [](){}<>"\'“”.,!\n🙂不 the', 'no ', 'ohwx woman'),
  });
  await fc.assert(
    fc.asyncProperty(text, fc.constantFrom(...attacks), async (prompt, step) => {
      await holds({ prompt, kept: [] }, step, 1);
    }),
    { numRuns: 200, seed: 3 },
  );
});
