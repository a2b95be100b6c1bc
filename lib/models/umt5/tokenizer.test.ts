import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { blobFile, readGgufHeader } from '../../weights';
import { diskFolder, goldens, patchedFolder } from '../../weights/testing/files';
import { type GgufTestValue, ggufHeader, list, text } from '../../weights/testing/gguf';
import { tinyFolder } from '../wan/testing/model';
import { tokenizerMetadata } from './testing/tokenizer';
import { cleanPrompt, createTokenizer, loadTokenizer, tokenizerFilesFromGguf } from './tokenizer';

const folder = diskFolder(`${goldens}model`);
const golden = JSON.parse(await readFile(`${goldens}golden.json`, 'utf8')) as {
  tokenizer_prompts: string[];
  cleaned: string[];
};
const tokenizer = await loadTokenizer(folder);

describe('encodePrompt', () => {
  // The ids of the golden prompts are lines of the parity.
  test('an empty prompt is the end token alone', () => {
    expect(tokenizer.encodePrompt('')).toEqual([1]);
    expect(tokenizer.encodePrompt(' \n')).toEqual([1]);
  });

  test('cleans first', () => {
    expect(tokenizer.encodePrompt('  a &amp;amp; cat ')).toEqual(tokenizer.encodePrompt('a & cat'));
  });

  test('unknown characters become id 3, a run of them one id', () => {
    expect(tokenizer.encodePrompt('🦊')).toContain(3);
    expect(tokenizer.encodePrompt('🦊🦊🦊').filter((id) => id === 3)).toHaveLength(1);
  });

  test('a long prompt is cut to 512 ids and keeps its end token', () => {
    for (const words of [300, 510, 511, 512, 2000]) {
      const ids = tokenizer.encodePrompt('a '.repeat(words));
      expect(ids.length).toBeLessThanOrEqual(512);
      expect(ids.at(-1)).toBe(1);
      expect(ids.filter((id) => id === 1)).toHaveLength(1);
    }
    expect(tokenizer.encodePrompt('a '.repeat(2000))).toHaveLength(512);
  });

  test('counts the tokens that a long prompt has before it is cut', () => {
    expect(tokenizer.measure('a '.repeat(2000)).tokens).toBeGreaterThan(512);
    const { length } = tokenizer.encodePrompt('a cat');
    expect(tokenizer.measure('a cat')).toEqual({ tokens: length, limit: 512, kept: 5 });
  });

  test.each([
    ['words', 'A cat &amp; a dog walk slowly through the wet grass.  '.repeat(60)],
    ['a text without white space', '一只猫慢慢走过潮湿的草地，'.repeat(200)],
    ['pairs of surrogates', '🦊a'.repeat(1000)],
  ])('%s: what is kept is all that the model reads, and no character more', (_, text) => {
    const { tokens, limit, kept } = tokenizer.measure(text);
    expect(tokens).toBeGreaterThan(limit);
    const pieces = (prompt: string) => tokenizer.encodePrompt(prompt).slice(0, -1);
    const own = pieces(text.slice(0, kept));
    // The last piece may be the blank before a word of which nothing is read.
    expect(own.length).toBeGreaterThanOrEqual(limit - 2);
    expect(own).toEqual(pieces(text).slice(0, own.length));
    // One word more does not fit.
    expect(tokenizer.measure(`${text.slice(0, kept)} a`).tokens).toBeGreaterThan(limit);
  });
});

