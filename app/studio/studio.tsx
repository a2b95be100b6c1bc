'use client';

import {
  type Dispatch,
  useCallback,
  useEffect,
  useEffectEvent,
  useMemo,
  useRef,
  useState,
} from 'react';
import {
  type ErrorRecord,
  type ParametersInput,
  type Prediction,
  sampleImagePath,
  samplePrompt,
  toKinoraError,
} from '../../lib/contract';
import { isAtRest, isCancelled } from '../../lib/predictions/prediction-state';
import { onceRendered, useFormAtSide } from '../shared/browser';
import { Button } from '../shared/button';
import { useDevice } from '../shared/device';
import { expectImage, noteVideos } from '../shared/expected-image';
import { useActed } from '../shared/first-act';
import { GpuActions, GpuBadge, gpuProblem, useGpu } from '../shared/gpu';
import { later } from '../shared/later';
import { Problem } from '../shared/messages';
import { sharedAfterSignIn } from '../shared/session';
import { SiteHeader } from '../shared/site-header';
import { useModels } from '../shared/use-models';
import { t } from '../texts';
import '../texts/en/studio';
import { useStable } from '../shared/use-stable';
import { type Example, loadExample, loadExampleLora } from './form/examples';
import type { RequestContent } from './form/form-context';
import type { FormAction, FormState } from './form/form-state';
import { RequestForm } from './form/request-form';
import { useEdit } from './form/use-edit';
import { useFileInput } from './form/use-file-input';
import { useForm } from './form/use-form';
import { useImprove } from './form/use-improve';
import { useLaunchedFiles } from './form/use-launched-files';
import { useSharedRequest } from './form/use-shared-request';
import { useDeletions } from './gallery/use-deletions';
import { interruptionReason } from './run/interruption';
import { useGenerate } from './run/use-generate';
import { useShortcuts } from './shortcuts';
import { isCpuEnough, Stage } from './stage';
import { useActions } from './use-actions';
import { type Data, follow, loadData, useNew, useQueue, useShownRun, useStored } from './use-data';

// There is nothing in them before the database is read.
const Gallery = later(async () => (await import('./gallery/gallery')).Gallery);
const QueuePanel = later(async () => (await import('./queue/queue-panel')).QueuePanel);
// Both follow from what a person does.
const UndoToast = later(async () => (await import('./gallery/undo-toast')).UndoToast);
const ShortcutsDialog = later(async () => (await import('./shortcuts-dialog')).ShortcutsDialog);

/** The page that makes a video from an image and a prompt. */
export function Studio() {
  const studio = useStudio();
  const { gpu, backend, gpuActions, problem, fileInput, help, setHelp } = studio;
  const formAtSide = useFormAtSide();
  const request = <RequestForm key="request" {...studio.request} />;
  const stages = <Stages key="stages" {...studio} />;
  return (
    <>
      <SiteHeader here="/">
        <GpuBadge gpu={gpu} backend={backend} problem={problem}>
          {gpuActions}
        </GpuBadge>
        <Button
          className="icon"
          aria-label={t('studio.keyboardShortcuts')}
          title={t('studio.keyboardShortcuts')}
          onClick={() => setHelp(true)}
        >
          ?
        </Button>
      </SiteHeader>
      <main id="main" tabIndex={-1}>
        <h1 className="visually-hidden">{t('studio.title')}</h1>
        <div className="studio stack gap-24">
          {/* The keyboard takes the order that is seen. What comes first on a phone is first in the page that arrives. */}
          {formAtSide ? [request, stages] : [stages, request]}
          <Collections {...studio} />
        </div>
      </main>
      {fileInput.dragging && <div className="drop-veil">{t('studio.drop')}</div>}
      {help && <ShortcutsDialog onClose={() => setHelp(false)} />}
    </>
  );
}

type StudioState = ReturnType<typeof useStudio>;

