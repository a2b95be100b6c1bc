/** A tokenizer as GGUF text encoders carry it; for tests. */
import { readFile } from 'node:fs/promises';
import { blobFile, readGgufHeader } from '../../../weights';
import { goldens } from '../../../weights/testing/files';
import { type GgufTestValue, ggufHeader, list, text, u32 } from '../../../weights/testing/gguf';
import { tinyFolder } from '../../wan/testing/model';

/** Pieces with their scores, by id. */
type Vocabulary = readonly (readonly [piece: string, score: number])[];

/** Metadata as llama.cpp's converter writes it: padded with unused pieces, sentinels added. */
export function tokenizerMetadata(vocab: Vocabulary): Record<string, GgufTestValue> {
  const kinds = vocab.map((_, id) => (id === 3 ? 2 : id < 3 ? 3 : 1));
  const tokens = [...vocab.map(([piece]) => piece), '<extra_id_0>', '[PAD174]', '[PAD175]'];
  const scores = [...vocab.map(([, score]) => score), -1000, -10_000, -10_000];
  return {
    'general.architecture': text('t5encoder'),
    'tokenizer.ggml.model': text('t5'),
    'tokenizer.ggml.tokens': list(8, tokens),
    'tokenizer.ggml.scores': list(6, scores),
    'tokenizer.ggml.token_type': list(5, [...kinds, 4, 5, 5]),
    'tokenizer.ggml.eos_token_id': u32(1),
    'tokenizer.ggml.padding_token_id': u32(0),
    'tokenizer.ggml.add_space_prefix': { type: 7, value: 1 },
    'tokenizer.ggml.remove_extra_whitespaces': { type: 7, value: 1 },
  };
}

/** The golden text encoder in Q8_0, with a tokenizer in its header as public files have it. */
export async function textEncoderWithTokenizer(): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(await readFile(`${goldens}formats/text-encoder-Q8_0.gguf`));
  const header = await readGgufHeader(blobFile('text-encoder', new Blob([bytes])));
  const json = await tinyFolder.json('tokenizer/tokenizer.json');
  const { vocab } = (json as { readonly model: { readonly vocab: Vocabulary } }).model;
  const types: Readonly<Record<string, number>> = { F32: 0, F16: 1, Q8_0: 8 };
  const entries = [...header.tensors].sort(([, a], [, b]) => a.start - b.start);
  const first = entries[0]?.[1].start ?? 0;
  const tensors = entries.map(([name, { dtype, shape, start, end }]) => {
    const type = types[dtype];
    if (type === undefined) throw new TypeError(`${name} is of the type ${dtype}`);
    return { name, shape, type, bytes: end - start, offset: BigInt(start - first) };
  });
  const start = ggufHeader({ metadata: tokenizerMetadata(vocab), tensors });
  const whole = new Uint8Array(start.length + bytes.length - first);
  whole.set(start);
  whole.set(bytes.subarray(first), start.length);
  return whole;
}
