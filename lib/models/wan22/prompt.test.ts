import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { goldens } from '../../weights/testing/files';
import { cleanPrompt } from './prompt';

test('cleans the golden prompts as the reference does', async () => {
  const golden = JSON.parse(await readFile(`${goldens}golden.json`, 'utf8'));
  expect(golden.tokenizer_prompts.length).toBeGreaterThan(3);
  expect(golden.tokenizer_prompts.map(cleanPrompt)).toEqual(golden.cleaned);
});

test.each([
  ['Keeps CASE and "quotes"', 'Keeps CASE and "quotes"'],
  ['  a \t\n b  ', 'a b'],
  ['rock &amp; roll', 'rock & roll'],
  ['&amp;lt;b&amp;gt;', '<b>'],
  ['&amp;amp;lt;', '&lt;'],
  ['caf&eacute; &#233; &#xe9; &copy 2026', 'café é é © 2026'],
  ['a&nbsp;&nbsp;b&nbsp;', 'a b'],
  ['\u3000全角\u3000\u3000空白\u3000', '全角 空白'],
  ['a\u001cb\u0085c', 'a b c'],
  // Not white space to Python, though it is to JavaScript.
  ['\ufeffa', '\ufeffa'],
  ['a\u200bb', 'a\u200bb'],
  ['&nosuchentity; & &', '&nosuchentity; & &'],
  ['', ''],
  [' \n ', ''],
])('%j becomes %j', (text, cleaned) => {
  expect(cleanPrompt(text)).toBe(cleaned);
});
