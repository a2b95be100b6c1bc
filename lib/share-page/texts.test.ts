import { expect, test } from 'vitest';
import { textsFor } from './texts';

test.each([
  ['zh-CN,zh;q=0.9,en;q=0.8', 'zh'],
  ['en-GB,en;q=0.9,zh;q=0.8', 'en'],
  ['fr, en;q=0.4, zh-TW;q=0.6', 'zh'],
  ['zh;q=0, en;q=0.1', 'en'],
  ['zh;q=abc', 'en'],
  ['*', 'en'],
  [null, 'en'],
])('a visitor who wants %s reads %s', (wanted, language) => {
  expect(textsFor(wanted).language).toBe(language);
});
