import { type Dispatch, type RefObject, useRef, useState } from 'react';
import { type ErrorRecord, KinoraError, toKinoraError } from '../../lib/contract/errors';
import type { StartedRun } from '../../lib/predictions/current-run';
import type { SourceLora } from '../../lib/predictions/database';
import type { Runner } from '../../lib/predictions/runner';
import { getRunner } from '../runner';
import { toBudgetBytes } from '../shared/device';
import { loadModels, pickModel } from '../shared/use-models';
import { type ChosenLora, type FormAction, type FormState, toParameters } from './form-state';
import { chosenSampling } from './sampling';
import type { FieldErrors } from './validation';

/** An error before a run began, or of one that decodes a finished video again. */
export interface RunProblem {
  /** The prediction that it is about; null for a new one. */
  readonly id: string | null;
  readonly error: ErrorRecord;
}

/** The runs that the page can start. */
export interface Generate {
  readonly generate: () => Promise<void>;
  readonly runAgain: (id: string) => Promise<void>;
  readonly resume: (id: string) => Promise<void>;
  readonly finish: (id: string) => Promise<void>;
  readonly refine: (id: string) => Promise<void>;
  readonly problem: RunProblem | null;
}

/** Starts runs from the form and of past predictions. */
export function useGenerate(options: {
  form: FormState;
  change: Dispatch<FormAction>;
  formRef: RefObject<HTMLFormElement | null>;
  onStart: () => void;
  onEnded: (id: string) => void;
}): Generate {
  const { form, change, formRef, onStart, onEnded } = options;
  const [problem, setProblem] = useState<RunProblem | null>(null);
  const starting = useRef(false);

  async function start(
    work: (runner: Runner) => Promise<StartedRun>,
    id: string | null = null,
  ): Promise<void> {
    const runner = getRunner();
    if (starting.current || runner.getSnapshot().status !== 'idle') return;
    // This comes first, because browsers may require a recent click for it.
    void (navigator as Partial<Navigator>).storage?.persist();
    setProblem(null);
    onStart();
    starting.current = true;
    try {
      const started = await work(runner).finally(() => {
        starting.current = false;
      });
      id = started.id;
      await started.ended;
    } catch (thrown) {
      const error = toKinoraError(thrown);
      // A cancel is no failure: the person asked for it.
      if (error.code !== 'CANCELLED') setProblem({ id, error: error.toRecord() });
    }
    if (id !== null) onEnded(id);
  }

  const memoryBudget = toBudgetBytes(form.values.memoryBudget);
  const memory = memoryBudget === undefined ? {} : { memoryBudget };

  async function generate(): Promise<void> {
    let errors: FieldErrors;
    try {
      const { findErrors } = await import('./validation');
      errors = findErrors(form);
    } catch (thrown) {
      setProblem({ id: null, error: toKinoraError(thrown).toRecord() });
      return;
    }
    const { image, loras } = form.files;
    if (!image || Object.keys(errors).length > 0) {
      change({ type: 'checked' });
      // The marks are rendered in the next frame.
      requestAnimationFrame(() => revealFirstError(formRef.current));
      return;
    }
    await start(async (runner) => {
      const model = pickModel(await loadModels(), form.values.model);
      if (!model) throw new KinoraError('MODEL_UNKNOWN');
      const { id, name } = model.manifest;
      if (!model.ready) {
        throw new KinoraError('MODEL_NOT_INSTALLED', `${name} is not in this browser yet.`);
      }
      return runner.start({
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

  const { backend, safetyChecker } = form.values;
  return {
    generate,
    runAgain: (id) => start((runner) => runner.runAgain(id, { ...memory, backend, safetyChecker })),
    resume: (id) => start((runner) => runner.resumeInterrupted(id, memory), id),
    finish: (id) => start((runner) => runner.finishInterrupted(id, memory), id),
    refine: (id) => start((runner) => runner.refine(id, memory), id),
    problem,
  };
}

/** The file of a selected LoRA: its own, or the library's file of this name. */
export async function openChosen({ name, file }: ChosenLora): Promise<SourceLora> {
  if (file) return { name, file };
  const { openLora } = await import('../../lib/library');
  return { name, file: await openLora(name) };
}

function revealFirstError(form: HTMLFormElement | null): void {
  const field = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
  const section = field?.closest('details');
  if (section) section.open = true;
  field?.focus();
}
