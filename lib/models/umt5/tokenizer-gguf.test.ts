import { describe, expect, test } from 'vitest';
import { blobFile, readGgufHeader } from '../../weights';
import { diskFolder, goldens } from '../../weights/testing/files';
import { type GgufTestValue, ggufHeader, list, text } from '../../weights/testing/gguf';
import { tinyFolder } from '../wan/testing/model';
import { tokenizerMetadata } from './testing/tokenizer';
import { createTokenizer, loadTokenizer } from './tokenizer';
import { tokenizerFilesFromGguf } from './tokenizer-gguf';

interface TokenizerJson {
  readonly model: { readonly vocab: readonly (readonly [string, number])[] };
}
interface GoldenJson {
  readonly tokenizer_prompts: readonly string[];
  readonly tokenizer_ids: readonly number[][];
}

const { vocab } = ((await tinyFolder.json('tokenizer/tokenizer.json')) as TokenizerJson).model;
const golden = (await diskFolder(goldens).json('golden.json')) as GoldenJson;

const metadata = () => tokenizerMetadata(vocab);

async function tokenizerOf(values: Record<string, GgufTestValue>) {
  const bytes = ggufHeader({ metadata: values });
  const header = await readGgufHeader(blobFile('x.gguf', new Blob([bytes])));
  return createTokenizer(tokenizerFilesFromGguf(header));
}

describe('the tokenizer of a GGUF file', () => {
  test('gives the reference’s ids for every golden prompt', async () => {
    const { encodePrompt } = await tokenizerOf(metadata());
    expect(golden.tokenizer_prompts.map(encodePrompt)).toEqual(golden.tokenizer_ids);
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
