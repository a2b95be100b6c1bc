import { type Dispatch, useState } from 'react';
import type { Parameters } from '../../../lib/contract/request';
import { withScales } from '../../../lib/predictions/loras';
import type { QueueEntry } from '../../../lib/predictions/queue/queue';
import { switchesOf, type WaitingInput } from '../../../lib/predictions/run-input';
import {
  type FormAction,
  type FormFiles,
  type FormState,
  type FormValues,
  fromBudgetBytes,
  fromRun,
} from './form-state';

/** The request of the queue that is in the form to be changed. */
export interface Edit {
  /** Null while none is: also when its turn has come, or another tab has removed it. */
  readonly id: string | null;
  /** Puts an entry into the form. Rejects where the schemas of a request cannot be loaded. */
  readonly begin: (entry: QueueEntry) => Promise<void>;
  /** Ends it, and puts back what was in the form before. */
  readonly end: () => void;
}

/** Edits entries of the queue in the form. */
export function useEdit(
  form: FormState,
  change: Dispatch<FormAction>,
  entries: readonly QueueEntry[],
): Edit {
  const [edit, setEdit] = useState<(Pick<FormState, 'values' | 'files'> & { id: string }) | null>(
    null,
  );
  const current = entries.some(({ id }) => id === edit?.id) ? edit : null;
  return {
    id: current?.id ?? null,
    async begin({ id, input }) {
      const { parseParameters } = await import('../../../lib/contract/request');
      const parameters = parseParameters(input.parameters);
      const { values, files } = current ?? form;
      setEdit({ id, values, files });
      change({
        type: 'restored',
        values: valuesOf(input, parameters, values),
        files: filesOf(input, parameters),
      });
      document.getElementById('prompt')?.focus();
    },
    end() {
      if (current) change({ type: 'restored', values: current.values, files: current.files });
      setEdit(null);
    },
  };
}

/** @param others what a request does not have */
function valuesOf(input: WaitingInput, parameters: Parameters, others: FormValues): FormValues {
  const { model, backend, profile = 'standard', memoryBudget, safetyChecker = false } = input;
  return {
    ...others,
    ...fromRun({ ...switchesOf(input), model, backend, profile, parameters }),
    memoryBudget: fromBudgetBytes(memoryBudget),
    safetyChecker,
  };
}

function filesOf(
  { image, imageName, framing, loras }: WaitingInput,
  parameters: Parameters,
): FormFiles {
  const scaled = withScales(loras, parameters);
  return {
    image: { name: imageName, file: image, ...(framing && { framing }) },
    loras: scaled.map(({ scale, ...lora }) => {
      return { ...lora, key: crypto.randomUUID(), scale: String(scale) };
    }),
  };
}
