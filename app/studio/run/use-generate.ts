import { type Dispatch, type RefObject, useEffect, useEffectEvent, useRef, useState } from 'react';
import {
  type Backend,
  type Completed,
  type DeviceOptions,
  type ErrorRecord,
  KinoraError,
  type ParametersInput,
  toKinoraError,
} from '../../../lib/contract';
import type { StartedRun } from '../../../lib/predictions/current-run';
import { isCancelled } from '../../../lib/predictions/prediction-state';
import type { RunInput } from '../../../lib/predictions/run-input';
import type { Runner } from '../../../lib/predictions/runner';
import { onceRendered } from '../../shared/browser';
import { deviceOptions } from '../../shared/device';
import { backendOfRun } from '../../shared/gpu';
import { loadModels, pickModel } from '../../shared/use-models';
import { type ErrorTexts, t } from '../../texts';
import '../../texts/en/studio';
import {
  browserOptions,
  type ChosenImage,
  type ChosenLora,
  changeForm,
  type FormAction,
  type FormState,
  modelDefaults,
} from '../form/form-state';
import { runOfForm, usualSampling } from '../form/sampling';
import type { Edit } from '../form/use-edit';
import type { FieldErrors } from '../form/validation';
import type { LongerChoice } from '../result/player/longer-dialog';
import { isTyping } from '../shortcuts';
import { follow, loadData } from '../use-data';

/** An error before a run began, or of one that decodes a finished video again. */
export interface RunProblem {
  /** The prediction that it is about; null for a new one. */
  readonly id: string | null;
  readonly error: ErrorRecord & Partial<ErrorTexts>;
}

/** The runs that the page can start. */
export interface Generate {
  /** Adds the form's request to the queue; while one of the queue is edited, replaces that one. */
  readonly generate: () => Promise<void>;
  /** Adds a request to the queue for each element: the form's, with these parameters changed. */
  readonly enqueue: (changes: readonly Partial<ParametersInput>[]) => Promise<void>;
  /** Adds a request to the queue for each image, with the form's settings. @returns whether they were added */
  readonly enqueueImages: (images: readonly ChosenImage[]) => Promise<boolean>;
  /** Adds a request to the queue that continues a finished video from its last frame. */
  readonly makeLonger: (prediction: Completed, choice: LongerChoice) => Promise<void>;
  readonly runAgain: (id: string) => Promise<void>;
  /** Runs a prediction again in `standard`, with its seed. */
  readonly makeStandard: (id: string) => Promise<void>;
  /** @param backend that computes the rest; the one that has begun it when absent */
  readonly resume: (id: string, backend?: Backend) => Promise<void>;
  readonly finish: (id: string) => Promise<void>;
  readonly refine: (id: string) => Promise<void>;
  readonly problem: RunProblem | null;
}