/** What the parts of the page share: form, predictions and the one that is shown, runs, and what the GPU lacks. */
function useStudio() {
  const { gpu, check } = useGpu();
  const { form, change, ready } = useForm(gpu);
  const models = useModels();
  const past = usePredictions();
  const { predictions, shown, ended, setShownId, busy } = past;
  const fileInput = useFileInput(form, change, setShownId);
  const report = useCallback(
    (thrown: unknown) => fileInput.showError(toKinoraError(thrown)),
    [fileInput.showError],
  );
  const queue = useQueue(past.working);
  const improve = useImprove(form, change);
  const edit = useEdit(form, change, queue.waiting);
  const formRef = useRef<HTMLFormElement>(null);
  const runs = useGenerate({
    form,
    change,
    formRef,
    edit,
    shown: shown?.id ?? null,
    show: setShownId,
  });
  const deletions = useDeletions({
    removed: ({ ids, from }) => {
      if (!shown || !ids.includes(shown.id)) return;
      // What is shown by its id gets the focus: on the stage, the focus was in what is gone.
      const next = ended?.find(({ id }) => !ids.includes(id));
      setShownId(from === 'stage' ? (next?.id ?? null) : null);
    },
    restored: ({ ids, from }) => from === 'stage' && setShownId(ids[0] ?? null),
  });
  const { showError, showInfo } = fileInput;
  const remove = (id: string) => deletions.remove([id], 'stage');
  const actions = useActions({ change, runs, showError, showInfo, remove, show: setShownId });
  useChoiceOfAddress(ready, form, change, fileInput.pickLora);
  useSharedRequest(ready, change, showError);

  const chosen = fileInput.notice?.kind === 'images' ? fileInput.notice.images : null;
  // Another image may have taken the place of the first one, or a waiting request that of all.
  const several = edit.id === null && chosen?.[0]?.file === form.files.image?.file ? chosen : null;
  const runForm = async () => {
    if (!several) return runs.generate();
    if (await runs.enqueueImages(several)) fileInput.clearNotice();
  };
  const press = usePress(ready, () => void runForm());
  const onGenerate = () => (ready ? void runForm() : press());
  const [help, setHelp] = useState(false);
  useShortcuts({
    // The prompt is about to change.
    onGenerate: () => improve.state.status !== 'running' && onGenerate(),
    onCancel: () => busy && void loadData().then(cancelRun),
    onHelp: () => setHelp(true),
  });
  const onSample = useCallback(() => {
    expectImage('1280*720');
    // The room of a run is there at the click: what moves later, moves under the finger.
    noteVideos(true);
    loadExample(sample, change, 'sample.jpg').then(press, (thrown) => {
      expectImage(null);
      noteVideos(false);
      report(thrown);
    });
  }, [change, press, report]);

  const { backend } = form.values;
  const lastError = errorOf(predictions?.find(({ status }) => status !== 'created'));
  const device = useDevice();
  const problem = useMemo(
    () => gpuProblem(gpu, device.backend, lastError),
    [gpu, device.backend, lastError],
  );
  const cpu = isCpuEnough(models, shown?.model ?? '');
  const gpuActions = useMemo(
    () =>
      problem && (
        <GpuActions
          gpu={gpu}
          backend={backend}
          cpu={cpu}
          error={problem}
          onCheck={check}
          onUseCpu={() => change({ type: 'changed', values: { backend: 'wasm' } })}
        />
      ),
    [gpu, backend, cpu, problem, check, change],
  );
  // One sentence about the GPU is enough: the failed run has it already.
  const onStage = !busy && shown?.status === 'failed' && shown.error.code === problem?.code;
  const handlers = useStable({
    onGenerate,
    onVariations: (changes: readonly Partial<ParametersInput>[]) => void runs.enqueue(changes),
    onExampleLora: () => {
      loadExampleLora().then((file) => fileInput.addFiles([file]), report);
    },
    onExample: (example: Example) => void loadExample(example, change).catch(report),
  });
  const request: RequestContent = {
    formRef,
    form,
    change,
    ready,
    models,
    fileInput,
    several,
    improve,
    edit,
    busy,
    backend,
    ...handlers,
    shared: useLaunchedFiles(ready, fileInput),
    waiting: queue.waiting.length,
    // What is about the prediction on the stage is shown there.
    startError: runs.problem && runs.problem.id !== shown?.id ? runs.problem.error : null,
    gpu: gpu.status === 'known' ? gpu.report : null,
    gpuProblem: onStage ? null : problem,
    gpuActions,
    introduced: shown === undefined,
    revision: ended?.[0] ? endOf(ended[0]) : '',
  };
  const page = { help, setHelp, report, onSample, request, fileInput, change, edit };
  const compute = { gpu, backend, problem, gpuActions, onStage, models };
  return { ...past, ...compute, ...page, queue, runs, deletions, actions };
}

/** The run, or the prediction that is shown. */
function Stages(studio: StudioState) {
  const { deletions, error, shown, gpuActions, runs, recovered } = studio;
  return (
    <div className="stages stack gap-24 min-0">
      {/* After a deletion the focus is on the stage: one step back leads here. */}
      {deletions.list.length > 0 && <UndoToast {...deletions} />}
      {error ? (
        <div className="panel stage" role="alert">
          <Problem error={error} />
        </div>
      ) : (
        <Stage
          run={studio.run}
          shown={shown}
          loading={studio.loading}
          actions={studio.actions}
          gpu={studio.gpu}
          backend={studio.backend}
          models={studio.models}
          picture={studio.request.form.files.image}
          size={studio.request.form.values.size}
          gpuActions={studio.onStage ? gpuActions : null}
          problem={runs.problem}
          justFound={(recovered ?? 0) > 0}
          focused={shown !== undefined && shown.id === studio.shownId}
          onSample={studio.onSample}
        />
      )}
    </div>
  );
}

