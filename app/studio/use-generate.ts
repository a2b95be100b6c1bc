import { type Dispatch, type RefObject, useState } from 'react';
import { type ErrorRecord, KinoraError, toKinoraError } from '../../lib/contract/errors';
import type { ModelManifest } from '../../lib/contract/manifest';
import type { StartedRun } from '../../lib/predictions/runner';
import { getRunner } from '../runner';
import { type FormAction, type FormState, toParameters } from './form-state';
import type { ModelList } from './use-models';
import { findErrors } from './validation';

/** The chosen model, or the first one while the choice is not (or no longer) on the list. */
export function pickModel(list: ModelList, id: string): ModelManifest | undefined {
  if (list.status !== 'ready') return undefined;
  return list.models.find((model) => model.id === id) ?? list.models[0];
}

/** Starts runs from the form and from the past, and keeps what went wrong before they existed. */
export function useGenerate(options: {
  form: FormState;
  change: Dispatch<FormAction>;
  models: ModelList;
  formRef: RefObject<HTMLFormElement | null>;
  onStart: () => void;
  onEnded: (id: string) => void;
}): {
  generate: () => Promise<void>;
  runAgain: (id: string) => Promise<void>;
  startError: ErrorRecord | null;
} {
  const { form, change, models, formRef, onStart, onEnded } = options;
  const [startError, setStartError] = useState<ErrorRecord | null>(null);

  async function start(work: () => Promise<StartedRun>): Promise<void> {
    // First of all, while the click still counts as one: browsers ask or decide by it.
    void navigator.storage.persist();
    setStartError(null);
    onStart();
    try {
      const { id, ended } = await work();
      await ended;
      onEnded(id);
    } catch (thrown) {
      setStartError(toKinoraError(thrown).toRecord());
    }
  }

  async function generate(): Promise<void> {
    if (getRunner().getSnapshot().status !== 'idle') return;
    const { image, loras } = form.files;
    if (!image || Object.keys(findErrors(form)).length > 0) {
      change({ type: 'checked' });
      // The marks are on the page only after the next frame.
      requestAnimationFrame(() => revealFirstError(formRef.current));
      return;
    }
    await start(async () => {
      const model = pickModel(models, form.values.model);
      if (!model) throw new KinoraError('MODEL_UNKNOWN');
      return getRunner().start({
        image: image.file,
        imageName: image.name,
        parameters: toParameters(form),
        model: model.id,
        backend: form.values.backend,
        loras: loras.map(({ name, file }) => ({ name, file })),
      });
    });
  }

  return { generate, runAgain: (id) => start(() => getRunner().runAgain(id)), startError };
}

function revealFirstError(form: HTMLFormElement | null): void {
  const field = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
  const section = field?.closest('details');
  if (section) section.open = true;
  field?.focus();
}
