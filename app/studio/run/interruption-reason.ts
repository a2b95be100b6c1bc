import type { ErrorRecord } from '../../../lib/contract/errors';
import type { Prediction } from '../../../lib/contract/prediction';
import { type ErrorTexts, errorTexts, t } from '../../texts';
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