/** What waits, and what was made. */
function Collections(studio: StudioState) {
  const { busy, shown, shownId, actions, deletions, report } = studio;
  const predictions = studio.predictions ?? noPredictions;
  const acted = useActed();
  if (predictions.length === 0 && !acted) return null;
  return (
    <div className="collections stack gap-24 min-0">
      <QueuePanel {...studio} predictions={predictions} onError={report} />
      <Gallery
        busy={busy}
        onResume={actions.onResume}
        onRunAgain={actions.onRunAgain}
        predictions={predictions}
        shownId={shownId ?? (busy ? null : (shown?.id ?? null))}
        undone={deletions.undone}
        onShow={studio.setShownId}
        onDelete={(ids) => deletions.remove(ids, 'gallery').catch(report)}
      />
    </div>
  );
}

/** The predictions of this browser, the run of this tab, and which prediction is shown. */
function usePredictions() {
  const run = useShownRun();
  const busy = run.status !== 'idle';
  const isNew = useNew();
  const stored = useStored(readPredictions) ?? (isNew ? { predictions: noPredictions } : {});
  const { predictions, error }: StoredPredictions = stored;
  const working = predictions?.some(({ status }) => status === 'processing') ?? true;
  /** The prediction that is shown; `null` means the newest that has ended, and was not cancelled. */
  const [shownId, setShownId] = useState<string | null>(null);
  // Back from signing in, which the dialog of this video asked for.
  useEffect(() => setShownId(sharedAfterSignIn()), []);
  const recovered = useRecovery();
  const ended = useMemo(
    () => predictions?.filter(isAtRest).sort((a, b) => endOf(b).localeCompare(endOf(a))),
    [predictions],
  );
  // The run that ended last is not known before runs of closed pages are found.
  const loading = !ended || (recovered === null && !busy && working);
  const shown = loading
    ? undefined
    : (ended.find(({ id }) => id === shownId) ?? ended.find((row) => !isCancelled(row)));
  const stage = { run, busy, loading, shown, shownId, setShownId, recovered };
  return { ...stage, predictions, error, working, ended };
}

/**
 * Takes the model and the LoRA that the Models page names in its link. The draft comes first: it would overwrite them.
 */
function useChoiceOfAddress(
  ready: boolean,
  form: FormState,
  change: Dispatch<FormAction>,
  pick: (lora: string) => void,
): void {
  const choose = useEffectEvent((model: string | null, lora: string | null) => {
    if (model !== null) change({ type: 'changed', values: { model } });
    if (lora === null) return;
    if (!form.files.loras.some(({ name, file }) => name === lora && file === null)) pick(lora);
    // Its part of the form may still be loading: up to a minute.
    onceRendered(
      () => document.querySelector<HTMLElement>('fieldset#loras'),
      (field) => field.scrollIntoView({ block: 'center' }),
      3600,
    );
  });
  useEffect(() => {
    const query = new URLSearchParams(window.location.search);
    const [model, lora] = [query.get('model'), query.get('lora')];
    if (!ready || (model === null && lora === null)) return;
    window.history.replaceState(null, '', window.location.pathname);
    choose(model, lora);
  }, [ready]);
}

/** @returns runs the form as soon as it has its draft, or the sample that was just filled in */
function usePress(ready: boolean, run: () => void): () => void {
  const [pressed, setPressed] = useState(false);
  const runPressed = useEffectEvent(run);
  useEffect(() => {
    if (!pressed || !ready) return;
    setPressed(false);
    runPressed();
  }, [pressed, ready]);
  return useCallback(() => setPressed(true), []);
}

const cancelRun = ({ getRunner }: Data) => getRunner().cancel();

/** Its size follows from the picture. */
const sample = { picture: sampleImagePath, values: { prompt: samplePrompt } };

const noPredictions: readonly Prediction[] = [];

interface StoredPredictions {
  readonly predictions?: readonly Prediction[];
  readonly error?: ErrorRecord;
}

/** All predictions, or why there are none: a browser may block the database. */
async function readPredictions({ getRunner, databaseError }: Data): Promise<StoredPredictions> {
  try {
    return { predictions: await getRunner().store.list() };
  } catch (thrown) {
    return { error: databaseError(thrown).toRecord() };
  }
}

/** Finds the runs of pages that are gone, now and later. @returns how many were at first; null until that is known */
function useRecovery(): number | null {
  const [count, setCount] = useState<number | null>(null);
  useEffect(() => {
    // If this fails, the next start of the page tries again.
    return follow(({ getRunner }) => {
      const runner = getRunner();
      runner.recover().then(setCount, () => setCount(0));
      return runner.watch();
    });
  }, []);
  return count;
}

function errorOf(prediction: Prediction | undefined): ErrorRecord | null {
  if (prediction?.status === 'interrupted') return interruptionReason(prediction);
  return prediction?.status === 'failed' ? prediction.error : null;
}

/** When a prediction ended, as ISO 8601. */
function endOf(prediction: Prediction): string {
  if (prediction.status === 'interrupted') return prediction.interruptedAt;
  return 'completedAt' in prediction ? prediction.completedAt : prediction.createdAt;
}
