import { expect, test } from 'vitest';
import { type Shown, sharePage, textsFor } from './share-page';

test.each([
  ['zh-CN,zh;q=0.9,en;q=0.8', 'zh'],
  ['en-GB,en;q=0.9,zh;q=0.8', 'en'],
  ['fr, en;q=0.4, zh-TW;q=0.6', 'zh'],
  ['zh;q=0, en;q=0.1', 'en'],
  ['zh;q=abc', 'en'],
  ['*', 'en'],
  [null, 'en'],
])('a visitor who wants %s reads %s', (wanted, language) => {
  expect(textsFor(wanted)('language')).toBe(language);
});

test.each([
  ['en', '1280×720, 5 s, made on <time datetime="2025-03-01">2025-03-01</time> with'],
  ['zh', '1280×720，5 秒，由生成式模型制作于 <time datetime="2025-03-01">2025-03-01</time></p>'],
])('the page tells size, length and day of the video in %s', (language, sentence) => {
  const shown: Shown = {
    id: 'a',
    width: 1280,
    height: 720,
    duration: 5,
    createdAt: new Date('2025-03-01T12:00:00Z'),
    prompt: 'a <b> fox',
    negativePrompt: null,
    settings: null,
    hasImage: false,
    hasLastImage: false,
    preview: null,
    isFlagged: false,
    allowIndex: false,
    canRestore: false,
  };
  const links = { page: 'https://a.example/s/a', oembed: 'https://a.example/o', report: undefined };
  const page = sharePage(shown, links, textsFor(language));
  expect(page).toContain(sentence);
  expect(page).toContain('<h1>a &lt;b&gt; fox</h1>');
});
