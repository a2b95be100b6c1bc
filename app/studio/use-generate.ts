import { type Dispatch, type RefObject, useRef, useState } from 'react';
import { type ErrorRecord, KinoraError, toKinoraError } from '../../lib/contract/errors';
import { openLora } from '../../lib/library';
import type { SourceLora } from '../../lib/predictions/database';
import type { StartedRun } from '../../lib/predictions/runner';
import { getRunner } from '../runner';
import { loadModels, pickModel } from '../shared/use-models';
import {
  type ChosenLora,
  type FormAction,
  type FormState,
  toBudgetBytes,
  toParameters,
} from './form-state';
import { chosenSampling } from './sampling';
import { findErrors } from './validation';

/** Starts runs from the form and of past predictions. `startError` is an error before a row exists. */
export function useGenerate(options: {
  form: FormState;
  change: Dispatch<FormAction>;
  formRef: RefObject<HTMLFormElement | null>;
  onStart: () => void;
  onEnded: (id: string) => void;
}): {
  generate: () => Promise<void>;
  runAgain: (id: string) => Promise<void>;
  startError: ErrorRecord | null;
} {
  const { form, change, formRef, onStart, onEnded } = options;
  const [startError, setStartError] = useState<ErrorRecord | null>(null);
  const starting = useRef(false);

  async function start(work: () => Promise<StartedRun>): Promise<void> {
    if (starting.current || getRunner().getSnapshot().status !== 'idle') return;
    // This comes first, because browsers may require a recent click for it.
    void navigator.storage.persist();
    setStartError(null);
    onStart();
    starting.current = true;
    try {
      const { id, ended } = await work().finally(() => {
        starting.current = false;
      });
      await ended;
      onEnded(id);
    } catch (thrown) {
      setStartError(toKinoraError(thrown).toRecord());
    }
  }

  const memoryBudget = toBudgetBytes(form.values.memoryBudget);
  const memory = memoryBudget === undefined ? {} : { memoryBudget };

  async function generate(): Promise<void> {
    const { image, loras } = form.files;
    if (!image || Object.keys(findErrors(form)).length > 0) {
      change({ type: 'checked' });
      // The marks are rendered in the next frame.
      requestAnimationFrame(() => revealFirstError(formRef.current));
      return;
    }
    await start(async () => {
      const model = pickModel(await loadModels(), form.values.model);
      if (!model) throw new KinoraError('MODEL_UNKNOWN');
      const { id, name } = model.manifest;
      if (!model.ready) {
        throw new KinoraError('MODEL_NOT_INSTALLED', `${name} is not in this browser yet.`);
      }
      return getRunner().start({
        image: image.file,
        imageName: image.name,
        parameters: toParameters(form),
        model: id,
        profile: form.values.profile,
        ...chosenSampling(model, form.values),
        backend: form.values.backend,
        loras: await Promise.all(loras.map(openChosen)),
        safetyChecker: form.values.safetyChecker,
        ...(form.values.optimization && { promptOptimizer: form.values.optimization }),
        ...memory,
      });
    });
  }

  return {
    generate,
    runAgain: (id) =>
      start(() =>
        getRunner().runAgain(id, { ...memory, safetyChecker: form.values.safetyChecker }),
      ),
    startError,
  };
}

/** The file of a selected LoRA: its own, or the library's file of this name. */
export async function openChosen({ name, file }: ChosenLora): Promise<SourceLora> {
  return { name, file: file ?? (await openLora(name)) };
}

function revealFirstError(form: HTMLFormElement | null): void {
  const field = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
  const section = field?.closest('details');
  if (section) section.open = true;
  field?.focus();
}