describe('loadTokenizer', () => {
  const json = 'tokenizer/tokenizer.json';
  const config = 'tokenizer/tokenizer_config.json';

  test('a shorter limit of the model counts', async () => {
    const shorter = patchedFolder(folder, {
      [config]: JSON.stringify({ eos_token: { content: '</s>' }, model_max_length: 8 }),
    });
    const ids = (await loadTokenizer(shorter)).encodePrompt('a cat walks slowly through grass');
    expect(ids).toHaveLength(8);
    expect(ids.at(-1)).toBe(1);
  });

  test('an endless limit, as some files have it, is 512', async () => {
    const endless = patchedFolder(folder, {
      [config]: '{"eos_token":"</s>","model_max_length":1e30}',
    });
    expect((await loadTokenizer(endless)).encodePrompt('a '.repeat(2000))).toHaveLength(512);
  });

  test.each([
    ['a missing file', 'MODEL_FILE_MISSING', { [json]: null }],
    ['JSON that is none', 'MODEL_FILE_INVALID', { [json]: '{' }],
    ['another kind of model', 'MODEL_CONFIG_INVALID', { [json]: '{"model":{"type":"BPE"}}' }],
    [
      'a Unigram model without pieces',
      'MODEL_FILE_INVALID',
      { [json]: '{"model":{"type":"Unigram"}}' },
    ],
    ['no end token', 'MODEL_CONFIG_INVALID', { [config]: '{}' }],
    ['an unknown end token', 'MODEL_CONFIG_INVALID', { [config]: '{"eos_token":"<end>"}' }],
  ])('refuses %s', async (_, code, patch) => {
    await expect(loadTokenizer(patchedFolder(folder, patch))).rejects.toMatchObject({ code });
  });
});

test('cleans the golden prompts as the reference does', async () => {
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

interface TokenizerJson {
  readonly model: { readonly vocab: readonly (readonly [string, number])[] };
}
interface GoldenJson {
  readonly tokenizer_prompts: readonly string[];
  readonly tokenizer_ids: readonly number[][];
}

const { vocab } = ((await tinyFolder.json('tokenizer/tokenizer.json')) as TokenizerJson).model;
const goldenFile = (await diskFolder(goldens).json('golden.json')) as GoldenJson;

const metadata = () => tokenizerMetadata(vocab);

async function tokenizerOf(values: Record<string, GgufTestValue>) {
  const bytes = ggufHeader({ metadata: values });
  const header = await readGgufHeader(blobFile('x.gguf', new Blob([bytes])));
  return createTokenizer(tokenizerFilesFromGguf(header));
}

describe('the tokenizer of a GGUF file', () => {
  test('gives the reference’s ids for every goldenFile prompt', async () => {
    const { encodePrompt } = await tokenizerOf(metadata());
    expect(goldenFile.tokenizer_prompts.map(encodePrompt)).toEqual(goldenFile.tokenizer_ids);
  });

  test('agrees with tokenizer.json on texts of unknown characters and literal markers', async () => {
    const ours = await tokenizerOf(metadata());
    const reference = await loadTokenizer(tinyFolder);
    const texts = [
      '日本 cat 語',
      '[PAD174] unused 174',
      'a</s>b',
      '<pad> x',
      '▁cat',
      'ß'.repeat(600),
    ];
    for (const prompt of texts) {
      expect(ours.encodePrompt(prompt), prompt).toEqual(reference.encodePrompt(prompt));
    }
  });

  test('a sentinel is one token', async () => {
    const { encodePrompt } = await tokenizerOf(metadata());
    expect(encodePrompt('<extra_id_0>')).toEqual([vocab.length, 1]);
  });

  test.each<[string, RegExp, string, GgufTestValue | null]>([
    ['none', /no tokenizer/, 'tokenizer.ggml.model', null],
    ['another kind', /kind "gpt2"/, 'tokenizer.ggml.model', text('gpt2')],
    ['no scores', /score/, 'tokenizer.ggml.scores', null],
    ['too few kinds', /kind/, 'tokenizer.ggml.token_type', list(5, [1])],
    ['tokens that are numbers', /piece/, 'tokenizer.ggml.tokens', list(5, [1])],
  ])('%s is refused', async (_, message, key, value) => {
    const { [key]: _old, ...rest } = metadata();
    await expect(tokenizerOf(value ? { ...rest, [key]: value } : rest)).rejects.toThrow(message);
  });
});
