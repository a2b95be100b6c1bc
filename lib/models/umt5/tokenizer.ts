import { Tokenizer } from '@huggingface/tokenizers';
import { decodeHTML } from 'entities';
import { z } from 'zod';
import { KinoraError, type PromptLength } from '../../contract';
import type { GgufHeader, GgufNumbers, GgufValue, ModelFolder } from '../../weights';
import { maxPromptTokens } from './text-encoder-config';

/** What Python's `str` calls white space; JavaScript's `\s` differs by a few characters. */
const whitespace =
  '\\t-\\r\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const runsOfWhitespace = new RegExp(`[${whitespace}]+`, 'g');
const outerSpace = /^ | $/g;

/**
 * Cleans a prompt as diffusers' `prompt_clean` does: HTML entities are resolved twice, every run of
 * white space becomes one space, none stays at the ends. Case is kept.
 *
 * The reference also repairs text that was decoded with the wrong character set (ftfy). That is left
 * out: what people type into a page is intact.
 */
export function cleanPrompt(text: string): string {
  return decodeHTML(decodeHTML(text)).replace(runsOfWhitespace, ' ').replace(outerSpace, '');
}

/** Turns prompts into token ids. */
export interface PromptTokenizer {
  /**
   * Token ids of a prompt, cleaned first, the end token last: 1 to 512 of them, without padding.
   * A longer prompt loses its end but keeps the end token.
   */
  encodePrompt(text: string): number[];
  /** How long a prompt is, and how much of it {@link encodePrompt} keeps. */
  measure(text: string): PromptLength;
}

const configSchema = z.looseObject({
  eos_token: z.union([z.string(), z.looseObject({ content: z.string() })]),
  model_max_length: z.number().positive().default(maxPromptTokens),
});
const tokenizerSchema = z.looseObject({ model: z.looseObject({ type: z.literal('Unigram') }) });

/** Contents of `tokenizer.json` and `tokenizer_config.json`. */
interface TokenizerFiles {
  readonly tokenizer: unknown;
  readonly config: unknown;
}

/**
 * Loads `tokenizer/tokenizer.json` and `tokenizer/tokenizer_config.json`.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`, `MODEL_CONFIG_INVALID`
 */
export async function loadTokenizer(folder: ModelFolder): Promise<PromptTokenizer> {
  const [tokenizer, config] = await Promise.all([
    folder.json('tokenizer/tokenizer.json'),
    folder.json('tokenizer/tokenizer_config.json'),
  ]);
  return createTokenizer({ tokenizer, config });
}

/**
 * Builds a tokenizer. The real vocabulary of 256,384 pieces takes about 0.7 s and 170 MB: do it in the
 * worker and drop it after encoding.
 *
 * @throws KinoraError `MODEL_FILE_INVALID`, `MODEL_CONFIG_INVALID`
 */
export function createTokenizer(files: TokenizerFiles): PromptTokenizer {
  const model = tokenizerSchema.safeParse(files.tokenizer);
  if (!model.success) throw invalid('tokenizer/tokenizer.json is not a Unigram tokenizer.');
  const config = configSchema.safeParse(files.config);
  if (!config.success) throw invalid('tokenizer/tokenizer_config.json has no eos_token.');

  const tokenizer = build(model.data, config.data);
  const eos = config.data.eos_token;
  const endToken = typeof eos === 'string' ? eos : eos.content;
  const endId = tokenizer.token_to_id(endToken);
  if (endId === undefined) {
    throw invalid(`The end token "${endToken}" is not in tokenizer/tokenizer.json.`);
  }
  const limit = Math.min(maxPromptTokens, config.data.model_max_length);

  // The end token is ours to add: so it is there once, whatever the file's template says.
  const encode = (text: string) =>
    tokenizer.encode(cleanPrompt(text), { add_special_tokens: false }).ids;
  return {
    encodePrompt: (text) => [...encode(text).slice(0, limit - 1), endId],
    measure(text) {
      const tokens = encode(text).length + 1;
      const fits = (characters: number) => encode(text.slice(0, characters)).length < limit;
      const kept = tokens > limit ? longestPrefix(text, fits) : text.length;
      return { tokens, limit, kept };
    },
  };
}

/** Characters of the longest beginning that fits; it ends between two characters, not inside of one. */
function longestPrefix(text: string, fits: (characters: number) => boolean): number {
  let [least, most] = [0, text.length];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (fits(middle)) least = middle;
    else most = middle - 1;
  }
  const isSplit = (text.codePointAt(least - 1) ?? 0) > 0xffff;
  return isSplit ? least - 1 : least;
}

function build(tokenizerJson: object, configJson: object): Tokenizer {
  try {
    return new Tokenizer(tokenizerJson, configJson);
  } catch (cause) {
    throw new KinoraError('MODEL_FILE_INVALID', 'tokenizer/tokenizer.json cannot be used.', {
      cause,
    });
  }
}

function invalid(sentence: string): KinoraError {
  return new KinoraError('MODEL_CONFIG_INVALID', sentence);
}

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
