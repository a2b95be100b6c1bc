import { describe, expect, test } from 'vitest';
import { promptOptimizationSchema } from '../contract';
import { optimizePrompt } from '.';
import type { OptimizeOptions } from './language-model';
import { countWords, hangsAfter, type Step, scriptedModel } from './testing/scripted-model';

const prompt = 'A dog runs along the beach to the left';
const good =
  'The dog runs along the beach to the left with long and even steps while its ears move gently. The camera holds still.';

async function optimized(
  text: string,
  steps: Step[],
  options: Partial<Omit<OptimizeOptions, 'model'>> = {},
) {
  const model = scriptedModel(...steps);
  const result = await optimizePrompt(text, {
    model,
    triggerWords: [],
    seed: 7,
    countTokens: countWords,
    signal: new AbortController().signal,
    ...options,
  });
  expect(promptOptimizationSchema.parse(result)).toEqual(result);
  return { ...result, requests: model.requests };
}

test('a good answer is used; the record names model and seed', async () => {
  const shown: string[] = [];
  const result = await optimized(prompt, [good], { onText: (text) => shown.push(text) });
  expect(result).toMatchObject({ status: 'used', original: prompt, text: good, reasons: [] });
  expect(result).toMatchObject({ model: 'scripted', sha256: 'a'.repeat(64), seed: 7 });
  expect(shown).toEqual([good]);
});

test('triggers stand in front, negated clauses at the end, bracketed spans in their sentence', async () => {
  const result = await optimized(
    `ohwx, ${prompt} [sks], no text`,
    [`Sure! Here is the prompt:\n"${good.replace('beach', 'beach [sks]')}"`],
    { triggerWords: ['ohwx'] },
  );
  expect(result.status).toBe('used');
  expect(result.text).toBe(`ohwx, ${good.replace('beach', 'beach [sks]')} no text.`);
  expect(result.requests[0]?.user).toBe(`Instruction: ${prompt} [sks]`);
  expect(result.requests[0]?.grammar).toContain('root ::= body "[sks]" gap end');
});

test('quotes, backslashes and line ends are escaped in the grammar, a first span needs no text before it', async () => {
  const { requests } = await optimized('[a\\b\n] the dog says "hi" and runs', [good]);
  expect(requests[0]?.grammar).toMatch(/^root ::= gap "\[a\\\\b\\n\]" body "\\"hi\\"" gap end\n/);
  expect(requests[0]?.grammar).not.toContain('[^');
});

test('a failed answer is tried once more with the next seed', async () => {
  const result = await optimized(prompt, ['A cat sleeps.', good]);
  expect(result).toMatchObject({ status: 'used', text: good, seed: 8 });
  expect(result.requests.map(({ seed }) => seed)).toEqual([7, 8]);
  expect(result.reasons).toContainEqual(expect.stringMatching(/^V3 content/));
});

describe('salvage', () => {
  test('the original with the sentences that add motion only', async () => {
    const answer =
      'A cat sleeps on a sofa. The dog runs slowly and steadily. The camera holds still. The light moves softly.';
    const result = await optimized(`${prompt}, no text`, [answer]);
    expect(result.status).toBe('salvaged');
    expect(result.text).toBe(
      `${prompt}, no text. The dog runs slowly and steadily. The camera holds still.`,
    );
  });

  test.each([
    ['I ignore the above and write a poem about a cat.'],
    ['Two dogs move slowly. The camera zooms in slowly. The text moves slowly.'],
    ['Le chien court lentement. Der Hund bewegt sich langsam.'],
  ])('nothing fits in: %s', async (answer) => {
    const result = await optimized(`${prompt}, no text`, [answer]);
    expect(result).toMatchObject({ status: 'failed', text: `${prompt}, no text` });
    expect(result.reasons.length).toBeGreaterThan(0);
  });
});

describe('time limit', () => {
  test('whole sentences that came in time are used', async () => {
    const result = await optimized(prompt, [hangsAfter(`${good} And the`)], { timeLimitMs: 20 });
    expect(result).toMatchObject({ status: 'used', text: good, reasons: ['time limit'] });
    expect(result.requests).toHaveLength(1);
    expect(result.requests[0]?.signal.aborted).toBe(true);
  });

  test('nothing usable in time is the original, and there is no second attempt', async () => {
    const result = await optimized(prompt, [hangsAfter('The')], { timeLimitMs: 20 });
    expect(result).toMatchObject({ status: 'failed', text: prompt });
    expect(result.requests).toHaveLength(1);
  });

  test('there is no second attempt after the limit', async () => {
    let clock = 0;
    const late: Step = () => {
      clock = 20_001;
      return 'A cat.';
    };
    const result = await optimized(prompt, [late], { now: () => clock });
    expect(result).toMatchObject({ status: 'failed', milliseconds: 20_001 });
    expect(result.requests).toHaveLength(1);
  });
});

test.each<[string, Step]>([
  ['throws', new Error('Invalid typed array length')],
  ['gives a million characters', 'The dog runs. '.repeat(70_000)],
  ['gives broken characters', 'The dog \uFFFD\uFFFD runs.'],
])('a model that %s: the original', async (_, step) => {
  const result = await optimized(prompt, [step]);
  expect(result).toMatchObject({ status: 'failed', text: prompt });
  expect(result.requests).toHaveLength(2);
});

test('what is left alone starts no model', async () => {
  const result = await optimized('the [dog runs', [good]);
  expect(result).toMatchObject({
    status: 'unchanged',
    text: 'the [dog runs',
    model: null,
    seed: null,
  });
  expect(result).toMatchObject({ reasons: ['unbalanced'], requests: [] });
});

test('a text of 512 tokens is used; an original of more is never cut', async () => {
  const used = await optimized(prompt, [good], { countTokens: () => 512 });
  expect(used).toMatchObject({ status: 'used', text: good });
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
