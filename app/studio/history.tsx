import { useLiveQuery } from 'dexie-react-hooks';
import { memo, useEffect, useEffectEvent, useState } from 'react';
import { formatSize } from '../../lib/contract/format';
import type { Prediction } from '../../lib/contract/prediction';
import { isAtRest } from '../../lib/predictions/prediction-state';
import { getRunner } from '../runner';
import { useObjectUrl } from '../shared/browser';
import { Picture } from '../shared/icons';
import { blurReason, isInputFlagged } from '../shared/safety-text';
import { interruptionTitle } from './interruption-text';
import type { PredictionActions } from './result-card';
import { isTyping } from './shortcuts';

/** The predictions of this browser that have ended, newest first. */
export const History = memo(function History(props: {
  predictions: readonly Prediction[];
  shownId: string | null;
  busy: boolean;
  actions: PredictionActions;
  onShow: (id: string) => void;
}) {
  const { predictions: all, ...rest } = props;
  // What is at work is shown on the stage, and in the header of other pages.
  const predictions = all.filter(isAtRest);
  if (predictions.length === 0) return null;
  return (
    <section className="history" aria-labelledby="history-title">
      <h2 id="history-title">Past videos</h2>
      <ul>
        {predictions.map((prediction) => (
          <HistoryItem key={prediction.id} prediction={prediction} {...rest} />
        ))}
      </ul>
    </section>
  );
});

/** One past prediction; a failed one with its error and remedy, unless the stage shows them. */
function HistoryItem(props: {
  prediction: Prediction;
  shownId: string | null;
  busy: boolean;
  actions: PredictionActions;
  onShow: (id: string) => void;
}) {
  const { prediction, shownId, busy, actions, onShow } = props;
  const { id, parameters, createdAt } = prediction;
  const thumbnail = useLiveQuery(async () => (await getRunner().store.source(id))?.thumbnail, [id]);
  const url = useObjectUrl(thumbnail);
  const safety = prediction.status === 'completed' ? prediction.result.safety : undefined;
  const reason = blurReason(safety);
  // The poster is the start image.
  const blurred = reason !== null || (safety !== undefined && isInputFlagged(safety));
  return (
    <li className="card" data-status={prediction.status}>
      <button
        type="button"
        className="card-face"
        aria-current={shownId === id ? 'true' : undefined}
        onClick={() => onShow(id)}
      >
        <span className="poster" data-blurred={blurred}>
          {url && <Picture src={url} alt="" />}
          {prediction.status === 'completed' && <span className="play" aria-hidden="true" />}
        </span>
        <span className="card-prompt">{parameters.prompt}</span>
        {reason && <span className="card-flag">{reason}</span>}
        <span className="card-meta">
          {formatSize(parameters.size)} · {parameters.duration} s ·{' '}
          <time dateTime={createdAt}>{formatDate(createdAt)}</time>
        </span>
      </button>
      {prediction.status === 'interrupted' && (
        <>
          <p className="card-note" data-code={prediction.error.code}>
            <strong>{interruptionTitle(prediction)}.</strong> {prediction.error.message}
          </p>
          <div className="actions">
            <button type="button" disabled={busy} onClick={() => actions.onResume(id)}>
              Resume
            </button>
            <button type="button" className="danger" onClick={() => actions.onDelete(id)}>
              Delete
            </button>
          </div>
        </>
      )}
      {prediction.status === 'failed' && (
        <>
          {shownId === id ? (
            <p className="card-note">
              <strong>{prediction.error.code === 'CANCELLED' ? 'Cancelled' : 'Failed'}</strong>
            </p>
          ) : (
            <p className="card-note" data-code={prediction.error.code}>
              <strong>{prediction.error.message}</strong> {prediction.error.remedy}
            </p>
          )}
          <div className="actions">
            <button type="button" disabled={busy} onClick={() => actions.onRunAgain(id)}>
              Run again
            </button>
            <button type="button" className="danger" onClick={() => actions.onDelete(id)}>
              Delete
            </button>
          </div>
        </>
      )}
    </li>
  );
}

function formatDate(iso: string): string {
  return new Date(iso).toLocaleString(undefined, {
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  });
}

/** How long the toast is shown, in milliseconds. */
const toastMs = 10_000;

/** Offers to restore a deleted prediction, and deletes it for good when the time is over. */
export function UndoToast({ id, onGone }: { id: string; onGone: () => void }) {
  /** While it has the pointer or the focus, it stays. */
  const [held, setHeld] = useState(false);
  useEffect(() => {
    if (held) return;
    const timer = setTimeout(() => {
      onGone();
      // Another tab may still offer to restore a prediction that was deleted later.
      void getRunner()
        .store.purge(toastMs - 500)
        .catch(() => {});
    }, toastMs);
    return () => clearTimeout(timer);
  }, [held, onGone]);
  const undo = () => {
    void getRunner()
      .store.restore(id)
      .catch(() => {});
    onGone();
  };
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    const command = (event.ctrlKey || event.metaKey) && !event.shiftKey;
    if (!command || event.key !== 'z' || isTyping(event.target)) return;
    event.preventDefault();
    undo();
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKey(event);
    window.addEventListener('keydown', listener);
    return () => window.removeEventListener('keydown', listener);
  }, []);
  return (
    <div
      className="toast"
      role="status"
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      <span>Video deleted.</span>
      <button type="button" aria-keyshortcuts="Control+Z Meta+Z" onClick={undo}>
        Undo
      </button>
    </div>
  );
}
