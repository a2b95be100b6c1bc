import { useLiveQuery } from 'dexie-react-hooks';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import type { Prediction } from '../../../lib/contract';
import type { Queue, QueuePause } from '../../../lib/predictions/queue';
import type { RunState } from '../../../lib/predictions/run-state';
import { getQueue, getRunner } from '../../runner';
import { Button } from '../../shared/button';
import type { GpuState } from '../../shared/gpu';
import { Link } from '../../shared/link';
import { LiveText, Problem } from '../../shared/messages';
import { percentDone } from '../../shared/run-progress';
import { useRunningJobs } from '../../shared/running-job';
import { jobText } from '../../shared/running-jobs';
import type { ModelList } from '../../shared/use-models';
import { t } from '../../texts';
import '../../texts/en/queue';
import '../../texts/en/studio';
import { durationText, forecastOf, useForecast } from '../form/forecast';
import type { Edit } from '../form/use-edit';
import { toastMs } from '../gallery/undo-toast';
import { type QueueView, useQueueState } from '../use-data';
import { differingFacts, factsOf, QueuePicture, QueueRow } from './queue-row';
import { useReorder } from './use-reorder';
import '../videos.css';

/**
 * What runs and what waits: videos of this tab and of others, and the API job of this tab. Nothing where
 * there is nothing but the video on the stage.
 */
export function QueuePanel(props: {
  queue: QueueView;
  run: RunState;
  predictions: readonly Prediction[];
  edit: Edit;
  models: ModelList;
  gpu: GpuState;
  onError: (thrown: unknown) => void;
}) {
  const { run, edit, onError } = props;
  const { pause, waiting } = props.queue;
  const [removed, setRemoved] = useState<readonly string[]>([]);
  const list = useRef<HTMLUListElement>(null);
  const working = props.predictions.filter(({ status }) => status === 'processing');
  const own = run.status === 'idle' ? null : run.prediction.id;
  // Two queries: what has just begun may still be here.
  const rows = waiting
    .map(({ prediction, source }) => ({ id: prediction.id, prediction, source }))
    .filter(({ id }) => working.every((row) => row.id !== id));
  const apiJob = useRunningJobs().find(({ href }) => href === '/serve');
  /** Resolves to whether it was done. */
  const change = (work: (queue: Queue) => Promise<unknown>): Promise<boolean> =>
    work(getQueue()).then(
      () => true,
      (thrown) => {
        onError(thrown);
        return false;
      },
    );
  const reorder = useReorder(list, rows, (id, index) => change((queue) => queue.move(id, index)));
  const remove = (ids: readonly string[]) => {
    // The form gets back what was in it.
    if (edit.id !== null && ids.includes(edit.id)) edit.end();
    void change(async () => setRemoved(await getRunner().store.remove(ids)));
  };
  const { gpu, models } = props;
  const listed = models.status === 'ready' ? models.models : [];
  const time = useForecast(
    forecastOf(
      rows.map(({ prediction }) => prediction),
      listed,
      gpu.status === 'known' ? gpu.report : null,
    ),
  );
  const running = run.status === 'running' ? (run.progress.secondsRemaining ?? 0) : 0;
  const facts = new Map(rows.map((row) => [row.id, factsOf(row, listed)]));
  const differing = differingFacts([...facts.values()]);
  const held = useQueueState().held && !pause && working.length === 0;
  const elsewhere = working.some(({ id }) => id !== own);
  if (rows.length === 0 && removed.length === 0 && !elsewhere && !apiJob) return null;
  return (
    <section id="queue" className="panel queue stack gap-14" aria-labelledby="queue-title">
      <div className="split">
        <div>
          <h2 id="queue-title">{t('queue.title')}</h2>
          {rows.length > 0 && time && (
            <p className="muted text-s numbers break">
              {t('queue.total', {
                time: durationText({ ...time, seconds: time.seconds + running }),
              })}
            </p>
          )}
        </div>
        <div className="actions">
          {rows.length > 0 && pause && (
            <Button className="primary" onClick={() => void change((queue) => queue.unpause())}>
              {t('queue.runAll')}
            </Button>
          )}
          {rows.length > 0 && !pause && working.length > 0 && (
            <Button onClick={() => void change((queue) => queue.pause())}>
              {t('queue.pauseAfter')}
            </Button>
          )}
          {rows.length > 1 && (
            <Button className="danger" onClick={() => remove(rows.map(({ id }) => id))}>
              {t('queue.removeAll')}
            </Button>
          )}
        </div>
      </div>
      {pause && rows.length > 0 && (
        <div className="stack" role="status">
          <p>{pauseText(pause, working.length > 0)}</p>
          {pause.reason === 'entry' && <Problem error={pause.error} />}
        </div>
      )}
      {held && rows.length > 0 && (
        <p className="stack" role="status">
          {t('queue.held')}
        </p>
      )}
      {(working.length > 0 || apiJob) && (
        <ul className="stack gap-0">
          {apiJob && (
            <li className="queue-row stack ruled on-surface" data-mark="api">
              <span className="queue-mark on-wash text-s">{t('queue.api')}</span>
              <Link href="/serve">{jobText(apiJob)}</Link>
            </li>
          )}
          {working.map((prediction) => (
            <WorkingRow
              key={prediction.id}
              prediction={prediction}
              run={run}
              own={prediction.id === own}
            />
          ))}
        </ul>
      )}
      {rows.length > 0 && (
        <ul className="stack gap-0" ref={list} aria-label={t('queue.waiting')}>
          {reorder.rows.map((row, index) => (
            <QueueRow
              key={row.id}
              waiting={row}
              facts={facts.get(row.id) ?? new Map()}
              differing={differing}
              place={index + 1}
              count={rows.length}
              dragged={reorder.dragged === row.id}
              edited={edit.id === row.id}
              handle={reorder.handleOf(row.id)}
              onPauseAfter={(on) =>
                void change(() => getRunner().store.dispatch(row.id, { type: 'pauseAfter', on }))
              }
              onEdit={() => void edit.begin(row).catch(onError)}
              onCancelEdit={edit.end}
              onDuplicate={() => void change((queue) => queue.duplicate(row.id))}
              onRemove={() => remove([row.id])}
            />
          ))}
        </ul>
      )}
      {removed.length > 0 && (
        <RemovedNote
          key={removed.join()}
          count={removed.length}
          onUndo={() => {
            setRemoved([]);
            void change(() => getRunner().store.restore(removed));
          }}
          onEnd={() => {
            setRemoved([]);
            void change(() => getRunner().store.purge(removed));
          }}
        />
      )}
      <LiveText topic={`${rows.length}`} text={t('studio.waits', { count: rows.length })} />
    </section>
  );
}

