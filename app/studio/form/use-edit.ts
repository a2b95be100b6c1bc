import { type Dispatch, useEffect, useState } from 'react';
import { KinoraError } from '../../../lib/contract/errors';
import type { Parameters } from '../../../lib/contract/request';
import type { RunOptions } from '../../../lib/contract/run';
import { withScales } from '../../../lib/predictions/loras';
import type { QueueEntry } from '../../../lib/predictions/queue/queue';
import type { WaitingInput } from '../../../lib/predictions/run-input';
import { typedDevice } from '../../shared/device';
import { t } from '../../texts';
import '../../texts/en/studio';
import { loadData } from '../use-data';
import {
  browserOptions,
  type ChosenImage,
  type FormAction,
  type FormFiles,
  type FormState,
  type FormValues,
  fromRun,
} from './form-state';

/** The request of the queue that is in the form to be changed. */
export interface Edit {
  /** Null while none is: also when its turn has come, or another tab has removed it. */
  readonly id: string | null;
  /**
   * Puts an entry into the form, and holds it: it does not run meanwhile. Rejects with `BUSY` where its turn has come
   * or another tab edits it, and where the schemas of a request cannot be loaded.
   */
  readonly begin: (entry: QueueEntry) => Promise<void>;
  /** Ends it, and puts back what was in the form before. */
  readonly end: () => void;
}

/** An entry that is edited, and what was in the form before. */
interface Begun extends Pick<FormState, 'values' | 'files'> {
  readonly id: string;
  /** Lets the entry run. */
  readonly release: () => void;
}

/** Edits entries of the queue in the form. */
export function useEdit(
  form: FormState,
  change: Dispatch<FormAction>,
  entries: readonly QueueEntry[],
): Edit {
  const [edit, setEdit] = useState<Begun | null>(null);
  // What is edited runs when the page is left.
  useEffect(() => () => edit?.release(), [edit]);
  const current = entries.some(({ id }) => id === edit?.id) ? edit : null;
  return {
    id: current?.id ?? null,
    async begin({ id, input }) {
      const { parseParameters } = await import('../../../lib/contract/request');
      const { getQueueRunner } = await loadData();
      const parameters = parseParameters(input.parameters);
      const release = await getQueueRunner().hold(id);
      if (!release)
        throw new KinoraError('BUSY', t('studio.notEditable'), {
          remedy: t('studio.turnCameRemedy'),
        });
      const { values, files } = current ?? form;
      setEdit({ id, values, files, release });
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

/** The form's values of a request that waits. @param others what a request does not have */
export function valuesOf(
  input: WaitingInput,
  parameters: Parameters,
  others: FormValues,
): FormValues {
  const { model, profile, options, device } = input;
  return {
    ...others,
    ...fromRun({ model, profile, options, parameters, backend: device.backend }),
    ...typedDevice(device),
    ...browserOptions(options),
  };
}

/** The end image of a request for the form; null without one. */
export function chosenLast(file: Blob | undefined, { lastImage }: RunOptions): ChosenImage | null {
  return file && lastImage ? { ...lastImage, file } : null;
}

function filesOf(
  { image, imageName, lastImage, options, loras }: WaitingInput,
  parameters: Parameters,
): FormFiles {
  const scaled = withScales(loras, parameters);
  return {
    image: { name: imageName, file: image, framing: options.framing },
    lastImage: chosenLast(lastImage, options),
    loras: scaled.map(({ scale, ...lora }) => {
      return { ...lora, key: crypto.randomUUID(), scale: String(scale) };
    }),
  };
}
