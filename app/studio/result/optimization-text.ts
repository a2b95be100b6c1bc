import type { PromptOptimization } from '../../../lib/contract/prompt-optimization';
import { type TextKey, t } from '../../texts';
import '../../texts/en/run';
import { formatTime } from '../../texts/format';

/** Reasons of a record that are not checks. */
const reasonTexts: Readonly<Record<string, TextKey>> = {
  long: 'run.reason.long',
  empty: 'run.reason.empty',
  language: 'run.reason.language',
  weights: 'run.reason.weights',
  unbalanced: 'run.reason.unbalanced',
  characters: 'run.reason.characters',
  spans: 'run.reason.spans',
  tokens: 'run.reason.tokens',
  'time limit': 'run.reason.timeLimit',
  'no result': 'run.reason.noResult',
  refused: 'run.reason.refused',
};

/** What a check of lib/prompts found, by its number. */
const checkTexts: Readonly<Record<string, TextKey>> = {
  V1: 'run.check.V1',
  V2: 'run.check.V2',
  V3: 'run.check.V3',
  V4: 'run.check.V4',
  V5: 'run.check.V5',
  V6: 'run.check.V6',
  V7: 'run.check.V7',
  V8: 'run.check.V8',
  V9: 'run.check.V9',
};

/** One reason of a record, for people. */
function reasonText(reason: string): string {
  const key = reasonTexts[reason] ?? checkTexts[reason.slice(0, 2)];
  return key ? t(key) : reason;
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
