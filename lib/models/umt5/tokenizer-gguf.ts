import { KinoraError } from '../../contract';
import type { GgufHeader, GgufNumbers, GgufValue } from '../../weights';
import { maxPromptTokens } from './text-encoder-config';
import type { TokenizerFiles } from './tokenizer';

/** Kinds of a piece, as SentencePiece and GGUF number them. */
const kinds = { unknown: 2, control: 3, userDefined: 4, unused: 5 } as const;

interface Piece {
  readonly text: string;
  readonly score: number;
  readonly kind: number;
}

/**
 * The tokenizer that llama.cpp's converter puts into a t5encoder file, as the two files that a diffusers
 * folder has. Serves where there is no `tokenizer.json`, with the same ids.
 *
 * SentencePiece's own normalisation rules are in the file too (`precompiled_charsmap`); the tokenizer.json
 * of this model has no normaliser, and what it does counts: split at white space, `▁` before every word,
 * Unigram (README.md, prompts).
 *
 * @throws KinoraError `MODEL_CONFIG_INVALID` when the header has no tokenizer of this kind
 */
export function tokenizerFilesFromGguf(header: GgufHeader): TokenizerFiles {
  const { metadata } = header;
  const model = metadata.get('tokenizer.ggml.model');
  if (model !== 't5') {
    const kind = typeof model === 'string' ? `a tokenizer of the kind "${model}"` : 'no tokenizer';
    throw invalid(`The GGUF file has ${kind}, but a Unigram one ("t5") is needed.`);
  }
  const pieces = piecesOf(metadata);
  const textOf = (key: string, otherwise: string) => {
    const id = metadata.get(`tokenizer.ggml.${key}_token_id`);
    return (typeof id === 'number' ? pieces[id]?.text : undefined) ?? otherwise;
  };
  const byKind = pieces.findIndex(({ kind }) => kind === kinds.unknown);
  const unknownText = textOf('unknown', '<unk>');
  const unknown = byKind >= 0 ? byKind : pieces.findIndex(({ text }) => text === unknownText);
  if (unknown < 0) throw invalid('The tokenizer of the GGUF file has no piece for the unknown.');

  const special = pieces.flatMap(({ text, kind }, id) =>
    kind === kinds.unknown || kind === kinds.control || kind === kinds.userDefined
      ? [{ id, content: text, special: kind !== kinds.userDefined }]
      : [],
  );
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: special.map((token) => ({
      ...token,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [{ type: 'WhitespaceSplit' }, metaspace],
    },
    post_processor: null,
    decoder: metaspace,
    model: { type: 'Unigram', unk_id: unknown, vocab: vocabulary(pieces), byte_fallback: false },
  };
  const config = {
    eos_token: textOf('eos', '</s>'),
    pad_token: textOf('padding', '<pad>'),
    unk_token: pieces[unknown]?.text ?? unknownText,
    model_max_length: maxPromptTokens,
    tokenizer_class: 'T5Tokenizer',
  };
  return { tokenizer, config };
}

const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true };

function piecesOf(metadata: ReadonlyMap<string, GgufValue>): Piece[] {
  const texts = metadata.get('tokenizer.ggml.tokens');
  const scores = metadata.get('tokenizer.ggml.scores');
  const types = metadata.get('tokenizer.ggml.token_type');
  const count = Array.isArray(texts) ? texts.length : 0;
  const valid = isNumbers(scores) && scores.length === count && isNumbers(types);
  if (!Array.isArray(texts) || count === 0 || !valid || types.length !== count) {
    throw invalid('The tokenizer of the GGUF file does not give each piece a score and a kind.');
  }
  return texts.map((text: string, id) => ({
    text,
    score: Number(scores[id]),
    kind: Number(types[id]),
  }));
}

/**
 * Pieces with their scores, each at its id. Those that are not to be found in a text keep their place:
 * white space is split off before, so a text with a blank matches nothing. Their scores (−10000 in
 * padded vocabularies) must not count either: the lowest score of all prices the unknown.
 */
function vocabulary(pieces: readonly Piece[]): [string, number][] {
  return pieces.map(({ text, score, kind }, id) => {
    if (kind === kinds.unused) return [` unused ${id}`, 0];
    return [text, kind === kinds.userDefined ? 0 : score];
  });
}

function isNumbers(value: GgufValue | undefined): value is GgufNumbers {
  return ArrayBuffer.isView(value);
}

function invalid(sentence: string): KinoraError {
  return new KinoraError('MODEL_CONFIG_INVALID', sentence);
}
