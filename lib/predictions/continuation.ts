import type { Completed, DeviceOptions, Prediction, RunOptions } from '../contract';
import type { Source } from './database';
import type { RunInput } from './run-input';

/** Differences of a continuation from the video that it continues. */
export interface ContinuationChanges {
  readonly prompt: string;
  /** In seconds. */
  readonly duration: number;
  /** What its motion is kept by: its last latents, or the video; null where it goes on from the picture. */
  readonly before: Blob | null;
  /** Take the place of the options of that video. */
  readonly options: RunOptions;
  readonly device: DeviceOptions;
}

/**
 * The input of a run that continues a finished video: with its settings and adapters, a new seed, and its
 * last frame as the start image.
 *
 * @param image as `continuationImage` of `lib/video` makes it
 */
export function continuationOf(
  prediction: Completed,
  { loras }: Pick<Source, 'loras'>,
  image: Blob,
  { prompt, duration, before, options: changed, device }: ContinuationChanges,
): RunInput {
  const { id, model, profile, parameters, options } = prediction;
  const { promptOptimizer } = options;
  const { last_image_at: _, ...settings } = parameters;
  // The record of an optimisation belongs to its prompt.
  const keepsPrompt = prompt === parameters.prompt;
  return {
    image,
    imageName: 'last-frame.png',
    loras,
    before: before ?? undefined,
    model,
    profile,
    continues: id,
    parameters: { ...settings, prompt, duration, seed: -1 },
    options: {
      ...options,
      framing: undefined,
      lastImage: undefined,
      promptOptimizer: keepsPrompt || promptOptimizer === true ? promptOptimizer : undefined,
      ...changed,
    },
    device,
  };
}

/**
 * A finished video and the ones that it continues, the first one first. It ends at one that is not there
 * any more.
 */
export async function chainOf(
  prediction: Completed,
  get: (id: string) => Promise<Prediction | undefined>,
): Promise<readonly Completed[]> {
  const chain = [prediction];
  for (let { continues } = prediction; continues !== undefined; ) {
    const earlier = await get(continues);
    if (earlier?.status !== 'completed') break;
    chain.unshift(earlier);
    ({ continues } = earlier);
  }
  return chain;
}
