import { isFlagged, type Safety } from '../../lib/contract/safety';
import type { RunProgress } from '../../lib/predictions/run-state';

/** What the check of a result found, in one line. @param safety absent in records of earlier versions */
export function verdictText(safety: Safety | undefined): string {
  if (!safety) return 'Not checked: this video is older than the safety checker.';
  const { status, reason } = safety;
  switch (status) {
    case 'clear':
    case 'flagged':
      return `${status === 'clear' ? 'Clear' : 'Flagged'}${scoreText(safety)}${inputText(safety)}`;
    case 'off':
      return 'Not checked: the safety check was switched off.';
    case 'unverified':
      if (reason === 'failed') return 'No verdict: the safety check failed.';
      if (reason === 'missing') return 'No verdict: the safety checker is not in this browser.';
      return 'Nothing was checked: the demonstration model runs without the safety checker. This is no verdict.';
  }
}

function scoreText({ score, threshold, frames, model }: Safety): string {
  const by = model ? ` by ${model}` : '';
  const numbers = score === null ? '' : `, score ${twoDigits(score)} (${threshold} flags)`;
  return `${by}${numbers}, ${frames.length} frames looked at.`;
}

function inputText(safety: Safety): string {
  if (safety.input === null || !isInputFlagged(safety)) return '';
  return ` The start image was flagged too, score ${twoDigits(safety.input)}.`;
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
  if (safety.status === 'flagged') return 'The safety checker flagged this video.';
  if (safety.reason === 'failed') return 'The safety check of this video failed.';
  return 'This video was not checked: the safety checker is not in this browser.';
}

/** Why the preview of a run is blurred until it is clicked; null where it is not. */
export function previewBlurReason(inputCheck: RunProgress['inputCheck']): string | null {
  if (inputCheck?.flagged) return 'The safety checker flagged the start image.';
  if (inputCheck?.score === null) return 'The safety check of the start image failed.';
  return null;
}
