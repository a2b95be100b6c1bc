import type { Prediction } from '../../../lib/contract/prediction';

/** File name of a finished video where it is saved. */
export function videoName({ id, result }: Extract<Prediction, { status: 'completed' }>): string {
  return `kinora-${result.seed}-${id.slice(0, 8)}.mp4`;
}
