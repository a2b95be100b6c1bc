'use client';

import { useLiveQuery } from 'dexie-react-hooks';
import { useCallback, useEffect, useRef, useState } from 'react';
import { toKinoraError } from '../../lib/contract/errors';
import { sampleImagePath, samplePrompt } from '../../lib/contract/request';
import { getRunner } from '../runner';
import { SiteHeader } from '../site-header';
import { GpuBadge } from './gpu-badge';
import { GpuNotice } from './gpu-notice';
import { History } from './history';
import { readImage } from './read-image';
import { RequestForm } from './request-form';
import { ShortcutsDialog, useShortcuts } from './shortcuts';
import { Stage } from './stage';
import { UndoToast } from './undo-toast';
import { useActions } from './use-actions';
import { useForm } from './use-form';
import { useGenerate } from './use-generate';
import { useGpu } from './use-gpu';
import { useIntake } from './use-intake';
import { useModels } from './use-models';
import { useLeaveWarning, useTitle, useWakeLock } from './use-page-effects';
import { useRun } from './use-run';

/** The page on which a still becomes a video. */
export function Studio() {
  const { form, change, ready } = useForm();
  const models = useModels();
  const { gpu, check } = useGpu();
  const run = useRun();
  const busy = run.status !== 'idle';
  const predictions = useLiveQuery(() => getRunner().store.list(), []);
  const intake = useIntake(form, change);
  const formRef = useRef<HTMLFormElement>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  /** The prediction on the stage; `null` is the newest that has ended. */
  const [shownId, setShownId] = useState<string | null>(null);
  const { generate, runAgain, startError } = useGenerate({
    form,
    change,
    formRef,
    onStart: () => setShownId(null),
    onEnded: setShownId,
  });
  const { actions, deletedId, forgetDeleted } = useActions({ change, intake, runAgain });

  useEffect(() => {
    // What cannot be recovered now is tried again on the next visit.
    getRunner()
      .recover()
      .catch(() => {});
  }, []);
  useEffect(() => {
    // The models page sends here with a model; the draft must be in place, or it would undo that.
    const model = new URLSearchParams(window.location.search).get('model');
    if (!ready || model === null) return;
    change({ type: 'changed', values: { model } });
    window.history.replaceState(null, '', window.location.pathname);
  }, [ready, change]);
  useTitle(run);
  useWakeLock(busy);
  useLeaveWarning(busy);
  useShortcuts({
    onGenerate: () => void generate(),
    onCancel: () => getRunner().cancel(),
    onHelp: () => dialog.current?.showModal(),
  });

  const takeSample = useCallback(async () => {
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
          {...{ formRef, form, change, models, startError, busy, ready }}
          notice={intake.notice}
          onFiles={(files) => void intake.take(files)}
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
            onSample={() => void takeSample().catch((thrown) => intake.fail(toKinoraError(thrown)))}
          />
          <History
            {...{ busy, actions }}
            predictions={predictions ?? []}
            shownId={shownId ?? (busy ? null : (shown?.id ?? null))}
            onShow={setShownId}
          />
        </div>
      </main>
      {intake.dragging && <div className="drop-veil">Drop the image, LoRA or Kinora video</div>}
      {deletedId && <UndoToast key={deletedId} id={deletedId} onGone={forgetDeleted} />}
      <ShortcutsDialog dialog={dialog} />
    </>
  );
}
