import type { Prediction } from '../../../lib/contract/prediction';
import { t } from '../../texts';
import '../../texts/en/gallery';

/**
 * How many videos are shown. A run that was interrupted has no video, so it is not counted as one.
 *
 * @param failed whether failed runs are shown, and nothing else
 */
export function countText(shown: readonly Pick<Prediction, 'status'>[], failed: boolean): string {
  if (failed) return t('gallery.countFailed', { count: shown.length });
  const interrupted = shown.filter(({ status }) => status === 'interrupted').length;
  const videos = t('gallery.count', { count: shown.length - interrupted });
  if (interrupted === 0) return videos;
  const others = t('gallery.countInterrupted', { count: interrupted });
  return interrupted === shown.length
    ? others
    : t('shared.listOf', { first: videos, second: others });
}
