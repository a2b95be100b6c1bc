import { useLiveQuery } from 'dexie-react-hooks';
import type { Prediction } from '../../lib/contract/prediction';
import { getRunner } from '../runner';
import { formatSize } from './format';
import { Picture } from './picture';
import type { PredictionActions } from './result-card';
import { useObjectUrl } from './use-object-url';

const statusNames = { created: 'Waiting', processing: 'In work' } as const;

/** One past prediction: a picture that shows it, and for a failed one why and what to do. */
export function HistoryItem(props: {
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
  const ended = prediction.status === 'completed' || prediction.status === 'failed';
  return (
    <li className="card" data-status={prediction.status}>
      <button
        type="button"
        className="card-face"
        aria-current={shownId === id ? 'true' : undefined}
        disabled={!ended}
        onClick={() => onShow(id)}
      >
        <span className="poster">
          {url && <Picture src={url} alt="" />}
          {prediction.status === 'completed' && <span className="play" aria-hidden="true" />}
        </span>
        <span className="card-prompt">{parameters.prompt}</span>
        <span className="card-meta">
          {formatSize(parameters.size)} · {parameters.duration} s ·{' '}
          <time dateTime={createdAt}>{formatDate(createdAt)}</time>
        </span>
      </button>
      {!ended && <p className="card-note">{statusNames[prediction.status]}</p>}
      {prediction.status === 'failed' && (
        <>
          <p className="card-note" data-code={prediction.error.code}>
            <strong>{prediction.error.message}</strong> {prediction.error.remedy}
          </p>
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
