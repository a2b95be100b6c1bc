import type { Prediction } from '../../../lib/contract';

/** File name of a finished video where it is saved. */
export function videoName({ id, parameters }: Pick<Prediction, 'id' | 'parameters'>): string {
  return `kinora-${parameters.seed}-${id.slice(0, 8)}.mp4`;
}
