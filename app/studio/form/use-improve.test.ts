import { expect, test } from 'vitest';
import type { PromptOptimization } from '../../../lib/contract';
import { outcomeText, ranOutOfTime } from '../result/optimization-text';
import { changeForm, emptyForm, typedPrompt } from './form-state';
import { isApplied } from './use-improve';

const record: PromptOptimization = {
  status: 'used',
  original: 'a cat',
  text: 'a cat. It walks slowly. The camera holds still.',
  reasons: [],
  model: 'Qwen3 0.6B',
  sha256: null,
  seed: 7,
  milliseconds: 12_000,
};

test('the optimisation belongs to the prompt until that is replaced', () => {
  const improved = changeForm(emptyForm, {
    type: 'changed',
    values: { prompt: record.text, optimization: record },
  });
  const typed = (prompt: string) =>
    changeForm(improved, { type: 'changed', values: typedPrompt(prompt, record) }).values;
  expect(improved.values.optimization).toBe(record);
  expect(typed('a cat walks very slowly').optimization).toBe(record);
  for (const gone of ['a cat', ' ']) expect(typed(gone).optimization).toBeNull();
  const replaced = changeForm(improved, { type: 'changed', values: { prompt: 'a dog' } });
  expect(replaced.values.optimization).toBeNull();
  const other = changeForm(improved, { type: 'changed', values: { seed: '5' } });
  expect(other.values.optimization).toBe(record);
});

test.each<[Partial<PromptOptimization>, string]>([
  [{}, 'Improved by Qwen3 0.6B in 12 s, seed 7.'],
  [
    { status: 'unchanged', reasons: ['language'], model: null },
    'The prompt stays as it is: its language cannot be checked.',
  ],
  [
    { status: 'failed', reasons: ['new person: man', 'camera move: pan', 'new person: boy'] },
    'it added people; it moved the camera in another way.',
  ],
  [
    { status: 'failed', reasons: ['V4 numbers and names: numbers'] },
    'could be added: V4 numbers and names: numbers.',
  ],
  [{ status: 'unavailable' }, 'there is no language model'],
])('%j says what became of the prompt', (changes, text) => {
  expect(outcomeText({ ...record, ...changes })).toContain(text);
});

test('more time is offered only where it could help', () => {
  const reasons = ['time limit', 'no result'];
  expect(ranOutOfTime({ ...record, status: 'failed', reasons })).toBe(true);
  expect(ranOutOfTime({ ...record, status: 'used', reasons })).toBe(false);
  expect(ranOutOfTime({ ...record, status: 'failed' })).toBe(false);
  expect(isApplied({ ...record, status: 'failed' })).toBe(false);
});