function pauseText(pause: QueuePause, working: boolean): string {
  if (pause.reason === 'entry') return t('queue.pausedByEntry');
  if (working && pause.reason === 'asked') return t('queue.pausesAfter');
  if (pause.reason === 'asked' || pause.code === 'PAUSED') {
    return t('queue.paused');
  }
  return t('queue.pausedByError');
}

/** A video that is made now, in this tab or another one. */
function WorkingRow(props: { prediction: Prediction; run: RunState; own: boolean }) {
  const { prediction, run, own } = props;
  const { id, parameters } = prediction;
  const picture = useLiveQuery(async () => (await getRunner().store.source(id))?.thumbnail, [id]);
  const percent = own && run.status === 'running' ? percentDone(run.progress) : null;
  return (
    <li className="queue-row stack ruled on-surface" data-mark={own ? 'now' : 'elsewhere'}>
      <span className="queue-mark on-wash text-s">
        {own ? t('queue.now') : t('queue.otherTab')}
      </span>
      <QueuePicture picture={picture} />
      <div className="stack gap-2">
        <p className="queue-prompt clamp text-xl break" title={parameters.prompt}>
          {parameters.prompt}
        </p>
        {own && (
          <progress aria-label={t('queue.thisVideo')} value={percent ?? undefined} max={100} />
        )}
        {!own && <p className="muted text-s numbers break">{t('queue.otherTabMakes')}</p>}
      </div>
    </li>
  );
}

/** Says for some seconds what was removed. The focus, which was in what is gone, moves to Undo. */
function RemovedNote(props: { count: number; onUndo: () => void; onEnd: () => void }) {
  const { count, onUndo } = props;
  const undo = useRef<HTMLButtonElement>(null);
  const onEnd = useEffectEvent(props.onEnd);
  useEffect(() => {
    undo.current?.focus();
    const timer = setTimeout(() => onEnd(), toastMs);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="split text-xl" role="status">
      <p>{t('queue.removed', { count })}</p>
      <Button className="small" ref={undo} onClick={onUndo}>
        {t('queue.undo')}
      </Button>
    </div>
  );
}
