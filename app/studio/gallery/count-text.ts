import type { Prediction } from '../../../lib/contract';
import { isCancelled } from '../../../lib/predictions/prediction-state';
import { t } from '../../texts';
import '../../texts/en/gallery';

/** `2 failed, 1 cancelled`: runs that have no video and cannot go on. */
export function failedText(rows: readonly Prediction[]): string {
  const cancelled = rows.filter(isCancelled).length;
  const failed = rows.length - cancelled;
  const texts = [
    ...(failed > 0 || cancelled === 0 ? [t('gallery.countFailed', { count: failed })] : []),
    ...(cancelled > 0 ? [t('gallery.countCancelled', { count: cancelled })] : []),
  ];
  return texts.reduce((first, second) => t('shared.listOf', { first, second }));
}

/**
 * How many videos are shown. A run that was interrupted has no video, so it is not counted as one.
 *
 * @param failed whether failed runs are shown, and nothing else
 */
export function countText(shown: readonly Prediction[], failed: boolean): string {
  if (failed) return failedText(shown);
  const interrupted = shown.filter(({ status }) => status === 'interrupted').length;
  const videos = t('gallery.count', { count: shown.length - interrupted });
  if (interrupted === 0) return videos;
  const others = t('gallery.countInterrupted', { count: interrupted });
  return interrupted === shown.length
    ? others
    : t('shared.listOf', { first: videos, second: others });
}
