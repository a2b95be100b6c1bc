import { readdir, readFile } from 'node:fs/promises';
import compile from 'icu-minify/compile';
import format from 'icu-minify/format';
import { createTranslator } from 'use-intl/core';
import { expect, test } from 'vitest';
import {
  adapterOffers,
  finishers,
  guidanceOffers,
  languageModels,
  parseManifest,
} from '../../lib/contract';
import publicLoras from '../../lib/library/public-loras.json';
import { matchLanguage } from './catalogue';
import { messages } from './en';
import { zh } from './zh';

type Nested = { readonly [key: string]: string | Nested };

/** Every text with its dotted key. */
const textsOf = (texts: Nested, path = ''): [key: string, text: string][] =>
  Object.entries(texts).flatMap(([key, entry]) =>
    typeof entry === 'string' ? [[path + key, entry]] : textsOf(entry, `${path}${key}.`),
  );

const formatters = {
  getDateTimeFormat: (...options: never[]) => new Intl.DateTimeFormat(...options),
  getNumberFormat: (...options: never[]) => new Intl.NumberFormat(...options),
  getPluralRules: (...options: never[]) => new Intl.PluralRules(...options),
};

const english = textsOf(messages);
const chinese = new Map(textsOf(zh.messages));

/** Names of the values and tags in a text, sorted; the words of a plural or a choice are none. */
const namesIn = (text: string) =>
  [...text.matchAll(/(?<!(?:one|other|clear|=\d) )\{(\w+)[,}]|<(\w+)>/g)]
    .map((match) => match[1] ?? `<${match[2]}>`)
    .sort();

test('both catalogues have the same keys', () => {
  expect([...chinese.keys()].sort()).toEqual(english.map(([key]) => key).sort());
});

test.each(english)('%s has the same values and tags in both languages', (key, text) => {
  const inChinese = chinese.get(key) ?? '';
  expect(new Set(namesIn(inChinese))).toEqual(new Set(namesIn(text)));
  for (const [locale, message] of [
    ['en', text],
    ['zh', inChinese],
  ] as const) {
    const values = Object.fromEntries(
      namesIn(text).map((name) =>
        name.startsWith('<') ? [name.slice(1, -1), (inside: unknown) => inside] : [name, 1],
      ),
    );
    const only = createTranslator({ locale, messages: { key: message }, onError: fail });
    const parsed = [only.rich('key', values as never)].flat().join('');
    expect(parsed).not.toBe('');
    // The build ships the second one.
    expect([format(compile(message), locale, values, { formatters })].flat().join('')).toBe(parsed);
  }
});

test('what the shipped manifests say is translated', async () => {
  const listed = (await readdir('public/models')).filter((name) =>
    /^(?!index).*\.json$/.test(name),
  );
  const texts = [...languageModels, ...finishers, ...publicLoras].map(
    ({ description }) => description,
  );
  for (const name of listed) {
    const manifest = parseManifest(JSON.parse(await readFile(`public/models/${name}`, 'utf8')));
    const offers = [...adapterOffers(manifest), ...guidanceOffers(manifest)];
    const adapters = offers.map(({ adapter }) => adapter.description);
    const choices = manifest.choices.flatMap((choice) => [choice.name, choice.description]);
    texts.push(manifest.description, ...choices, ...adapters);
  }
  const known = zh.manifests ?? {};
  expect(texts.filter((text) => text !== '' && !(text in known))).toEqual([]);
  expect(Object.keys(known).filter((text) => !texts.includes(text))).toEqual([]);
});

test('texts of several words are translated', () => {
  const same = english.filter(([key, text]) => / /.test(text) && chinese.get(key) === text);
  expect(same).toEqual([]);
});

test.each([
  [['zh-CN', 'en'], 'zh'],
  [['de-DE', 'zh-Hant-TW'], 'zh'],
  [['fr'], 'en'],
  [[], 'en'],
] as const)('%j is shown as %s', (wanted, language) => {
  expect(matchLanguage(wanted)).toBe(language);
});

function fail(error: Error): never {
  throw error;
}
