'use client';

import { useLiveQuery } from 'dexie-react-hooks';
import { useCallback, useEffect, useRef, useState } from 'react';
import { toKinoraError } from '../../lib/contract/errors';
import { sampleImagePath, samplePrompt } from '../../lib/contract/request';
import type { RunState } from '../../lib/predictions/run-state';
import { getRunner, useRun } from '../runner';
import { keepAwake, useLeaveWarning } from '../shared/browser';
import { GpuBadge, GpuNotice, useGpu } from '../shared/gpu';
import { percentDone } from '../shared/run-progress';
import { SiteHeader } from '../shared/site-header';
import { useModels } from '../shared/use-models';
import { readImage } from './files';
import { History, UndoToast } from './history';
import { RequestForm } from './request-form';
import { ShortcutsDialog, useShortcuts } from './shortcuts';
import { Stage } from './stage';
import { useActions } from './use-actions';
import { useFileInput } from './use-file-input';
import { useForm } from './use-form';
import { useGenerate } from './use-generate';
import { useImprove } from './use-improve';
import { useLaunchedFiles } from './use-launched-files';

/** The page that makes a video from an image and a prompt. */
export function Studio() {
  const { form, change, ready } = useForm();
  const models = useModels();
  const { gpu, check } = useGpu();
  const run = useRun();
  const busy = run.status !== 'idle';
  const predictions = useLiveQuery(() => getRunner().store.list(), []);
  const fileInput = useFileInput(form, change);
  useLaunchedFiles(ready, fileInput.addFiles);
  const formRef = useRef<HTMLFormElement>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  /** The prediction that is shown; `null` means the newest that has ended. */
  const [shownId, setShownId] = useState<string | null>(null);
  const improve = useImprove(form, change);
  const { generate, runAgain, startError } = useGenerate({
    form,
    change,
    formRef,
    onStart: () => setShownId(null),
    onEnded: setShownId,
  });
  const { actions, deletedId, forgetDeleted } = useActions({
    change,
    runAgain,
    showError: fileInput.showError,
  });

  useEffect(() => {
    // If this fails, the next start of the page tries again.
    getRunner()
      .recover()
      .catch(() => {});
  }, []);
  useEffect(() => {
    // The Models page links here with a model. The draft is restored first: it would overwrite the model.
    const model = new URLSearchParams(window.location.search).get('model');
    if (!ready || model === null) return;
    change({ type: 'changed', values: { model } });
    window.history.replaceState(null, '', window.location.pathname);
  }, [ready, change]);
  useTitle(run);
  useWakeLock(busy);
  useLeaveWarning(busy);
  useShortcuts({
    // The prompt is about to change.
    onGenerate: () => improve.state.status !== 'running' && void generate(),
    onCancel: () => getRunner().cancel(),
    onHelp: () => dialog.current?.showModal(),
  });

  const loadSample = useCallback(async () => {
    const response = await fetch(sampleImagePath);
    const image = await readImage(await response.blob(), 'sample.jpg');
    change({ type: 'imageSet', image });
    change({ type: 'changed', values: { prompt: samplePrompt } });
    formRef.current?.querySelector<HTMLElement>('#prompt')?.focus();
  }, [change]);

  const ended = predictions?.filter(({ status }) => status === 'completed' || status === 'failed');
  const shown = ended?.find(({ id }) => id === shownId) ?? ended?.[0];
  const newest = predictions?.[0];
  const lastError = newest?.status === 'failed' ? newest.error : null;
  const { backend } = form.values;
  return (
    <>
      <SiteHeader here="/">
        <GpuBadge gpu={gpu} backend={backend} />
        <button
          type="button"
          className="icon"
          aria-label="Keyboard shortcuts"
          title="Keyboard shortcuts"
          onClick={() => dialog.current?.showModal()}
        >
          ?
        </button>
      </SiteHeader>
      <main className="studio">
        <h1 className="visually-hidden">Kinora studio</h1>
        <RequestForm
          {...{ formRef, form, change, models, startError, busy, ready, improve }}
          notice={fileInput.notice}
          onFiles={(files) => void fileInput.addFiles(files)}
          onGenerate={() => void generate()}
        />
        <div className="outcome">
          <GpuNotice
            {...{ gpu, backend, lastError }}
            onCheck={check}
            onUseCpu={() => change({ type: 'changed', values: { backend: 'wasm' } })}
          />
          <Stage
            {...{ run, shown, actions }}
            loading={predictions === undefined}
            focused={shown !== undefined && shown.id === shownId}
            onSample={() =>
              void loadSample().catch((thrown) => fileInput.showError(toKinoraError(thrown)))
            }
          />
          <History
            {...{ busy, actions }}
            predictions={predictions ?? []}
            shownId={shownId ?? (busy ? null : (shown?.id ?? null))}
            onShow={setShownId}
          />
        </div>
      </main>
      {fileInput.dragging && <div className="drop-veil">Drop the image, LoRA or Kinora video</div>}
      {deletedId && <UndoToast key={deletedId} id={deletedId} onGone={forgetDeleted} />}
      <ShortcutsDialog dialog={dialog} />
    </>
  );
}

/** Shows the progress in the tab's title. */
function useTitle(run: RunState): void {
  const percent = run.status === 'running' ? percentDone(run.progress) : null;
  const title =
    run.status === 'idle' ? 'Kinora' : `${percent === null ? '…' : `${percent}%`} · Kinora`;
  useEffect(() => {
    document.title = title;
  }, [title]);
}

/** Keeps the screen on while `active`. */
function useWakeLock(active: boolean): void {
  useEffect(() => {
    if (!active) return;
    const end = new AbortController();
    keepAwake(end.signal);
    return () => end.abort();
  }, [active]);
}
