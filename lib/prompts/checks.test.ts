import { expect, test } from 'vitest';
import { checks, problemOf, readPrompt } from './checks';

function read(original: string) {
  const prompt = readPrompt(original);
  if (!prompt) throw new Error(`not read: ${original}`);
  return prompt;
}

const dog = 'A dog runs along the beach to the left';
const good = 'It runs with long and even steps while its ears move gently.';

/** Check, prompt, a sentence that passes it, one that does not, and what the check says. */
const table: readonly (readonly [string, string, string, string, string])[] = [
  ['form', dog, good, good.slice(0, -1), good.slice(0, 40)],
  ['form', dog, good, 'Here is the text.', 'Here is the text.'],
  ['form', dog, good, 'I cannot help with that.', 'I cannot help with that.'],
  ['form', dog, good, '<think>It moves.', '<think>It moves.'],
  ['form', dog, good, '- It moves.', '- It moves.'],
  ['form', dog, good, 'It is [sks].', 'It is [sks].'],
  ['form', dog, good, 'It says "hi".', 'It says "hi".'],
  ['form', dog, good, 'It moves \uFFFD.', 'It moves \uFFFD.'],
  [
    'another language',
    dog,
    good,
    'Der Hund läuft langsam und die Kamera bleibt still und ruhig.',
    'de',
  ],
  ['another language', dog, good, '狗在海边奔跑。', 'zh'],
  ['another language', dog, good, 'Krsta mulo fendi garuta polinde.', 'unknown'],
  ['new person', dog, good, 'A woman waves.', 'woman'],
  ['new person', 'The woman walks slowly', 'The woman turns.', 'The man turns.', 'man'],
  ['new person', 'The woman walks slowly', 'She turns.', 'Her hips sway.', 'hips'],
  ['new person', dog, good, 'An erotic mood.', 'a sexual term'],
  ['new person', dog, good, 'A toddler waves.', 'a child'],
  // What the prompt rules out, it does not bring in.
  ['new person', `${dog}, no cats, dogs or people`, good, 'People walk by.', 'people'],
  ['camera move', `${dog}, zoom in`, 'The camera zooms in slowly.', 'Then it pans.', 'pan'],
  ['camera move', `${dog}, zoom in`, good, 'The camera holds still.', 'static'],
  ['camera move', dog, 'The camera holds still.', 'The camera follows the dog.', 'track'],
  ['camera move', dog, good, 'The camera is happy.', 'unknown'],
  [
    'camera move',
    `${dog}, the camera does not move`,
    'The camera holds still.',
    'The camera moves.',
    'move',
  ],
  ['contradiction', `Two birds follow. ${dog}`, 'The two birds turn.', '3 birds turn.', '3'],
  ['contradiction', `3 birds follow. ${dog}`, 'Three birds turn.', 'The two birds turn.', '2'],
  ['contradiction', dog, 'It keeps to the left.', 'It turns right.', 'right'],
  ['contradiction', `${dog}, then right`, 'It turns right.', 'It jumps 3 times.', '3'],
  ['contradiction', `${dog}, no text`, good, 'A text appears.', 'text'],
  ['contradiction', `${dog}, no text, logo or watermark`, good, 'A logo glows.', 'logo'],
  ['contradiction', dog, good, 'The dog does not bark.', 'dog'],
  ['contradiction', dog, 'Its steps never stop.', 'It never runs.', 'runs'],
  ['contradiction', '女人在雨中跳舞，没有文字', '双臂轻轻摆动。', '文字缓缓出现。', '文字'],
];

test.each(table)('%s, %s', (name, original, passing, failing, problem) => {
  const check = checks[name];
  expect(check?.(passing, read(original))).toBeNull();
  expect(check?.(failing, read(original))).toBe(problem);
  expect(problemOf(failing, read(original))).not.toBeNull();
});

test('every check has a case', () => {
  expect(new Set(table.map(([name]) => name))).toEqual(new Set(Object.keys(checks)));
});

/** Sentences as a good model adds them: none of the checks may reject one. */
test.each([
  [dog, [good, 'The camera holds still.']],
  [
    'Anna waves, slow zoom out, no text',
    [
      'Her fingers move from side to side while her hair sways a little.',
      'The camera slowly zooms out in a steady motion.',
    ],
  ],
  [
    'eine Frau geht langsam durch den Wald nach rechts',
    ['Ihre Schritte sind gleichmäßig und ihr Haar bewegt sich leicht.', 'Die Kamera bleibt still.'],
  ],
  [
    'une femme danse sous la pluie',
    ['Ses bras bougent avec un rythme lent et ses pas sont légers.', 'La caméra reste fixe.'],
  ],
  [
    'una mujer camina por el parque',
    ['Su pelo se mueve con el ritmo de su paso.', 'La cámara permanece fija.'],
  ],
  [
    'una donna cammina nel parco',
    ['I suoi capelli ondeggiano con il ritmo del passo.', 'La camera resta ferma.'],
  ],
  [
    'uma mulher caminha pelo parque',
    ['O seu cabelo balança com o ritmo do passo.', 'A câmera permanece fixa.'],
  ],
  ['女人在雨中跳舞，没有文字', ['双臂轻轻摆动，脚步平稳，头发随动作飘动。', '镜头保持静止。']],
  ['[sks style] (the dog:1.2) runs and "STOP" stands on the sign', ['The dog turns its head.']],
])('good sentences pass all checks: %s', (original, sentences) => {
  const prompt = read(original);
  expect(sentences.map((sentence) => problemOf(sentence, prompt))).toEqual(
    sentences.map(() => null),
  );
});

test.each([
  '[ключ] the dog says “你好” and runs',
  'the [dog runs',
  '((the cat)) sits on a mat',
  'majestic eagle soaring above snowy mountains, cinematic lighting, golden hour',
])('brackets, quotations, weights and keywords keep no prompt from being read: %s', (original) =>
  expect(read(original).lexicon.language).toBe('en'),
);

test.each(['', '🙂', 'Собака бежит по пляжу', 'xyzzy', '[the dog] 🙂'])(
  'a language that cannot be checked: %s',
  (original) => expect(readPrompt(original)).toBeNull(),
);
