import { type Dispatch, useEffect, useState } from 'react';
import { type Created, KinoraError, type Prediction } from '../../../lib/contract';
import { withScales } from '../../../lib/predictions/loras';
import type { SourceFiles } from '../../../lib/predictions/run-input';
import type { Waiting } from '../../../lib/predictions/store';
import { typedDevice } from '../../shared/device';
import { useStable, useSteady } from '../../shared/use-stable';
import { t } from '../../texts';
import '../../texts/en/studio';
import { loadData } from '../use-data';
import {
  browserOptions,
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
   * Puts a request into the form, and holds it: it does not run meanwhile. Rejects with `BUSY` where its turn has come
   * or another tab edits it.
   */
  readonly begin: (waiting: Waiting) => Promise<void>;
  /** Ends it, and puts back what was in the form before. */
  readonly end: () => void;
}

/** A request that is edited, and what was in the form before. */
interface Begun extends Pick<FormState, 'values' | 'files'> {
  readonly id: string;
  /** Lets it run. */
  readonly release: () => void;
}

/** Edits requests of the queue in the form. */
export function useEdit(
  form: FormState,
  change: Dispatch<FormAction>,
  waiting: readonly Waiting[],
): Edit {
  const [edit, setEdit] = useState<Begun | null>(null);
  // What is edited runs when the page is left.
  useEffect(() => () => edit?.release(), [edit]);
  const current = waiting.some(({ prediction }) => prediction.id === edit?.id) ? edit : null;
  const actions = useStable({
    async begin({ prediction, source }: Waiting) {
      const { id } = prediction;
      const { getQueue } = await loadData();
      const release = await getQueue().hold(id);
      if (!release)
        throw new KinoraError('BUSY', t('studio.notEditable'), {
          remedy: t('studio.turnCameRemedy'),
        });
      const { values, files } = current ?? form;
      setEdit({ id, values, files, release });
      change({
        type: 'restored',
        values: valuesOf(prediction, values),
        files: filesOf(prediction, source),
      });
      document.getElementById('prompt')?.focus();
    },
    end() {
      if (current) change({ type: 'restored', values: current.values, files: current.files });
      setEdit(null);
    },
  });
  return useSteady({ id: current?.id ?? null, ...actions });
}

/** The form's values of a request that waits. @param others what a request does not have */
function valuesOf(prediction: Created, others: FormValues): FormValues {
  return {
    ...others,
    ...fromRun(prediction),
    ...typedDevice(prediction.device),
    ...browserOptions(prediction.options),
  };
}

/** The form's files of an earlier request. */
export function filesOf(
  { parameters, options }: Pick<Prediction, 'parameters' | 'options'>,
  { image, imageName, lastImage, loras }: SourceFiles,
): FormFiles {
  const end = options.lastImage;
  return {
    image: { name: imageName, file: image, framing: options.framing },
    lastImage: lastImage && end ? { ...end, file: lastImage } : null,
    loras: withScales(loras, parameters).map(({ name, file, scale }) => {
      return { key: crypto.randomUUID(), name, file, scale: String(scale) };
    }),
  };
}
