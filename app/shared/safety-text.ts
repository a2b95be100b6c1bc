import { isFlagged, isQuickCheck, type Safety } from '../../lib/contract';
import type { RunProgress } from '../../lib/predictions/run-state';
import { t } from '../texts';

/** What the check of a result found, in one line. @param safety absent in records of earlier versions */
export function verdictText(safety: Safety | undefined): string {
  if (!safety) return t('shared.verdictOld');
  const { status, reason } = safety;
  switch (status) {
    case 'clear':
    case 'flagged':
      return [scoreText(safety), ...inputText(safety)].join(' ');
    case 'off':
      return t('shared.verdictOff');
    case 'unverified':
      return t(reason === 'failed' ? 'shared.verdictFailed' : 'shared.verdictMissing');
  }
}

function scoreText(safety: Safety): string {
  const { status, score, threshold, frames, model } = safety;
  return t(isQuickCheck(safety) ? 'shared.verdictQuick' : 'shared.verdict', {
    status,
    by: model ? t('shared.verdictBy', { model }) : '',
    score: score === null ? '' : t('shared.verdictScore', { score: twoDigits(score), threshold }),
    frames: frames.length,
  });
}

function inputText(safety: Safety): string[] {
  if (safety.input === null || !isInputFlagged(safety)) return [];
  return [t('shared.verdictInput', { score: twoDigits(safety.input) })];
}

/** Rounded down, so that a score below the threshold does not look as if it had reached it. */
export function twoDigits(score: number): string {
  return (Math.floor(score * 100) / 100).toFixed(2);
}

/** Whether the start image itself was flagged. */
export function isInputFlagged({ input, threshold }: Safety): boolean {
  return input !== null && input >= threshold;
}

/** Why a result is blurred until it is clicked; null where it is not. */
export function blurReason(safety: Safety | undefined): string | null {
  if (!safety || !isFlagged(safety)) return null;
  if (safety.status === 'flagged') {
    return t(isQuickCheck(safety) ? 'shared.blurQuick' : 'shared.blurFlagged');
  }
  if (safety.reason === 'failed') return t('shared.blurFailed');
  return t('shared.blurMissing');
}

/** Why the preview of a run is blurred until it is clicked; null where it is not. */
export function previewBlurReason(inputCheck: RunProgress['inputCheck']): string | null {
  if (inputCheck?.flagged) return t('shared.blurInput');
  if (inputCheck?.score === null) return t('shared.blurInputFailed');
  return null;
}