/** Adds requests of the form to the queue, and starts runs of past predictions. */
export function useGenerate(options: {
  form: FormState;
  change: Dispatch<FormAction>;
  formRef: RefObject<HTMLFormElement | null>;
  edit: Pick<Edit, 'id' | 'end'>;
  /** The prediction on the stage; null where there is none. */
  shown: string | null;
  /** @param id null: the newest one */
  show: (id: string | null) => void;
}): Generate {
  const { form, change, formRef, edit, shown, show } = options;
  const [problem, setProblem] = useState<RunProblem | null>(null);
  const starting = useRef(false);
  /** The form as it was when a request of it was added last. */
  const added = useRef<FormState | null>(null);
  /** What was on the stage before the run: a run that is cancelled gives the stage back. */
  const before = useRef<string | null>(null);
  /** @param id the prediction that the run goes on with */
  function onStart(id: string | null = null) {
    before.current = shown === id ? null : shown;
    show(null);
  }
  /** @param id null where it was cancelled */
  function onEnded(id: string | null) {
    show(id ?? before.current);
    // The button had it.
    if (!id && !before.current) document.getElementById('main')?.focus({ preventScroll: true });
  }
  const onStopped = useEffectEvent((id: string | null) => {
    // A person who writes the next prompt meanwhile keeps the focus.
    if (form === added.current || !isTyping(document.activeElement)) onEnded(id);
  });
  useEffect(() => follow(({ getQueue }) => getQueue().onStopped((id) => onStopped(id))), []);

  async function start(
    work: (runner: Runner) => Promise<StartedRun>,
    id: string | null = null,
  ): Promise<void> {
    // It is loaded: the prediction was read from the database.
    const runner = (await loadData()).getRunner();
    if (starting.current || runner.getSnapshot().status !== 'idle') return;
    // This comes first, because browsers may require a recent click for it.
    void (navigator as Partial<Navigator>).storage?.persist();
    setProblem(null);
    onStart(id);
    starting.current = true;
    try {
      const started = await work(runner).finally(() => {
        starting.current = false;
      });
      id = started.id;
      if (isCancelled(await started.ended)) return onEnded(null);
    } catch (thrown) {
      const error = toKinoraError(thrown);
      // A cancel is no failure: the person asked for it.
      if (error.code !== 'CANCELLED') setProblem({ id, error: error.toRecord() });
    }
    if (id !== null) onEnded(id);
  }

  const device = () => deviceOptions(form.values);

  /** Gives the form's request to `work`; where the form has errors, shows them. @returns whether it was done */
  async function submit(work: (input: RunInput) => Promise<void>): Promise<boolean> {
    let errors: FieldErrors;
    try {
      const { findErrors } = await import('../form/validation');
      errors = findErrors(form);
    } catch (thrown) {
      setProblem({ id: null, error: toKinoraError(thrown).toRecord() });
      return false;
    }
    const { image } = form.files;
    if (!image || Object.keys(errors).length > 0) {
      change({ type: 'checked' });
      revealFirstError(formRef.current);
      return false;
    }
    if (starting.current) return false;
    void (navigator as Partial<Navigator>).storage?.persist();
    setProblem(null);
    starting.current = true;
    try {
      await work(await formRequest(form, image));
      return true;
    } catch (thrown) {
      setProblem({ id: null, error: toKinoraError(thrown).toRecord() });
      return false;
    } finally {
      starting.current = false;
    }
  }

  async function add(inputs: readonly RunInput[]): Promise<void> {
    added.current = form;
    const { getQueue } = await loadData();
    if (await getQueue().add(inputs)) onStart();
  }

  async function enqueue(changes: readonly Partial<ParametersInput>[]): Promise<void> {
    await submit((input) =>
      add(
        changes.map((changed) => {
          return { ...input, parameters: { ...input.parameters, ...changed } };
        }),
      ),
    );
  }

  function enqueueImages(images: readonly ChosenImage[]): Promise<boolean> {
    return submit(async (input) => {
      const inputs = images.map((image) => {
        // The size follows its shape, and the one in the form keeps its frame.
        const isShown = image.file === form.files.image?.file;
        const { values } = isShown ? form : changeForm(form, { type: 'imageSet', image });
        return {
          ...input,
          image: image.file,
          imageName: image.name,
          parameters: { ...input.parameters, size: values.size },
          options: isShown ? input.options : { ...input.options, framing: undefined },
        };
      });
      await add(inputs);
    });
  }

  async function replace(id: string): Promise<void> {
    await submit(async (input) => {
      const { getQueue } = await loadData();
      if (!(await getQueue().replace(id, input))) {
        const texts = {
          message: t('studio.turnCame'),
          remedy: t('studio.turnCameRemedy'),
          detail: null,
        };
        setProblem({ id: null, error: { code: 'BUSY', ...texts } });
        return;
      }
      edit.end();
    });
  }

  const ofBrowser = browserOptions(form.values);

  async function makeLonger(prediction: Completed, choice: LongerChoice): Promise<void> {
    setProblem(null);
    try {
      const backend = await backendOfRun();
      const options = { ...choice.options, ...ofBrowser };
      const changes = { ...choice, options, device: { ...device(), backend } };
      const { getQueue, getRunner } = await loadData();
      const { openContinuation } = await import('../result/continue-video');
      const input = await openContinuation(getRunner().store, prediction, changes);
      if (await getQueue().add([input])) onStart();
    } catch (thrown) {
      setProblem({ id: prediction.id, error: toKinoraError(thrown).toRecord() });
    }
  }

  function runAgain(id: string, changes: Parameters<Runner['runAgain']>[2]): Promise<void> {
    return start(async (runner) => {
      const backend = await backendOfRun();
      return runner.runAgain(id, { ...device(), backend }, { ...changes, ...ofBrowser });
    });
  }

  function goOn(id: string, ...how: ['resume' | 'finish', Partial<DeviceOptions>]): Promise<void> {
    return start(async (runner) => {
      const started = await runner.continueRun(id, ...how);
      await (await loadData()).getQueue().unpauseRun();
      return started;
    }, id);
  }

  return {
    generate: () => (edit.id === null ? enqueue([{}]) : replace(edit.id)),
    enqueue,
    enqueueImages,
    makeLonger,
    runAgain: (id) => runAgain(id, {}),
    makeStandard: (id) => runAgain(id, { profile: 'standard', ...usualSampling }),
    resume: (id, on) => goOn(id, 'resume', { ...device(), ...(on && { backend: on }) }),
    finish: (id) => goOn(id, 'finish', device()),
    refine: (id) => start((runner) => runner.refine(id, device()), id),
    problem,
  };
}

/** The form's request: the model is the one that is chosen now, or would be chosen. */
async function formRequest(form: FormState, image: ChosenImage): Promise<RunInput> {
  const { values, files } = form;
  const { lastImage } = files;
  const backend = await backendOfRun();
  const model = pickModel(await loadModels(), values.model);
  if (!model) throw new KinoraError('MODEL_UNKNOWN');
  const { name } = model.manifest;
  if (!model.ready) {
    throw new KinoraError('MODEL_NOT_INSTALLED', `${name} is not in this browser yet.`);
  }
  // An adapter that is gone is reported now, not when the turn of the request comes.
  await Promise.all(files.loras.map(requireFile));
  // The form may not have shown the model yet.
  const shown = changeForm(form, { type: 'modelShown', defaults: modelDefaults(model.manifest) });
  const run = runOfForm(model, shown, backend);
  return {
    ...run,
    image: image.file,
    imageName: image.name,
    lastImage: lastImage?.file,
    options: {
      ...run.options,
      framing: image.framing,
      ...(lastImage && { lastImage: { name: lastImage.name, framing: lastImage.framing } }),
      promptOptimizer: values.optimization ?? undefined,
    },
    loras: files.loras.map((lora) => ({ name: lora.name, file: lora.file })),
  };
}

/** Rejects where a selected LoRA is in the library no more. */
async function requireFile({ name, file }: ChosenLora): Promise<void> {
  if (file) return;
  const { openLora } = await import('../../../lib/library');
  await openLora(name);
}

/** Shows the first field with an error, and puts the focus there, once its mark is rendered. */
function revealFirstError(form: HTMLFormElement | null): void {
  onceRendered(
    () => form?.querySelector<HTMLElement>('[aria-invalid="true"]'),
    (field) => field.focus(),
  );
}
