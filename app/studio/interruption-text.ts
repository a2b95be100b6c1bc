import type { ErrorRecord } from '../../lib/contract/errors';
import type { Prediction } from '../../lib/contract/prediction';

export type Interrupted = Extract<Prediction, { status: 'interrupted' }>;

/** "Interrupted at step 17 of 30", as a heading. */
export function interruptionTitle({ error, checkpoint }: Interrupted): string {
  const { clip, clips, step, steps } = checkpoint;
  const happened = error.code === 'PAUSED' ? 'Paused' : 'Interrupted';
  const where = step === steps ? 'while decoding' : `at step ${step} of ${steps}`;
  return `${happened} ${where}${clips > 1 ? `, clip ${clip + 1} of ${clips}` : ''}`;
}

const goesOn = 'Resume it when you like: it goes on where it was.';

/** The reason of an interruption, with what to do about it while the run can be resumed. */
export function interruptionReason({ error }: Interrupted): ErrorRecord {
  switch (error.code) {
    case 'INTERRUPTED':
    case 'INTERNAL':
      return { ...error, remedy: goesOn };
    case 'DEVICE_LOST':
    case 'OUT_OF_MEMORY':
      return { ...error, remedy: 'Close other programs that use the GPU, then resume it.' };
    default:
      return error;
  }
}

/** What Finish early would give; null where it would be the same as to resume. */
export function finishText({ checkpoint }: Interrupted): string | null {
  const { clip, clips, step, steps } = checkpoint;
  if (step === steps && clip === clips - 1) return null;
  if (step < steps) return `Finish early decodes what ${count(step, 'step')} gave.`;
  return `Finish early decodes ${count(clip + 1, 'clip')} of ${clips}.`;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
