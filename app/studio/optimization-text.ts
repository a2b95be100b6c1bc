import { formatSeconds } from '../../lib/contract/format';
import type { PromptOptimization } from '../../lib/contract/prompt-optimization';

/** Reasons of a record that are not checks. */
const reasonTexts: Readonly<Record<string, string>> = {
  long: 'it is long enough already',
  empty: 'it has nothing to rewrite beside what must stay',
  language: 'its language is none that can be checked',
  weights: 'it has weights such as (word:1.2)',
  unbalanced: 'a bracket or quote has no counterpart',
  characters: 'it has characters that cannot be checked',
  spans: 'it has too many brackets and quotes',
  tokens: 'it fills the video model’s limit of 512 tokens',
  'time limit': 'the time limit ended the writing',
  'no result': 'the model gave no usable text',
  refused: 'the model’s text names a child in a sexual context',
};

/** What a check of lib/prompts found, by its number. */
const checkTexts: Readonly<Record<string, string>> = {
  V1: 'words that must stay were lost or changed',
  V2: 'it was not whole sentences',
  V3: 'too much was missing, or it was too short or too long',
  V4: 'numbers or names were not the same',
  V5: 'directions or camera moves were not the same',
  V6: 'it changed the language',
  V7: 'it added people',
  V8: 'it was too long for the video model',
  V9: 'it showed what you ruled out',
};

/** One reason of a record, for people. */
function reasonText(reason: string): string {
  return reasonTexts[reason] ?? checkTexts[reason.slice(0, 2)] ?? reason;
}

function reasonsOf({ reasons }: PromptOptimization): string {
  return [...new Set(reasons.map(reasonText))].join('; ');
}

/** What became of an optimisation, in a sentence or two. */
export function outcomeText(record: PromptOptimization): string {
  const { status, model, seed, milliseconds } = record;
  const seconds = milliseconds > 0 ? ` in ${formatSeconds(milliseconds / 1000, true)}` : '';
  const by = `${model ? ` by ${model.replace(/^The /, 'the ')}` : ''}${seconds}${seed === null ? '' : `, seed ${seed}`}`;
  const repeatable = model !== null && seed === null ? ' The same text cannot be made again.' : '';
  switch (status) {
    case 'used':
      return `Improved${by}.${repeatable}`;
    case 'edited':
      return `Improved${by}, then edited.${repeatable}`;
    case 'salvaged':
      return `Your words stand; only single sentences were added${by}.${repeatable}`;
    case 'unchanged':
      return `The prompt stays as it is: ${reasonsOf(record)}.`;
    case 'unavailable':
      return 'The prompt stays as it is: there is no language model in this browser.';
    case 'failed':
      return `Your own words stand, for the model’s text was not usable: ${reasonsOf(record)}.`;
  }
}

/** Whether the time limit is why the model's text was not used as a whole. */
export function ranOutOfTime({ status, reasons }: PromptOptimization): boolean {
  return (status === 'failed' || status === 'salvaged') && reasons.includes('time limit');
}
