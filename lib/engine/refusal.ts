import { KinoraError } from '../contract';
import { isRefusedPrompt, namesChild } from '../contract/prompt-refusal';

/** @throws KinoraError `PROMPT_REFUSED` */
export function requireAllowedPrompt(prompt: string): void {
  if (isRefusedPrompt(prompt)) throw new KinoraError('PROMPT_REFUSED');
}

/**
 * Refuses what the safety checker has flagged where a text of the request names a child.
 *
 * @throws KinoraError `PROMPT_REFUSED`
 */
export function requireNoChild(flagged: 'image' | 'video', texts: readonly string[]): void {
  if (!texts.some(namesChild)) return;
  throw new KinoraError(
    'PROMPT_REFUSED',
    `The prompt names a child and the safety checker flags the ${flagged}; Kinora never delivers such a video.`,
    { remedy: flagged === 'image' ? 'Use another image or prompt.' : 'Change the prompt.' },
  );
}
