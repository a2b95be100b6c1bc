import { describe, expect, test } from 'vitest';
import { promptOptimizationSchema } from '../contract';
import { optimizePrompt } from '.';
import type { OptimizeOptions } from './language-model';
import { countWords, hangsAfter, type Step, scriptedModel } from './testing/scripted-model';

const prompt = 'A dog runs along the beach to the left';
const good = 'Its ears move gently with long and even steps. The camera holds still.';

async function optimized(
  text: string,
  steps: Step[],
  options: Partial<Omit<OptimizeOptions, 'model'>> = {},
) {
  const model = scriptedModel(...steps);
  const result = await optimizePrompt(text, {
    model,
    seed: 7,
    countTokens: countWords,
    signal: new AbortController().signal,
    ...options,
  });
  expect(promptOptimizationSchema.parse(result)).toEqual(result);
  return { ...result, requests: model.requests };
}

test('the sentences of an answer follow the prompt; the record names model and seed', async () => {
  const shown: string[] = [];
  const result = await optimized(prompt, [good], { onText: (text) => shown.push(text) });
  expect(result).toMatchObject({ status: 'used', original: prompt, reasons: [] });
  expect(result.text).toBe(`${prompt}. ${good}`);
  expect(result).toMatchObject({ model: 'scripted', sha256: 'a'.repeat(64), seed: 7 });
  expect(shown).toEqual([good]);
  const [request] = result.requests;
  expect(request?.user).toBe(`Instruction: ${prompt}`);
  expect(request?.system).toContain('Answer in English.');
  expect(request?.grammar).not.toContain('[^');
});

test('a sentence that fails a check is left out, a fourth one too, and the record says why', async () => {
  const answer = `A woman waves. ${good} The text moves slowly. The dog moves on. The light is soft.`;
  const result = await optimized(`${prompt}, no text!`, [answer]);
  expect(result).toMatchObject({ status: 'used', seed: 7 });
  expect(result.text).toBe(`${prompt}, no text! ${good} The dog moves on.`);
  expect(result.reasons).toEqual(['new person: woman', 'contradiction: text']);
});

test('what the prompt or an earlier sentence says is not said again', async () => {
  const result = await optimized(prompt, [
    `${prompt}. Its ears move gently. its ears move gently.`,
  ]);
  expect(result.text).toBe(`${prompt}. Its ears move gently.`);
  expect(result.reasons).toContain('repetition');
});

test('an answer of which nothing is added is tried once more with the next seed', async () => {
  const result = await optimized(prompt, ['A man sleeps on a sofa.', good]);
  expect(result).toMatchObject({ status: 'used', text: `${prompt}. ${good}`, seed: 8 });
  expect(result.requests.map(({ seed }) => seed)).toEqual([7, 8]);
  expect(result.reasons).toEqual(['new person: man']);
});

test.each([
  ['A dog and a [cat', '. '],
  ['The dog runs…', ' '],
  ['The dog runs, no text,', ' '],
  ['The dog runs ["a"]', '. '],
  ['The dog runs \n', '. '],
])('sentences follow %j', async (text, between) => {
  const result = await optimized(text, ['The light is soft.']);
  expect(result.text).toBe(`${text}${between}The light is soft.`);
});

test('Chinese sentences follow without spaces', async () => {
  const result = await optimized('女人在雨中跳舞', ['双臂轻轻摆动。镜头保持静止。']);
  expect(result.text).toBe('女人在雨中跳舞。双臂轻轻摆动。镜头保持静止。');
});

test.each([
  ['Two dogs move slowly. The camera zooms in slowly. The text moves slowly.'],
  ['Le chien court lentement dans le jardin. Der Hund bewegt sich langsam.'],
])('nothing fits in: %s', async (answer) => {
  const result = await optimized(`${prompt}, no text`, [answer]);
  expect(result).toMatchObject({ status: 'failed', text: `${prompt}, no text` });
  expect(result.reasons.length).toBeGreaterThan(1);
});

describe('time limit', () => {
  test('whole sentences that came in time are used', async () => {
    const result = await optimized(prompt, [hangsAfter(`${good} And the`)], { timeLimitMs: 20 });
    expect(result).toMatchObject({ status: 'used', reasons: ['time limit'] });
    expect(result.text).toBe(`${prompt}. ${good}`);
    expect(result.requests).toHaveLength(1);
    expect(result.requests[0]?.signal.aborted).toBe(true);
  });

  test('nothing usable in time is the original, and there is no second attempt', async () => {
    const result = await optimized(prompt, [hangsAfter('The')], { timeLimitMs: 20 });
    expect(result).toMatchObject({ status: 'failed', text: prompt });
    expect(result.reasons).toEqual(['time limit', 'no result']);
    expect(result.requests).toHaveLength(1);
  });

  test('there is no second attempt after the limit', async () => {
    let clock = 0;
    const late: Step = () => {
      clock = 20_001;
      return 'A man.';
    };
    const result = await optimized(prompt, [late], { now: () => clock });
    expect(result).toMatchObject({ status: 'failed', milliseconds: 20_001 });
    expect(result.requests).toHaveLength(1);
  });
});

test.each<[string, Step]>([
  ['throws', new Error('Invalid typed array length')],
  ['gives a million characters', 'the dog runs '.repeat(70_000)],
  ['gives broken characters', 'The dog \uFFFD\uFFFD runs.'],
])('a model that %s: the original', async (_, step) => {
  const result = await optimized(prompt, [step]);
  expect(result).toMatchObject({ status: 'failed', text: prompt });
  expect(result.requests).toHaveLength(2);
});

test('what cannot be checked starts no model', async () => {
  const result = await optimized('Собака бежит', [good]);
  expect(result).toMatchObject({ status: 'unchanged', text: 'Собака бежит', model: null });
  expect(result).toMatchObject({ seed: null, reasons: ['language'], requests: [] });
});

test('what does not fit the limit of tokens is left out; an original of more is never cut', async () => {
  const limit = countWords(prompt) + 6;
  const countTokens = (text: string) => countWords(text) + 512 - limit;
  const used = await optimized(prompt, [good, 'The camera holds still.'], { countTokens });
  expect(used).toMatchObject({ status: 'used', text: `${prompt}. The camera holds still.` });
  expect(used.reasons).toEqual(['token limit']);
  const long = await optimized(prompt, [good], { countTokens: () => 513 });
  expect(long).toMatchObject({ status: 'unchanged', reasons: ['tokens'], text: prompt });
});

test('cancelling rejects with the reason, even where the model hangs', async () => {
  const controller = new AbortController();
  const reason = new Error('cancelled');
  const pending = optimized(prompt, [hangsAfter('The dog')], { signal: controller.signal });
  controller.abort(reason);
  await expect(pending).rejects.toBe(reason);
  await expect(optimized(prompt, [good], { signal: controller.signal })).rejects.toBe(reason);
});

test('a prompt or an answer that is hard to compare takes less than a second', async () => {
  for (const piece of [
    "' a",
    '<',
    '“',
    'www.',
    'no a, ',
    'the A ',
    'camera ',
    'a. ',
    '狗，',
    "don't ",
  ]) {
    const start = performance.now();
    await optimized(piece.repeat(3999 / piece.length), [good]);
    await optimized(prompt, [piece.repeat(2000 / piece.length)]);
    expect(performance.now() - start, piece).toBeLessThan(1000);
  }
});
