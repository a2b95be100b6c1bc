import type { ErrorRecord, Prediction } from '../../../lib/contract';
import { type ErrorTexts, errorTexts, t } from '../../texts';
import '../../texts/en/run';
import '../../texts/en/studio';

export type Interrupted = Extract<Prediction, { status: 'interrupted' }>;

/** The reason of an interruption, with what to do about it while the run can be resumed. */
export function interruptionReason({ error }: Interrupted): ErrorRecord & Partial<ErrorTexts> {
  switch (error.code) {
    case 'INTERRUPTED':
    case 'INTERNAL':
      return { ...error, ...errorTexts(error), remedy: t('studio.goesOn') };
    case 'DEVICE_LOST':
    case 'OUT_OF_MEMORY':
      return { ...error, ...errorTexts(error), remedy: t('studio.closeOthers') };
    default:
      return error;
  }
}

/** "Interrupted at step 17 of 30", as a heading. */
export function interruptionTitle({ error, checkpoint }: Interrupted): string {
  const { clips, step, steps } = checkpoint;
  const clip = checkpoint.clip + 1;
  const paused = error.code === 'PAUSED';
  if (step === steps) {
    return t(paused ? 'run.pausedDecoding' : 'run.interruptedDecoding', { clip, clips });
  }
  return t(paused ? 'run.pausedAt' : 'run.interruptedAt', { step, steps, clip, clips });
}

/** What Finish early would give; null where it would be the same as to resume. */
export function finishText({ checkpoint }: Interrupted): string | null {
  const { clip, clips, step, steps } = checkpoint;
  if (step === steps && clip === clips - 1) return null;
  if (step < steps) return t('run.finishSteps', { steps: step });
  return t('run.finishClips', { done: clip + 1, clips });
}
