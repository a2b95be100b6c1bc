import type { Prediction } from '../../../lib/contract/prediction';

/** Length of a video in seconds, to a tenth; of one that is not finished, as it was asked for. */
export function secondsOf(prediction: Prediction): number {
  if (prediction.status !== 'completed' || !prediction.parts) return prediction.parameters.duration;
  const { frames, frameRate } = prediction.result;
  return Math.round((frames / frameRate) * 10) / 10;
}
