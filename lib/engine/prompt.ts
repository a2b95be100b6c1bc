import {
  type EngineRequest,
  KinoraError,
  namesChild,
  type ProgressEvent,
  type PromptOptimization,
} from '../contract';
import { type OptimizerDependencies, optimiserStep } from '../language-model';
import type { VideoModel } from '../pipeline/model';

/**
 * The record of the optimisation that a request asks for, whose text is the prompt of the video; null
 * where it asks for none. An optimisation that was made before is kept as it is; one whose text was changed
 * since is `edited`.
 *
 * @param model its tokenizer limits the length
 * @throws KinoraError `CANCELLED`
 */
export async function optimisationOf(
  { parameters, options: { promptOptimizer = false } }: EngineRequest,
  model: VideoModel,
  optimizer: OptimizerDependencies,
  signal: AbortSignal,
  report: (event: ProgressEvent) => void,
): Promise<PromptOptimization | null> {
  const { prompt, seed } = parameters;
  if (promptOptimizer === false) return null;
  if (promptOptimizer !== true) {
    if (promptOptimizer.text === prompt) return promptOptimizer;
    return { ...promptOptimizer, status: 'edited', text: prompt };
  }
  let meter: ReturnType<VideoModel['promptMeter']> | undefined;
  return optimiserStep(optimizer, prompt, {
    seed,
    async countTokens(text) {
      meter ??= model.promptMeter();
      return (await meter)(text).tokens;
    },
    signal,
    report,
  });
}

/**
 * Refuses what the safety checker has flagged where a text of the request names a child.
 *
 * @throws KinoraError `PROMPT_REFUSED`
 */
export function requireNoChild(
  flagged: 'image' | 'video',
  texts: readonly (string | undefined)[],
): void {
  if (!texts.some((text) => text !== undefined && namesChild(text))) return;
  throw new KinoraError(
    'PROMPT_REFUSED',
    `The prompt names a child and the safety checker flags the ${flagged}; Kinora never delivers such a video.`,
    { remedy: flagged === 'image' ? 'Use another image or prompt.' : 'Change the prompt.' },
  );
}
