import type { PromptOptimization } from '../../../lib/contract/prompt-optimization';
import { type TextKey, t } from '../../texts';
import '../../texts/en/improve';
import { formatTime } from '../../texts/format';

/** Reasons of a record that are not checks. */
const reasons = {
  long: 'long',
  empty: 'empty',
  language: 'language',
  weights: 'weights',
  unbalanced: 'unbalanced',
  characters: 'characters',
  spans: 'spans',
  tokens: 'tokens',
  'time limit': 'timeLimit',
  'no result': 'noResult',
  refused: 'refused',
} as const;

/** One reason of a record, for people: a check of lib/prompts begins with its number, V1 to V9. */
function reasonText(reason: string): string {
  if (/^V[1-9]/.test(reason)) return t(`improve.check.${reason.slice(0, 2)}` as TextKey);
  return reason in reasons
    ? t(`improve.reason.${reasons[reason as keyof typeof reasons]}`)
    : reason;
}

function reasonsOf({ reasons }: PromptOptimization): string {
  const [first = '', ...others] = new Set(reasons.map(reasonText));
  return others.reduce(
    (before, next) => t('improve.twoReasons', { first: before, second: next }),
    first,
  );
}

/** What became of an optimisation, in a sentence or two. */
export function outcomeText(record: PromptOptimization): string {
  switch (record.status) {
    case 'used':
      return madeText('improve.improved', record);
    case 'edited':
      return madeText('improve.improvedEdited', record);
    case 'salvaged':
      return madeText('improve.salvaged', record);
    case 'unchanged':
      return t('improve.unchanged', { reasons: reasonsOf(record) });
    case 'unavailable':
      return t('improve.noLanguageModel');
    case 'failed':
      return t('improve.unusable', { reasons: reasonsOf(record) });
  }
}

/** How a text was made. */
function madeText(
  key: 'improve.improved' | 'improve.improvedEdited' | 'improve.salvaged',
  { model, seed, milliseconds }: PromptOptimization,
): string {
  return t(key, {
    by: model === null ? '' : t('improve.improvedBy', { model }),
    time:
      milliseconds > 0
        ? t('improve.improvedIn', { time: formatTime(milliseconds / 1000, true) })
        : '',
    seed: seed === null ? '' : t('improve.improvedSeed', { seed }),
  });
}

/** Whether the time limit is why the model's text was not used as a whole. */
export function ranOutOfTime({ status, reasons }: PromptOptimization): boolean {
  return (status === 'failed' || status === 'salvaged') && reasons.includes('time limit');
}
