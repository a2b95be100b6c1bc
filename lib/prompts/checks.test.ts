import { expect, test } from 'vitest';
import { checks, failures } from './checks';
import { joinPrompt, parsePrompt } from './protect';
import { countWords } from './testing/scripted-model';

function candidate(original: string, body: string, triggerWords: string[] = []) {
  const prompt = parsePrompt(original, triggerWords);
  if ('reason' in prompt) throw new Error(`left alone: ${prompt.reason}`);
  const text = joinPrompt(prompt, body);
  return { prompt, body, text, tokens: countWords(text) };
}

const dog = 'A dog runs along the beach to the left';
const good =
  'The dog runs along the beach to the left with long and even steps while its ears move gently. The camera holds still.';

/** Check, prompt, a body that passes it, a body that does not, and what the check says. */
const table: readonly (readonly [string, string, string, string, string])[] = [
  ['V1', `${dog} [sks]`, `${good} It is [sks].`, good, 'span [sks]'],
  ['V1', `${dog} [a] "b"`, `[a] ${good} "b".`, `"b" ${good} [a].`, 'order of spans'],
  ['V1', `${dog} [sks]`, `[sks] ${good}`, `[sks] [sks] ${good}`, 'span [sks]'],
  ['V1', `${dog}, no text`, good, `${good} There is no text.`, 'span no text'],
  ['V1', dog, good, `${good} {x}.`, 'new brackets or quotes'],
  ['V2', dog, good, good.slice(0, -1), 'unfinished sentence'],
  ['V2', dog, good, `Here is the text. ${good}`, 'frame or list'],
  ['V2', dog, good, `<think>${good}`, 'frame or list'],
  ['V2', dog, good, `- ${good}`, 'frame or list'],
  ['V2', dog, good, `${good} ${good}`, 'repetition'],
  ['V2', dog, good, `${good} \uFFFD.`, 'broken characters'],
  ['V2', dog, good, '', 'empty'],
  ['V3', dog, good, 'The dog runs along the beach to the left.', 'length 9'],
  ['V3', dog, good, good.replace('beach', 'path').replace('dog', 'cat'), 'missing dog beach'],
  [
    'V3',
    '一只狗在海边奔跑，浪花飞溅',
    '一只狗在海边快速地奔跑，四肢有力，浪花在脚边飞溅。',
    '一只狗奔跑。',
    'length 5',
  ],
  [
    'V4',
    `Two birds follow. ${dog}`,
    `Two birds follow. ${good}`,
    `3 birds follow. ${good}`,
    'numbers',
  ],
  [
    'V4',
    `Two birds and 3 cats. ${dog}`,
    `2 birds and three cats. ${good}`,
    `Three birds and 2 cats. ${good}`,
    'numbers',
  ],
  ['V4', `${dog} with Anna`, good.replace('with', 'beside Anna with'), good, 'name anna'],
  ['V4', dog, good, good.replace('with', 'in Paris with'), 'new name paris'],
  ['V5', dog, good, good.replace('left', 'shore'), 'directions'],
  ['V5', dog, good, `${good} It turns right.`, 'opposite direction'],
  [
    'V5',
    `${dog}, zoom in`,
    good.replace('holds still', 'zooms in slowly'),
    good,
    'camera move zoom',
  ],
  [
    'V5',
    `${dog}, zoom in`,
    `${good.replace('holds still', 'zooms in')}`,
    `${good.replace('holds still', 'zooms in')} Then it pans.`,
    'second camera move',
  ],
  ['V5', dog, good, good.replace('holds still', 'follows the dog'), 'second camera move'],
  ['V5', dog, good, good.replace('holds still', 'is happy'), 'unknown camera move'],
  [
    'V6',
    dog,
    good,
    'Der Hund läuft langsam am Strand nach links und die Kamera bleibt still und ruhig stehen.',
    'language',
  ],
  ['V7', dog, good, `${good} A woman waves.`, 'new word woman'],
  [
    'V7',
    'The woman walks slowly to the house',
    'The woman walks slowly.',
    'The woman walks slowly, her hips swaying.',
    'new word hips',
  ],
  ['V7', dog, good, `${good} An erotic mood.`, 'new sexual term'],
  ['V7', dog, good, `${good} A toddler waves.`, 'new child term'],
  ['V8', dog, good, `${good} ${'word '.repeat(500)}.`, '524 tokens'],
  ['V9', `${dog}, no text`, good, `${good} A text appears.`, 'names text'],
  ['V9', dog, good, `${good} The dog does not bark.`, 'negates dog'],
  ['V9', dog, good, 'The dog never runs.', 'negates dog'],
];

test.each(table)('%s, %s', (id, original, passing, failing, problem) => {
  const check = Object.entries(checks).find(([name]) => name.startsWith(id))?.[1];
  expect(check?.(candidate(original, passing))).toBeNull();
  expect(check?.(candidate(original, failing))).toBe(problem);
});

test('every check has a case', () => {
  expect(new Set(table.map(([id]) => id))).toEqual(
    new Set(Object.keys(checks).map((name) => name.slice(0, 2))),
  );
});

/** Rewrites as a good model makes them: none of the checks may reject one. */
test.each([
  [dog, good],
  [
    'Anna waves, slow zoom out, no text',
    'Anna raises her hand and waves gently, her fingers moving from side to side while her hair sways a little. The camera slowly zooms out in a slow and steady motion.',
  ],
  [
    'eine Frau geht langsam durch den Wald nach rechts',
    'Die Frau geht langsam und ruhig durch den Wald nach rechts, ihre Schritte sind gleichmäßig und ihr Haar bewegt sich leicht. Die Kamera bleibt still.',
  ],
  [
    'une femme danse sous la pluie',
    'La femme danse doucement sous la pluie, ses bras bougent avec un rythme lent et ses pas sont légers. La caméra reste fixe.',
  ],
  [
    'una mujer camina por el parque',
    'La mujer camina despacio por el parque con pasos suaves, su pelo se mueve con el ritmo de su paso. La cámara permanece fija.',
  ],
  [
    'una donna cammina nel parco',
    'La donna cammina lentamente nel parco con passi leggeri, i suoi capelli ondeggiano con il ritmo del passo. La camera resta ferma.',
  ],
  [
    'uma mulher caminha pelo parque',
    'A mulher caminha lentamente pelo parque com passos leves, o seu cabelo balança com o ritmo do passo. A câmera permanece fixa.',
  ],
  [
    '女人在雨中跳舞，没有文字',
    '女人在雨中缓缓跳舞，双臂轻轻摆动，脚步平稳，头发随动作飘动，镜头保持静止。',
  ],
])('a good rewrite passes all checks: %s', (original, body) => {
  expect(failures(candidate(original, body))).toEqual([]);
});
