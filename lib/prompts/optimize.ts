import { type PromptOptimization, sentencesOf, withSentences } from '../contract';
import { charactersOf, folded, type Prompt, problemOf, readPrompt } from './checks';
import { generateWithin, type OptimizeOptions } from './language-model';

/** Limit of the video model's text encoder. */
const maxTokens = 512;
/** Most sentences that are added. */
const maxSentences = 3;
/** Tokens of an answer; a sentence that is cut is left out. */
const answerTokens = 120;
/** Characters of an answer that are looked at, where a model has no limit of its own. */
const answerLength = 2000;

const rules =
  'You continue an instruction for an image-to-video model. The picture is given; you cannot see it. ' +
  'Write one to three short, plain sentences that follow the instruction, in the present tense: first how what it names moves, then the camera. ' +
  'Add only small natural motion of what is named. Invent no people, objects, clothes, places, colours or style. ' +
  'Name a given camera move and no other; without one, the camera holds still. ' +
  'Do not repeat the instruction. No mood words, no list, no comment.';

const example =
  'Example\nInstruction: A dog runs along the beach, zoom in.\n' +
  'Answer: Its legs reach forward with long, even steps and its ears move with each step. The camera zooms in slowly on the dog.';

/** The messages to the model; the prompt is data of the second one. */
function requestFor({ original, lexicon }: Prompt) {
  const body = charactersOf(lexicon);
  // Only lists of allowed characters: a negated class lets broken UTF-8 through.
  const grammar =
    lexicon.language === 'zh'
      ? `root ::= sentence{1,${maxSentences}}\nsentence ::= ${body}{6,80} [。！？]`
      : `root ::= sentence (" " sentence){0,${maxSentences - 1}}\nsentence ::= [A-ZÀ-Þ] ${body}{8,200} [.!?]`;
  return {
    system: `${rules} Answer in ${lexicon.name}.\n\n${example}`,
    user: `Instruction: ${original}`,
    grammar,
    maxTokens: answerTokens,
  };
}

/**
 * Continues a prompt with a language model: the result begins with the user's words, byte for byte, and one to
 * three sentences may follow. A sentence that fails a check of `checks.ts`, repeats something, or does not fit the
 * video model's limit is left out.
 *
 * @param prompt the user's prompt
 * @returns the record: the text to use, and what became of it (`used`, `unchanged`, `failed`)
 * @throws the reason of `options.signal`, and what `options.countTokens` throws
 */
export async function optimizePrompt(
  prompt: string,
  options: OptimizeOptions,
): Promise<PromptOptimization> {
  const { model, signal, countTokens, onText, timeLimitMs = 20_000 } = options;
  const now = options.now ?? (() => performance.now());
  const start = now();
  const reasons = new Set<string>();
  let { seed } = options;
  const record = (status: PromptOptimization['status'], text = prompt): PromptOptimization => {
    const ran = status !== 'unchanged';
    return {
      status,
      original: prompt,
      text,
      reasons: [...reasons].slice(0, 50),
      model: ran ? model.name : null,
      sha256: ran ? model.sha256 : null,
      seed: ran ? seed : null,
      milliseconds: Math.max(0, Math.round(now() - start)),
    };
  };

  signal.throwIfAborted();
  const read = readPrompt(prompt);
  if (!read || (await countTokens(prompt)) > maxTokens) {
    reasons.add(read ? 'tokens' : 'language');
    return record('unchanged');
  }
  for (const attempt of [0, 1]) {
    const left = timeLimitMs - (now() - start);
    if (attempt > 0 && left <= 0) break;
    seed = options.seed + attempt;
    const request = { ...requestFor(read), seed, onText };
    const answer = await generateWithin(model, request, left, signal);
    if (answer.timedOut) reasons.add('time limit');
    const written = sentencesOf(answer.text?.slice(0, answerLength) ?? '');
    if (written.length === 0) reasons.add('no result');
    const added: string[] = [];
    for (const sentence of written) {
      if (added.length === maxSentences) break;
      const text = withSentences(prompt, [...added, sentence]);
      const isRepeated = folded(withSentences(prompt, added)).includes(
        folded(sentence.slice(0, -1)),
      );
      let problem = isRepeated ? 'repetition' : problemOf(sentence, read);
      if (!problem && (await countTokens(text)) > maxTokens) problem = 'token limit';
      if (problem) reasons.add(problem);
      else added.push(sentence);
    }
    if (added.length > 0) return record('used', withSentences(prompt, added));
    if (answer.timedOut) break;
  }
  return record('failed');
}
