import type { PromptOptimization } from '../../../lib/contract/prompt-optimization';
import { type TextKey, t } from '../../texts';
import '../../texts/en/run';
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
  if (/^V[1-9]/.test(reason)) return t(`run.check.${reason.slice(0, 2)}` as TextKey);
  return reason in reasons ? t(`run.reason.${reasons[reason as keyof typeof reasons]}`) : reason;
}

function reasonsOf({ reasons }: PromptOptimization): string {
  const [first = '', ...others] = new Set(reasons.map(reasonText));
  return others.reduce(
    (before, next) => t('run.twoReasons', { first: before, second: next }),
    first,
  );
}

/** What became of an optimisation, in a sentence or two. */
export function outcomeText(record: PromptOptimization): string {
  switch (record.status) {
    case 'used':
      return madeText('run.improved', record);
    case 'edited':
      return madeText('run.improvedEdited', record);
    case 'salvaged':
      return madeText('run.salvaged', record);
    case 'unchanged':
      return t('run.unchanged', { reasons: reasonsOf(record) });
    case 'unavailable':
      return t('run.noLanguageModel');
    case 'failed':
      return t('run.unusable', { reasons: reasonsOf(record) });
  }
}

/** How a text was made. */
function madeText(
  key: 'run.improved' | 'run.improvedEdited' | 'run.salvaged',
  { model, seed, milliseconds }: PromptOptimization,
): string {
  return t(key, {
    by: model === null ? '' : t('run.improvedBy', { model }),
    time:
      milliseconds > 0 ? t('run.improvedIn', { time: formatTime(milliseconds / 1000, true) }) : '',
    seed: seed === null ? '' : t('run.improvedSeed', { seed }),
  });
}

/** Whether the time limit is why the model's text was not used as a whole. */
export function ranOutOfTime({ status, reasons }: PromptOptimization): boolean {
  return (status === 'failed' || status === 'salvaged') && reasons.includes('time limit');
}
