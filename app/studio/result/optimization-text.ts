import type { PromptOptimization } from '../../../lib/contract';
import { t } from '../../texts';
import '../../texts/en/improve';
import { formatTime } from '../../texts/format';

/** Reasons of a record, and the checks of lib/prompts. */
const reasons = {
  language: 'language',
  tokens: 'tokens',
  'time limit': 'timeLimit',
  'no result': 'noResult',
  refused: 'refused',
  form: 'form',
  'another language': 'otherLanguage',
  'new person': 'person',
  'camera move': 'camera',
  contradiction: 'contradiction',
  repetition: 'repetition',
  'token limit': 'tokenLimit',
} as const;

/** One reason of a record, for people: what a check found follows after its name. */
function reasonText(reason: string): string {
  const [name = ''] = reason.split(':');
  return Object.hasOwn(reasons, name)
    ? t(`improve.reason.${reasons[name as keyof typeof reasons]}`)
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
  key: 'improve.improved' | 'improve.improvedEdited',
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

/** Whether the time limit is why nothing was added. */
export function ranOutOfTime({ status, reasons }: PromptOptimization): boolean {
  return status === 'failed' && reasons.includes('time limit');
}
