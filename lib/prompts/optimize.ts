import type { PromptOptimization } from '../contract';
import { failures, maxTokens } from './checks';
import { grammarFor, instructionFor, maxTokensFor } from './instruction';
import { generateWithin, type OptimizeOptions } from './language-model';
import { contentWords, hasWord } from './lexicon';
import { appendSentences, joinPrompt, type ParsedPrompt, parsePrompt, without } from './protect';
import { cleanAnswer, joinSentences, sentencesOf } from './sentences';

/** An answer this much longer than the source, in characters, is no answer to the instruction. */
const maxGrowth = 2000;
/** Most sentences that a salvaged prompt takes from the model. */
const maxSalvaged = 2;

/**
 * The original with at most two sentences of the model whose content words all are in the original or in the
 * language's list of motion, camera and light; null where no sentence passes the checks.
 */
async function salvaged(
  prompt: ParsedPrompt,
  bodies: readonly string[],
  countTokens: OptimizeOptions['countTokens'],
): Promise<string | null> {
  const { lexicon } = prompt;
  const source = contentWords(without(prompt.source, prompt.inPlace), lexicon);
  const motion = [...lexicon.motion];
  const fits = (sentence: string) => {
    const words = contentWords(sentence, lexicon);
    return (
      !prompt.inPlace.some((span) => sentence.includes(span)) &&
      words.every((word) => hasWord(source, word) || motion.includes(word)) &&
      words.some((word) => !hasWord(source, word))
    );
  };
  const sentences = bodies.flatMap((body) => sentencesOf(body, prompt.inPlace)).filter(fits);
  const kept: string[] = [];
  let result: string | null = null;
  for (const sentence of sentences) {
    if (kept.length === maxSalvaged) break;
    const added = joinSentences([...kept, sentence]);
    const text = appendSentences(prompt, prompt.original, added);
    const body = appendSentences(prompt, prompt.source, added);
    const tokens = await countTokens(text);
    if (failures({ prompt, body, text, tokens }, 'V3 content').length > 0) continue;
    kept.push(sentence);
    result = text;
  }
  return result;
}

/**
 * Rewrites a prompt with a language model so that nothing of it is lost: what must survive is kept apart or
 * forced, the answer is verified by code, and the original is the result in any doubt.
 *
 * @param prompt the user's prompt
 * @returns the record: the text to use, and what became of it (`used`, `salvaged`, `unchanged`, `failed`)
 * @throws the reason of `options.signal`, and what `options.countTokens` throws
 */
export async function optimizePrompt(
  prompt: string,
  options: OptimizeOptions,
): Promise<PromptOptimization> {
  const {
    model,
    signal,
    countTokens,
    timeLimitMs = 20_000,
    now = () => performance.now(),
  } = options;
  const start = now();
  const elapsed = () => Math.max(0, Math.round(now() - start));
  const reasons: string[] = [];
  let { seed } = options;
  const record = (status: PromptOptimization['status'], text: string): PromptOptimization => {
    const ran = status !== 'unchanged';
    return {
      status,
      original: prompt,
      text,
      reasons: [...new Set(reasons)].slice(0, 50),
      model: ran ? model.name : null,
      sha256: ran ? model.sha256 : null,
      seed: ran ? seed : null,
      milliseconds: elapsed(),
    };
  };
  const unchanged = (reason: string) => {
    reasons.push(reason);
    return record('unchanged', prompt);
  };

  signal.throwIfAborted();
  const parsed = parsePrompt(prompt, options.triggerWords);
  if ('reason' in parsed) return unchanged(parsed.reason);
  if ((await countTokens(prompt)) > maxTokens) return unchanged('tokens');

  const request = {
    ...instructionFor(parsed),
    grammar: grammarFor(parsed),
    maxTokens: maxTokensFor(parsed),
    onText: options.onText,
  };
  const bodies: string[] = [];
  for (const attempt of [0, 1]) {
    const left = timeLimitMs - (now() - start);
    if (attempt > 0 && left <= 0) break;
    seed = options.seed + attempt;
    const answer = await generateWithin(model, { ...request, seed }, left, signal);
    if (answer.timedOut) reasons.push('time limit');
    if (answer.text === null || answer.text.length > parsed.source.length + maxGrowth) {
      reasons.push('no result');
    } else {
      const body = cleanAnswer(answer.text, parsed.inPlace);
      const text = joinPrompt(parsed, body);
      const problems = failures({ prompt: parsed, body, text, tokens: await countTokens(text) });
      if (problems.length === 0) return record('used', text);
      reasons.push(...problems);
      bodies.unshift(body);
    }
    if (answer.timedOut) break;
  }
  const text = await salvaged(parsed, bodies, countTokens);
  return text === null ? record('failed', prompt) : record('salvaged', text);
}
